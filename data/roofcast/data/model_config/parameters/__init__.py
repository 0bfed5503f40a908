"""Parameter counts of a `config.json`, by kind of layer."""

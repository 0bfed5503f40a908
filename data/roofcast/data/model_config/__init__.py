"""Reader of Hugging Face `config.json` files: architecture and parameter counts as a `ModelSpec`."""

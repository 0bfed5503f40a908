"""Published `config.json` files, cut to the fields that matter, and the weights that their checkpoints hold.

A total is that of the published safetensors files. Where these also hold buffers, an embedding twice, a vision tower
or prediction modules, it is our own count without them: `n_param_published_source` and `n_param_difference` of the
catalogue say so by model.
"""

import json
from pathlib import Path
from typing import Any

Config = dict[str, Any]

_ENTRIES: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_name("published_configs.json").read_text(encoding="utf-8")
)
CONFIGS: dict[str, Config] = {name: entry["config"] for name, entry in _ENTRIES.items()}
PUBLISHED: dict[str, tuple[Config, int]] = {
    name: (entry["config"], entry["n_param"]) for name, entry in _ENTRIES.items() if "n_param" in entry
}
FIGURES: dict[str, Config] = {name: entry["figures"] for name, entry in _ENTRIES.items() if "figures" in entry}
"""Fields of specs that the conventions of a family determine."""

LLAMA_3_1_8B = CONFIGS["llama-3.1-8b"]


def a_config(**changes: object) -> Config:
    """Return a Llama config with changes; a value of ... removes the field."""
    fields: Config = {**LLAMA_3_1_8B, **changes}
    return {name: value for name, value in fields.items() if value is not ...}

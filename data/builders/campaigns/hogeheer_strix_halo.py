"""Speeds of llama-bench as rows of a prompt and of a generation."""

from typing import Final

from builders.campaigns.llama_bench import generation_row, prompt_row
from builders.figures import number_of
from builders.published import Cells
from builders.recipe import Row

N_GENERATED: Final = 128
"""Tokens that llama-bench generates by default."""


def rows(cells: Cells, _common: Row) -> list[Row] | None:
    """Return the rows of prompts and generations of llama-bench; None of a server's run."""
    if cells["@file"] == "backend_crossover.csv":
        n_prompt, n_generated, speed = (number_of(cells[name]) for name in ("n_prompt", "n_gen", "tps"))
        return [prompt_row(n_prompt, speed) if n_prompt else generation_row(n_generated, speed)]
    if cells["@file"] == "benchmarks.csv":
        prompt = prompt_row(number_of(cells["context_tokens"]), number_of(cells["pp_tps"]))
        return [prompt, generation_row(N_GENERATED, number_of(cells["tg_tps"]))]
    return None

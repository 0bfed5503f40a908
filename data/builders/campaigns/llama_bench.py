"""Figures of llama.cpp's tools: time of a prompt, and time of a token."""

from builders.recipe import Row


def prompt_row(n_token: float, token_per_s: float) -> Row:
    """Return the cells of a prompt that is processed at a published speed; one token is generated after it."""
    return {"n_input_token": n_token, "n_output_token": 1, "ttft_s": n_token / token_per_s}


def generation_row(n_token: float, token_per_s: float) -> Row:
    """Return the cells of a generation at a published speed that starts from one token."""
    return {"n_input_token": 1, "n_output_token": n_token, "tpot_s": 1 / token_per_s}

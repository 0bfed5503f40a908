"""Comments of an artefact: what each argument is for, and what is left to fill in."""

import textwrap
from collections.abc import Iterable
from typing import Final

from roofcast.serving.deployment.platforms import REPLACE, load_names

_WIDTH: Final = 100

FILL_IN: Final = (
    "namespace: that of `kubectl apply --namespace NAME --filename FILE`; the manifest names none",
    "token: for a checkpoint that asks for a login, `kubectl create secret generic huggingface --namespace NAME "
    "--from-literal=token=$HF_TOKEN`",
    "nodes: the labels in nodeSelector are to be those of yours",
    "weights: an emptyDir is filled again at each start; a persistent volume claim keeps them",
)
"""What a manifest leaves to its user."""


def option_notes(options: Iterable[tuple[str, ...]]) -> str:
    """Return a comment for each option whose name does not say what it is for.

    Examples
    --------
    >>> print(option_notes([("vllm", "serve", "m"), ("--tensor-parallel-size", "2")]), end="")
    # --tensor-parallel-size: accelerators that share each layer
    """
    names = load_names()
    purposes = {
        option: names["purposes"][key]
        for engine in names["options"].values()
        for key, option in engine.items()
        if key in names["purposes"]
    }
    return "".join(_comment(f"{option[0]}: {purposes[option[0]]}") for option in options if option[0] in purposes)


def manifest_notes(text: str) -> str:
    """Return the comments on what to fill in of a manifest."""
    placeholder = [f"image and labels: replace `{REPLACE}`"] if REPLACE in text else []
    return _comment("to fill in") + "".join(_comment(f"- {one}") for one in (*placeholder, *FILL_IN))


def _comment(text: str) -> str:
    lines = textwrap.wrap(
        text, _WIDTH, initial_indent="# ", subsequent_indent="#   ", break_on_hyphens=False, break_long_words=False
    )
    return "".join(f"{line}\n" for line in lines)

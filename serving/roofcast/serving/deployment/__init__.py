"""Deployment artefacts of an entry: command lines of engines, manifests of clusters.

They set what the prediction assumes: precision, split, memory share and the concurrency limit. `docs/DEPLOYMENT.md`
lists what is left to fill in.
"""

from typing import Final

import yaml

from roofcast.data.errors import InputError, UnknownNameError
from roofcast.serving.deployment.artefacts import command, kserve, kubernetes, options
from roofcast.serving.deployment.engine_config import (
    ENGINES,
    Question,
    checkpoint_of,
    configure_engine,
    engine_of,
    remark,
)
from roofcast.serving.deployment.platforms import manifest_notes, option_notes
from roofcast.serving.recommend.answer.parts import Entry

__all__ = ["KINDS", "Question", "checkpoint_of", "deployment", "deployments"]

_MANIFESTS: Final = {"kubernetes": kubernetes, "kserve": kserve}

KINDS: Final = (*ENGINES, *_MANIFESTS)
"""Engines, for a command line, and kinds of manifests."""


def deployment(kind: str, entry: Entry, question: Question) -> str:
    """Return one artefact: a command for a shell, or YAML for a cluster.

    `kind`: one of `KINDS`. A manifest runs the entry's engine, by default vLLM. Raises `InputError` if the engine
    does not run on the accelerator, or not in this configuration; `UnknownNameError` if there is no such kind, or the
    entry's engine has no artefacts.
    """
    if kind not in KINDS:
        raise UnknownNameError("deployment", kind, KINDS)
    if kind in ENGINES:
        return command(configure_engine(kind, entry, question))
    config = configure_engine(engine_of(entry, question) or ENGINES[0], entry, question)
    text = yaml.safe_dump_all(_MANIFESTS[kind](config), sort_keys=False, allow_unicode=True)
    return remark(config) + option_notes(options(config)) + manifest_notes(text) + text


def deployments(entry: Entry, question: Question) -> dict[str, str]:
    """Return the artefacts of an entry by kind, without those that `deployment` refuses.

    Raises `UnknownNameError` if the entry's engine has no artefacts.
    """
    engine_of(entry, question)
    artefacts = {}
    for kind in KINDS:
        try:
            artefacts[kind] = deployment(kind, entry, question)
        except InputError:
            continue
    return artefacts

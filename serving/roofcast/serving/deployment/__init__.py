"""Ready-to-use artefacts of an entry of a recommendation: command lines of engines, manifests of clusters.

What is written is what the forecast was made for: precision, split, share of memory, and as many requests at once
as the entry has in flight within the limits. `docs/DEPLOYMENT.md` says what is left to fill in.
"""

from __future__ import annotations

from typing import Final

import yaml

from roofcast.data.errors import InputError, UnknownNameError
from roofcast.serving.deployment.engines import command
from roofcast.serving.deployment.manifests import kserve, kubernetes
from roofcast.serving.deployment.served import ENGINES, Question, checkpoint_of, engine_of, remark, served_by
from roofcast.serving.recommend.answer.recommendation import Entry

__all__ = ["KINDS", "Question", "checkpoint_of", "deployment", "deployments"]

_MANIFESTS: Final = {"kubernetes": kubernetes, "kserve": kserve}

KINDS: Final = (*ENGINES, *_MANIFESTS)
"""A command line by engine, a manifest by kind of cluster."""


def deployment(kind: str, entry: Entry, question: Question) -> str:
    """Return one artefact: a command for a shell, or YAML for a cluster.

    Parameters
    ----------
    kind
        One of `KINDS`. A manifest runs the entry's engine, vLLM if any will do.
    entry, question
        What was recommended, and what for.

    Raises
    ------
    InputError
        If the engine does not run there, or not so.
    UnknownNameError
        If there is no such kind, or the entry's engine is not known here.
    """
    if kind not in KINDS:
        raise UnknownNameError("deployment", kind, KINDS)
    if kind in ENGINES:
        return command(served_by(kind, entry, question))
    served = served_by(engine_of(entry, question) or ENGINES[0], entry, question)
    text = yaml.safe_dump_all(_MANIFESTS[kind](served), sort_keys=False, allow_unicode=True)
    return remark(served) + text


def deployments(entry: Entry, question: Question) -> dict[str, str]:
    """Return every artefact that can be made of an entry, by kind; `deployment` says why one cannot.

    Raises
    ------
    UnknownNameError
        If the entry's engine is not known here.
    """
    engine_of(entry, question)
    made = {}
    for kind in KINDS:
        try:
            made[kind] = deployment(kind, entry, question)
        except InputError:
            continue
    return made

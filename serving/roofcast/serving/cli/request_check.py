"""Errors of a request that is checked before anything is loaded: an invalid one has those of its names too."""

# ruff: noqa: PLC0415  (the catalogue is opened for an invalid request only)

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from roofcast.data.errors import InputError, RoofcastError, join_errors


@contextmanager
def report_all_errors(fields: Mapping[str, Any]) -> Iterator[None]:
    """Add the errors of the names and limits in a request to the error that its model raises.

    Raises
    ------
    InputError
        With all of them.
    """
    try:
        yield
    except InputError as error:
        raise join_errors([error, *_further_errors(fields, {error.message, *error.further})]) from error


def _further_errors(fields: Mapping[str, Any], known: set[str]) -> list[InputError]:
    from roofcast.features.columns import ENGINES
    from roofcast.serving.cli.context import open_model_catalog
    from roofcast.serving.recommend.api.request_errors import request_errors

    try:
        catalog = open_model_catalog()
    except RoofcastError:
        return []
    model = str(fields.get("model"))
    if ("/" in model or Path(model).exists()) and not catalog.knows_model(model):  # a file, or a name of the hub
        fields = {**fields, "model": None}
    return [error for error in request_errors(fields, catalog, ENGINES) if error.message not in known]

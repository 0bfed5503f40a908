"""Checks of a command's values, each on its own, for the errors that follow the first one."""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roofcast.data.errors import InputError, UnknownNameError, join_errors
from roofcast.serving.cli.files import read_references_table
from roofcast.serving.cli.remote import ask

if TYPE_CHECKING:
    from roofcast.data.catalog import Catalog
    from roofcast.serving.composition import Service
    from roofcast.serving.row_problems import Problem

_WORD = re.compile(r"\w+")

logger = logging.getLogger(__name__)


def collect_errors(*checks: Callable[[], object]) -> list[InputError]:
    """Return the errors of checks, in their order; one that cannot be made finds none."""
    errors = []
    for check in checks:
        try:
            check()
        except InputError as error:
            errors.append(error)
        except Exception:  # no store, no predictor or a bug: the command has an error to report
            logger.debug("a check of the command's values failed", exc_info=True)
    return errors


def check_level(level: float | None) -> None:
    """Raise `InputError` if the level of the intervals is no probability between 0 and 1."""
    if level is not None and not 0 < level < 1:
        raise InputError("level", f"must be a probability between 0 and 1, got {level:g}")


def check_out(file: Path | None, option: str = "out") -> None:
    """Raise `InputError` if the folder of a file to write does not exist."""
    if file and not file.parent.is_dir():
        raise InputError(option, f"{file} cannot be written: no such folder")


def load_once() -> Callable[[], Service]:
    """Return a function that returns the service with the active predictor, which its first call loads."""

    @functools.cache
    def load() -> Service:
        from roofcast.serving.cli.context import load_predictor, open_service

        return load_predictor(open_service())

    return load


def check_references(file: Path | None, server: str, load: Callable[[], Service]) -> None:
    """Raise `InputError` if a file of references cannot be used; a service checks their content."""
    if file is None:
        return
    from roofcast.serving.predict.reference_rows import read_references

    rows = read_references_table(file)
    if not server:
        service = load()
        read_references(rows.frame(), service.catalog, service.active_model.bundle.predictor, file.name, rows.lines)


def check_stack(name: str, server: str, load: Callable[[], Service]) -> None:
    """Raise `InputError` if there is no stack of this name; a service knows its own."""
    if not name or server:
        return

    service = load()
    service.stacks.choose(service.catalog, service.active_model, "", name)


def check_row(
    row: Mapping[str, Any], catalog: Catalog, find: Callable[[dict[str, Any]], Problem | None], server: str = ""
) -> None:
    """Raise `InputError` with the problems that `find` returns of a row; without its model, if that is elsewhere.

    Names that a service may know are not checked.
    """
    elsewhere = is_elsewhere(row.get("model"), catalog)
    problem = find({**row, "model": ""} if elsewhere else {**row})
    problems = (problem, *problem.further) if problem else ()
    problems = tuple(one for one in problems if not (elsewhere and one.field == "model"))
    problems = tuple(one for one in problems if not (server and one.status == "unknown_name"))
    errors = [InputError(one.field, one.message, _columns_in(one.message)) for one in problems]
    if errors:
        raise join_errors(errors)


def _columns_in(text: str) -> list[str]:
    from roofcast.serving.predict.question_rows import ROW_NAMES

    return [word for word in _WORD.findall(text) if "_" in word and word in ROW_NAMES]


def check_names(fields: Mapping[str, Any], engines: Collection[str], server: str) -> None:
    """Raise the errors of names and limits in a request; a service is asked for the names that it knows."""
    from roofcast.serving.cli.context import open_model_catalog
    from roofcast.serving.recommend.api.request_errors import request_errors

    catalog = open_model_catalog()
    if is_elsewhere(fields.get("model"), catalog):
        fields = {**fields, "model": None}
    errors = request_errors(fields, catalog, engines)
    if server and any(isinstance(error, UnknownNameError) for error in errors):
        known = _served_names(server)
        errors = [one for one in errors if not (isinstance(one, UnknownNameError) and one.name.casefold() in known)]
    if errors:
        raise join_errors(errors)


def _served_names(url: str) -> set[str]:
    with ask(url) as client:
        return {text.casefold() for text in (*_texts(client.choices()), *_texts(client.models()))}


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(part)


def is_elsewhere(model: object, catalog: Catalog) -> bool:
    """Return whether a model may be a file, or a name of the hub."""
    name = str(model or "")
    return (
        bool(name)
        and ("/" in name or name.endswith(".json") or Path(name[:200]).exists())
        and not catalog.knows_model(name)
    )

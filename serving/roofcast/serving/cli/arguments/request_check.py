"""One question of a command or a request, all its errors at once, and what its answer is conditioned on."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from roofcast.data.errors import InputError, UnknownNameError, join_errors
from roofcast.serving.cli.arguments.options import RequestT, option_fields, read_request
from roofcast.serving.cli.context import note_stack, open_model_catalog
from roofcast.serving.cli.files import parse_inventory, read_model, read_model_path, read_references_table
from roofcast.serving.cli.remote import ask, model_and_configs
from roofcast.serving.defaults import DEFAULT_LEVEL, DEFAULT_OPERATOR, Operator

if TYPE_CHECKING:
    from roofcast.data.catalog import Catalog
    from roofcast.serving.app_state.champion_loader import LoadedModel
    from roofcast.serving.composition import Service
    from roofcast.serving.csv_table import CsvTable
    from roofcast.serving.predict.question_rows import Problem
    from roofcast.training.learner.predictor import CalibrationPoints
    from roofcast.training.lifecycle.bundles.bundle import ModelBundle

_WORD = re.compile(r"\w+")

logger = logging.getLogger(__name__)


class Problems:
    """Problems of a command line, found together: those of its arguments, then those of its values.

    Each ``with`` block is a check, whose errors are kept unless they are about an argument that cannot be read. Once
    there is a problem, a check that cannot be made, for want of a store or a predictor, finds none.
    """

    def __init__(self, errors: Iterable[InputError] = (), unread: Collection[str] = ()) -> None:
        self.errors, self.unread = [*errors], {*unread}

    def __enter__(self) -> None:
        """Start a check."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        """Keep the errors of the check."""
        if isinstance(error, InputError):
            for one in error.all:
                one.further = ()
                if not self.unread & _fields_of(one):
                    self.errors.append(one)
            return True
        if isinstance(error, Exception) and self.errors:
            logger.debug("a check of the command's values failed", exc_info=error)
            return True
        return False

    def raise_all(self) -> None:
        """Raise `InputError` with all problems, if there are any."""
        if self.errors:
            raise join_errors(self.errors)


def _fields_of(error: InputError) -> set[str]:
    fields = {error.field, *error.mentions}
    return fields | {field.rpartition(".")[2] for field in fields}


def check_search(
    problems: Problems,
    request: type[RequestT],
    options: Mapping[str, Any],
    references: tuple[Path | None, Callable[[Path], CsvTable]],
    server: str,
    engines: Collection[str] = (),
    **more: Any,
) -> RequestT:
    """Return the request of a search that options set. Raises `InputError` with all problems of the command.

    `references`: file of the references, and its reader. `more`: fields without an option.
    """
    fields, (file, read) = {"model": "", **options, "inventory": None}, references
    rows: list[dict[str, Any]] = []
    with problems:
        fields["inventory"] = parse_inventory(options.get("inventory", []))
    with problems:
        read_model_path(fields["model"])
    with problems:
        rows = read(file).records() if file else []
    with problems:
        result = read_request(request, fields, references=rows, **more)
    with problems:
        check_names(option_fields(request, fields), engines, server)
    problems.raise_all()
    return result


def check_level(level: float | None) -> None:
    """Raise `InputError` if the level of the intervals is no probability between 0 and 1."""
    if level is not None and not 0 < level < 1:
        raise InputError("level", f"must be a probability between 0 and 1, got {level:g}")


def check_out(file: Path | None, option: str = "out") -> None:
    """Raise `InputError` if the folder of a file to write does not exist."""
    if file and not file.parent.is_dir():
        raise InputError(option, f"{file} cannot be written: no such folder")


def check_rows_options(given: Iterable[str], rows: Path | None, out: Path | None) -> None:
    """Raise `InputError` if the options of one row, which are given, do not go with those of a file of rows."""
    for name in given:
        if rows:
            raise InputError(name, "cannot be combined with --rows; write it into the file")
    if rows and out is None:
        raise InputError("out", "must be given with --rows")
    if out and not rows:
        raise InputError("out", "requires --rows")
    if rows:
        check_out(out)


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


@dataclass(frozen=True, slots=True)
class Calibration:
    """Own runs or the stack that answers are conditioned on, whose stack they are about, and the intervals' level.

    `file`: of the references. `server`: service that answers; blank for the command's own predictor.
    """

    stack: str = ""
    server: str = ""
    level: float = DEFAULT_LEVEL
    operator: Operator = DEFAULT_OPERATOR
    file: Path | None = None
    references: CsvTable | None = None

    def check(self, problems: Problems) -> Self:
        """Return it with its references read; add its problems to those of the command."""
        checked = self
        with problems:
            checked = replace(self, references=read_references_table(self.file) if self.file else None)
        with problems:
            check_level(self.level)
        if problems.errors and not self.server and (checked.references or self.stack):
            with problems:
                checked.check_stack(problems)
        return checked

    def check_stack(self, problems: Problems) -> None:
        """Add the problems of references and of a stack to other problems; a service knows its own."""
        from roofcast.serving.cli import context

        service = context.load_predictor(context.open_service())
        with problems:
            self.read_references(service.catalog, service.active_model)
        with problems:
            service.stacks.choose(service.catalog, service.active_model, "", self.stack)

    def read_references(self, catalog: Catalog, active: LoadedModel) -> CalibrationPoints | None:
        """Return the points of the references; None without a file."""
        from roofcast.serving.predict.reference_rows import read_references

        if not (self.references and self.file):
            return None
        table, predictor = self.references, active.bundle.predictor
        return read_references(table.frame(), catalog, predictor, self.file.name, table.lines)

    def choose(
        self, service: Service, catalog: Catalog, active: LoadedModel
    ) -> tuple[ModelBundle, CalibrationPoints | None]:
        """Return the bundle that answers and the points that it is conditioned on; print the stack."""
        known = self.read_references(catalog, active)
        bundle, points, used = service.stacks.choose(catalog, active, "", self.stack, known, operator=self.operator)
        note_stack(used)
        return bundle, points

    def ask_service(
        self,
        method: Literal["predict", "explain"],
        rows: Sequence[Mapping[str, Any]],
        models: Sequence[Any],
        **more: str,
    ) -> list[dict[str, Any]]:
        """Return the rows of the service's answer; print the stack."""
        given = {"stack": self.stack, "operator": self.operator, "level": self.level, **more}
        fields = {"rows": rows, "models": models} | {name: value for name, value in given.items() if value}
        with ask(self.server) as client:
            references = self.references.records() if self.references else []
            response = getattr(client, method)(references=references, **fields)
        note_stack(response.get("stack"))
        return [dict(row) for row in response["rows"]]


def check_question(question: Mapping[str, Any], server: str = "") -> None:
    """Raise the errors of a question; a service knows names that this process does not."""
    from roofcast.features.columns import ENGINES
    from roofcast.serving.predict.question_rows import columns_from_rows
    from roofcast.serving.predict.row_checks import check_rows

    catalog = open_model_catalog()
    check_row(
        {"model": "", "accelerator": "", **question},
        catalog,
        lambda row: check_rows(columns_from_rows([row]), catalog, ENGINES)[1][0],
        server,
    )


def local_question(question: Mapping[str, Any], service: Service) -> tuple[dict[str, Any], Catalog]:
    """Return the question as a row, and the catalogue with its model."""
    from roofcast.serving.app_state.catalog.live_catalog import with_own_models

    catalog = service.catalog
    model = read_model(question["model"], catalog)
    if not isinstance(model, str):
        catalog, (spec,) = with_own_models(catalog, [(model["name"], model["config"])])
        model = spec.id
    return {**question, "model": model}, catalog


def question_row(question: Mapping[str, Any], server: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the question as a row for a service, and the configurations to send along."""
    name, configs = model_and_configs(question["model"], server)
    return {**question, "model": name}, configs

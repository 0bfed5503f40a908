"""Options of a command from the fields of its request or the columns of its rows, where they are declared."""

from __future__ import annotations

import csv
import importlib.resources
import inspect
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin

import typer

from roofcast.data.errors import InputError

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

    from roofcast.data.measurements.column_types import Column

Complete = Callable[[str], list[str]]
"""Returns the names that an incomplete word may become."""


def complete_from(file: str, column: str = "id", separator: str = "/") -> Complete:
    """Return the completion from a column of a catalogue table; the part of a name after the separator is a name too.

    Examples
    --------
    >>> complete_from("accelerators.csv")("nvidia-h200")
    ['nvidia-h200-nvl-141gb', 'nvidia-h200-sxm-141gb']
    >>> complete_from("offers.csv", "provider")("a")
    ['akash', 'aws', 'azure']
    """

    def complete(incomplete: str) -> list[str]:
        text = importlib.resources.files("roofcast.data.catalog").joinpath(file).read_text(encoding="utf-8")
        names = {row[column] for row in csv.DictReader(text.splitlines())}
        return complete_names(*names, *(name.partition(separator)[2] for name in names))(incomplete)

    return complete


def complete_names(*names: str) -> Complete:
    """Return the completion of names; blank ones are none."""
    return lambda incomplete: sorted({name for name in names if name and name.startswith(incomplete)})


def _complete_engine(incomplete: str) -> list[str]:
    from roofcast.features.columns import ENGINES

    return complete_names(*ENGINES)(incomplete)


complete_model = complete_from("models.csv")
COMPLETE: Final[Mapping[str, Complete]] = {
    "model": complete_model,
    "accelerator": complete_from("accelerators.csv", separator="-"),
    "accelerators": complete_from("accelerators.csv", separator="-"),
    "vendors": complete_from("accelerators.csv", "vendor"),
    "providers": complete_from("offers.csv", "provider"),
    "regions": complete_from("offers.csv", "region"),
    "pricing": complete_from("offers.csv", "pricing"),
    "engine": _complete_engine,
    "engines": _complete_engine,
}
"""Completion of the values of columns and fields of names; those of a choice are completed from it."""


_FACTORS: Final = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "t": 1e12}
_AMOUNT: Final = re.compile(r"([+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:e[+-]?\d+)?)([kmbgt]?)", re.ASCII | re.IGNORECASE)


def parse_amount(text: str | float) -> float:
    """Return a number with an optional decimal suffix: k, m, b or g, t.

    Raises `typer.BadParameter` if the text has another form.

    Examples
    --------
    >>> parse_amount("10m"), parse_amount("1.5B"), parse_amount("2e7"), parse_amount("1_000")
    (10000000.0, 1500000000.0, 20000000.0, 1000.0)
    """
    match = _AMOUNT.fullmatch(str(text).strip())
    if match is None:
        forms = (
            "a number such as 20000000, 2e7 or 20m; suffixes are k (thousand), m (million), b or g (1e9), t (1e12)"
        )
        raise typer.BadParameter(f"must be {forms}, got {text!r}")
    number, suffix = match.groups()
    return float(number) * _FACTORS[suffix.lower()]


def read_amount(text: str) -> float | str:
    """Return the number of an amount; what is no finite one as it is, for the check of its field.

    Examples
    --------
    >>> read_amount("4k"), read_amount("16.1k"), read_amount("0.5"), read_amount("fast")
    (4000, 16100, 0.5, 'fast')
    """
    number = float(f"{parse_amount(text):.15g}") if _AMOUNT.fullmatch(text.strip()) else math.nan
    return text if not math.isfinite(number) else int(number) if number.is_integer() else number


RequestT = TypeVar("RequestT", bound="BaseModel")

SHORT_NAMES: Final = {"n_input_token": "isl", "n_output_token": "osl", "request_rate": "rate"}
"""Options of columns that have a short name too."""

MODEL_HELP: Final = "Catalogue name, path of a config.json, or owner/name on the Hugging Face hub."


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a command: its help, its type and, unless it is required, its default.

    `names` are its name in requests and files and then short forms; without them it has the name of its key.
    `complete` completes its values in the shell, `parse` reads them in place of the type. `field` is the place of its
    value in a request, such as `constraints.providers`.
    """

    help: str
    type: Any = str
    default: Any = inspect.Parameter.empty
    metavar: str | None = None
    show_default: bool = False
    names: tuple[str, ...] = ()
    complete: Complete | None = None
    parse: Callable[[str], Any] | None = None
    field: str = ""

    def parameter(self, name: str) -> inspect.Parameter:
        """Return the parameter of the command."""
        option = typer.Option(
            *self.names,
            help=self.help,
            metavar=self.metavar,
            show_default=self.show_default,
            autocompletion=self.complete,
            parser=self.parse,
        )
        kind: Any = self.type
        return inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=self.default, annotation=Annotated[kind, option]
        )


Options = Mapping[str, Option]


def column_options(columns: Mapping[str, Column], *required: str) -> dict[str, Option]:
    """Return the options of columns, blank unless given: a number may have a suffix, 4k is 4000."""
    from roofcast.data.measurements.column_names import LONG_NAMES

    long_names = {column: name for name, column in LONG_NAMES.items()} | SHORT_NAMES
    return {
        name: Option(
            f"{column.meaning}{_listed(column.choices)}.",
            default=inspect.Parameter.empty if name in required else "",
            metavar="NUMBER" if column.kind == "float" else None,
            names=tuple(f"--{one.replace('_', '-')}" for one in (name, long_names.get(name)) if one),
            complete=COMPLETE.get(name) or complete_names(*column.choices),
            parse=read_amount if column.kind == "float" else None,
        )
        for name, column in columns.items()
    }


def _listed(choices: tuple[str, ...]) -> str:
    names = [name for name in choices if name]
    return f": {', '.join(names[:-1])} or {names[-1]}" if names else ""


def question_options(*required: str) -> dict[str, Option]:
    """Return the options of one question: the columns of a row of ``predict``."""
    from roofcast.data.measurements.schema import INPUT_COLUMNS

    return column_options(INPUT_COLUMNS, *required)


def request_options(request: type[BaseModel], place: str = "") -> dict[str, Option]:
    """Return the options of the fields of a request that have one, those of its parts among them, by field."""
    from pydantic import BaseModel

    from roofcast.serving.request_fields import Flag

    options = {}
    for name, field in request.model_fields.items():
        flag = next((one for one in field.metadata if isinstance(one, Flag)), None)
        if flag:
            kind = _value_type(field)
            type_: Any = float if flag.is_amount else kind.element
            type_ = list[type_] if kind.is_list else type_
            is_required = field.is_required()
            options[name] = Option(
                MODEL_HELP if name == "model" else _help(field, is_list=kind.is_list),
                type_ if is_required else type_ | None,
                inspect.Parameter.empty if is_required else None,
                "NUMBER" if flag.is_amount else flag.metavar,
                names=tuple(flag.names.split()),
                complete=COMPLETE.get(name) or (complete_names(*kind.choices) if kind.choices else None),
                parse=parse_amount if flag.is_amount else None,
                field=f"{place}{name}",
            )
        elif inspect.isclass(field.annotation) and issubclass(field.annotation, BaseModel):
            options |= request_options(field.annotation, f"{name}.")
    return options


@dataclass(frozen=True, slots=True)
class _ValueType:
    element: Any
    is_list: bool
    choices: tuple[str, ...]


def _value_type(field: FieldInfo) -> _ValueType:
    kind, is_list = _plain(field.annotation), False
    if get_origin(kind) is list:
        kind, is_list = _plain(get_args(kind)[0]), True
    if get_origin(kind) is Literal:
        return _ValueType(str, is_list, get_args(kind))
    return _ValueType(kind if kind in (bool, int, float) else str, is_list, ())


def _plain(annotation: Any) -> Any:
    while True:
        if get_origin(annotation) is Annotated:
            annotation = get_args(annotation)[0]
        elif get_origin(annotation) in (Union, UnionType):
            annotation = next(one for one in get_args(annotation) if one is not NoneType)
        else:
            return annotation


def _help(field: FieldInfo, *, is_list: bool) -> str:
    text = " ".join((field.description or "").split()).rstrip(".")
    default = field.default if isinstance(field.default, str | int | float) else None
    usual = f"; {default} by default" if default and "by default" not in text else ""
    return f"{text[:1].upper()}{text[1:]}{usual}{'; repeatable' if is_list else ''}."


def read_request(request: type[RequestT], values: Mapping[str, Any], **more: Any) -> RequestT:
    """Return the request that options set; None and [] mean not given. `more` are fields without an option.

    Raises `InputError` with all problems of the fields.
    """
    from pydantic import ValidationError

    from roofcast.serving.request_fields import validation_error

    try:
        return request.model_validate(option_fields(request, values) | more)
    except ValidationError as error:
        raise validation_error(error) from error


def with_model(request: RequestT, model: str | Mapping[str, Any]) -> RequestT:
    """Return the request about another model: a name, or a configuration with its name."""
    from roofcast.serving.request_fields import ModelConfig

    return request.model_copy(
        update={"model": model if isinstance(model, str) else ModelConfig.model_validate(model)}
    )


def option_fields(request: type[BaseModel], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a request that options set, in values that nothing has checked."""
    fields: dict[str, Any] = {}
    for name, option in request_options(request).items():
        part = option.field.rpartition(".")[0]
        within = fields.setdefault(part, {}) if part else fields
        if (value := values.get(name)) not in (None, []):
            within[name] = value
    return fields


def with_options(
    declare: Callable[[], Options], **fields: str
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that gives a command declared options; those that are given are its first argument.

    `Command` adds them when it runs or prints its help: only then `declare` is called, which imports their source.
    `fields` are the places in a request that other parameters of the command set. A command that takes the context
    has `Problems` as its object, to which it adds those of its values; values that cannot be read are not given.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def shell() -> None:
            raise AssertionError("a command with declared options runs by them")

        shell.__name__, shell.__doc__ = command.__name__, command.__doc__
        shell.__dict__.update(vars(command), declare=declare, command=command, fields=fields)
        return shell

    return decorate


def complete_command(shell: Any) -> Any:
    """Return a command of `with_options` with its options."""
    command: Callable[..., None] = shell.command
    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
    options: Options = shell.declare()
    added = [option.parameter(name) for name, option in options.items()]

    def run(**values: Any) -> None:
        given = {name: values.pop(name) for name in options}
        command({name: value for name, value in given.items() if value not in (None, "", [])}, **values)

    run.__dict__.update(vars(shell), columns=[name for name, option in options.items() if not option.field])
    run.fields = {name: option.field for name, option in options.items() if option.field} | shell.fields  # type: ignore[attr-defined]
    run.collects = any(one.annotation is typer.Context for one in own)  # type: ignore[attr-defined]
    run.__signature__ = inspect.Signature([*added, *own])  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in (*added, *own)}
    del run.declare  # type: ignore[attr-defined]
    app = typer.Typer(add_completion=False)
    app.command()(run)
    return typer.main.get_command(app)


def require_one(options: Mapping[str, Any]) -> None:
    """Refuse options that are set together. Raises `InputError` if more than one is set."""
    set_ = [name for name, value in options.items() if value]
    if len(set_) > 1:
        raise InputError(set_[1], f"cannot be combined with --{set_[0]}; leave one out")


def require_with(main: str, main_value: Any, options: Mapping[str, Any]) -> None:
    """Refuse options that are set without the one that they belong to.

    Raises `InputError` if one is set and `main_value` is not.
    """
    for name, value in options.items():
        if value and not main_value:
            raise InputError(name, f"requires --{main}")

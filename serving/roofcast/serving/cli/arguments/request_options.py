"""Options of a command from the fields of its request: names, types, help and defaults are declared once, there."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin

import typer

from roofcast.serving.cli.arguments.completion import (
    Complete,
    complete_accelerator,
    complete_engine,
    complete_model,
    complete_names,
    complete_pricing,
    complete_provider,
    complete_region,
    complete_vendor,
)
from roofcast.serving.cli.text.amounts import parse_amount

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

    from roofcast.serving.request_fields import Flag

RequestT = TypeVar("RequestT", bound="BaseModel")

COMPLETE: Final[Mapping[str, Complete]] = {
    "model": complete_model,
    "providers": complete_provider,
    "regions": complete_region,
    "vendors": complete_vendor,
    "accelerators": complete_accelerator,
    "pricing": complete_pricing,
    "engines": complete_engine,
}
"""Completion of the values of fields of names; those of a choice are completed from it."""

MODEL_HELP: Final = "Catalogue name, path of a config.json, or owner/name on the Hugging Face hub."


@dataclass(frozen=True, slots=True)
class RequestOption:
    """A field of a request that has an option; `path` is its place, such as `constraints.providers`."""

    path: str
    flag: Flag
    field: FieldInfo

    @property
    def name(self) -> str:
        """Name of the field, by which the command gets the value."""
        return self.path.rpartition(".")[2]

    @property
    def parameter(self) -> inspect.Parameter:
        """Parameter of the command: None, or a required one; the request has the default."""
        kind = _value_type(self.field)
        annotation: Any = float if self.flag.is_amount else kind.element
        option = typer.Option(
            *self.flag.names.split(),
            help=MODEL_HELP if self.name == "model" else _help(self.field, is_list=kind.is_list),
            metavar="NUMBER" if self.flag.is_amount else self.flag.metavar,
            parser=parse_amount if self.flag.is_amount else None,
            autocompletion=COMPLETE.get(self.name) or (complete_names(*kind.choices) if kind.choices else None),
            show_default=False,
        )
        if kind.is_list:
            annotation = list[annotation]
        is_required = self.field.is_required()
        return inspect.Parameter(
            self.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if is_required else None,
            annotation=Annotated[annotation if is_required else annotation | None, option],
        )


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
    text = (field.description or "").rstrip(".")
    default = field.default if isinstance(field.default, str | int | float) else None
    usual = f"; {default} by default" if default and "by default" not in text else ""
    return f"{text[:1].upper()}{text[1:]}{usual}{'; repeatable' if is_list else ''}."


def request_options(request: type[BaseModel], place: str = "") -> Iterator[RequestOption]:
    """Yield the fields of a request that have an option, those of its parts among them."""
    from pydantic import BaseModel  # noqa: PLC0415  (a command imports what it needs when it runs)

    from roofcast.serving.request_fields import Flag  # noqa: PLC0415

    for name, field in request.model_fields.items():
        flag = next((one for one in field.metadata if isinstance(one, Flag)), None)
        if flag:
            yield RequestOption(f"{place}{name}", flag, field)
        elif inspect.isclass(field.annotation) and issubclass(field.annotation, BaseModel):
            yield from request_options(field.annotation, f"{name}.")


def read_request(request: type[RequestT], options: Mapping[str, Any], **more: Any) -> RequestT:
    """Return the request that options set; None and [] mean not given. `more` are fields without an option.

    Raises
    ------
    InputError
        With all problems of the fields.
    """
    from pydantic import ValidationError  # noqa: PLC0415

    from roofcast.serving.validation_errors import validation_error  # noqa: PLC0415

    try:
        return request.model_validate(option_fields(request, options) | more)
    except ValidationError as error:
        raise validation_error(error) from error


def with_model(request: RequestT, model: str | Mapping[str, Any]) -> RequestT:
    """Return the request about another model: a name, or a configuration with its name."""
    from roofcast.serving.request_fields import ModelConfig  # noqa: PLC0415

    return request.model_copy(
        update={"model": model if isinstance(model, str) else ModelConfig.model_validate(model)}
    )


def option_fields(request: type[BaseModel], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a request that options set, in values that nothing has checked."""
    fields: dict[str, Any] = {}
    for one in request_options(request):
        part, _, name = one.path.rpartition(".")
        within = fields.setdefault(part, {}) if part else fields
        if (value := options.get(name)) not in (None, []):
            within[name] = value
    return fields


Declare = Callable[[], type["BaseModel"]]
"""Imports the request of a command: only a command that runs, or its help, needs it."""


def with_request(declare: Declare, **fields: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that gives a command the options of its request, whose values are its first argument.

    `Command` adds the options when it runs or prints its help. `fields` are the places in the request that other
    parameters of the command set.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def wrapper() -> None:
            raise AssertionError("a command with a request runs by its options")

        wrapper.__name__, wrapper.__doc__ = command.__name__, command.__doc__
        wrapper.__dict__.update(vars(command), declare=declare, command=command, fields=fields)
        return wrapper

    return decorate


def request_command(shell: Any) -> Any:
    """Return a command of `with_request` with the options of its request."""
    command: Callable[..., None] = shell.command
    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
    options = [*request_options(shell.declare())]
    added = [one.parameter for one in options]

    def run(**values: Any) -> None:
        command({one.name: values.pop(one.name) for one in added}, **values)

    run.check = getattr(shell, "check", None)  # type: ignore[attr-defined]
    run.fields = {one.name: one.path for one in options} | shell.fields  # type: ignore[attr-defined]
    run.__signature__ = inspect.Signature([*added, *own])  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in (*added, *own)}
    app = typer.Typer(add_completion=False)
    app.command()(run)
    return typer.main.get_command(app)

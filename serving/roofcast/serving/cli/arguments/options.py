"""Options that are declared in a table, which a command takes as one dictionary, and rules on options together."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any

import typer

from roofcast.data.errors import InputError
from roofcast.serving.cli.arguments.completion import Complete
from roofcast.serving.cli.text.amounts import expand_amount


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a command: its help, its type and, unless it is required, its default.

    `names` are its name in requests and files and then short forms; without them it has the name of its key.
    `complete` completes its values in the shell, `parse` reads them in place of the type.
    """

    help: str
    type: Any = str
    default: Any = inspect.Parameter.empty
    metavar: str | None = None
    show_default: bool = False
    names: tuple[str, ...] = ()
    complete: Complete | None = None
    parse: Callable[[str], Any] | None = None


def number_option(help_: str, names: tuple[str, ...] = ()) -> Option:
    """Return the option of a column of numbers, blank unless given; 4k is 4000."""
    return Option(help_, default="", metavar="NUMBER", names=names, parse=expand_amount)


def with_options(options: Mapping[str, Option]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds the options to a command, which gets their values as its first argument.

    A command with `--rows` has their values in the columns of a file instead.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def wrapper(**values: Any) -> None:
            command({name: values.pop(name) for name in options}, **values)

        added = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=option.default,
                annotation=Annotated[
                    option.type,
                    typer.Option(
                        *option.names,
                        help=option.help,
                        metavar=option.metavar,
                        show_default=option.show_default,
                        autocompletion=option.complete,
                        parser=option.parse,
                    ),
                ],
            )
            for name, option in options.items()
        ]
        own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
        wrapper.__signature__ = inspect.Signature([*added, *own])  # type: ignore[attr-defined]
        wrapper.columns = [*options]  # type: ignore[attr-defined]
        wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in (*added, *own)}
        return wrapper

    return decorate


def require_one(options: Mapping[str, Any]) -> None:
    """Refuse options that are set together.

    Raises
    ------
    InputError
        If more than one is set.
    """
    set_ = [name for name, value in options.items() if value]
    if len(set_) > 1:
        raise InputError(set_[1], f"cannot be combined with --{set_[0]}; leave one out")


def require_with(main: str, main_value: Any, options: Mapping[str, Any]) -> None:
    """Refuse options that are set without the one that they belong to.

    Raises
    ------
    InputError
        If one is set and `main_value` is not.
    """
    for name, value in options.items():
        if value and not main_value:
            raise InputError(name, f"requires --{main}")

"""Options that are declared in a table: the command takes them as one dictionary, not as so many arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any

import typer


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a command: its help, its type and, unless it is required, its default."""

    help: str
    type: Any = str
    default: Any = inspect.Parameter.empty
    metavar: str | None = None
    show_default: bool = False


def with_options(options: Mapping[str, Option]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds the options to a command, which gets their values as its first argument."""

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
                    typer.Option(help=option.help, metavar=option.metavar, show_default=option.show_default),
                ],
            )
            for name, option in options.items()
        ]
        own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
        wrapper.__signature__ = inspect.Signature([*added, *own])  # type: ignore[attr-defined]
        wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in (*added, *own)}
        return wrapper

    return decorate

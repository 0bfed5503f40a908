"""Commands that report every problem of their arguments at once."""

from __future__ import annotations

from typing import Any, Final

import typer
from typer.core import TyperCommand

USAGE_ERROR: Final[Any] = typer.BadParameter.__base__
"""Base of the errors of arguments, which typer exports under no name of its own."""


class Command(TyperCommand):
    """Command that names all unknown options, missing options and bad values, not the first alone."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return what is left of the arguments; raise one usage error with every problem."""
        try:
            return super().parse_args(ctx, [*args])
        except USAGE_ERROR as error:
            problems = self._list_problems(ctx, args)
            if len(problems) > 1:
                raise USAGE_ERROR("\n".join(problems), ctx) from error
            raise

    def _list_problems(self, ctx: Any, args: list[str]) -> list[str]:
        args, problems, values = [*args], [], None
        while values is None:
            try:
                values, rest, _ = self.make_parser(ctx).parse_args(args=[*args])
            except USAGE_ERROR as error:
                problems.append(_text(error))
                name = getattr(error, "option_name", None)
                at = next((i for i, arg in enumerate(args) if name and arg.partition("=")[0] == name), None)
                if at is None:
                    return problems
                has_value = "=" not in args[at] and not "".join(args[at + 1 : at + 2]).startswith("-")
                del args[at : at + 1 + has_value]
        for param in self.get_params(ctx):
            try:
                _, rest = param.handle_parse_result(ctx, values, rest)
            except USAGE_ERROR as error:
                problems.append(_text(error))
        return problems + [f"unexpected argument {arg!r}" for arg in rest]


def _text(error: Any) -> str:
    text = str(error.format_message()).rstrip(".")
    return text[:1].lower() + text[1:]

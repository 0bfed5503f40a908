"""Generator of docs/reference/commands.md, read from the command line: ``python -m codegen.command_reference``."""

from collections.abc import Iterator
from typing import Any

import typer
from typer.core import TyperGroup

from roofcast.serving.cli.app import app


def command_reference() -> str:
    """Return the reference of all commands in Markdown."""
    return "\n".join(_lines(typer.main.get_group(app))) + "\n"


def _lines(group: TyperGroup) -> Iterator[str]:
    yield "# Commands"
    yield ""
    yield (
        "Written by `make docs` from the code. Names have hyphens or underscores: `--n-input-token` and "
        "`--n_input_token` are one option. Every listing and answer takes `--json`; "
        "`roofcast --install-completion` completes commands, options and names in "
        "Bash, Zsh, Fish and PowerShell."
    )
    for path, command in _commands(group, "roofcast"):
        yield ""
        yield f"## {path}"
        yield ""
        yield " ".join((command.help or "").split())
        yield from _options(command)


def _commands(group: TyperGroup, path: str) -> Iterator[tuple[str, Any]]:
    for name in sorted(group.commands):
        command = group.commands[name]
        if isinstance(command, TyperGroup):
            yield from _commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def _options(command: Any) -> Iterator[str]:
    rows = [_row(parameter) for parameter in command.params if not getattr(parameter, "hidden", False)]
    if rows:
        yield from ("", "| option | meaning | default |", "| --- | --- | --- |")
        yield from (f"| {' | '.join(row)} |" for row in rows)


def _row(parameter: Any) -> tuple[str, str, str]:
    is_option = parameter.param_type_name == "option"
    names = parameter.opts if is_option else [parameter.metavar or str(parameter.name).upper()]
    help_ = " ".join(str(parameter.help or "").split()).replace("|", "\\|")
    default = parameter.default
    shown = "" if callable(default) or default in (None, "", False, ()) else f"`{default}`"
    return ", ".join(f"`{name}`" for name in names), help_, "required" if parameter.required else shown


if __name__ == "__main__":
    print(command_reference(), end="")

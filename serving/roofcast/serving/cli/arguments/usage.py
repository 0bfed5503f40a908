"""Commands that report every problem of their arguments at once."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from roofcast.data.errors import InputError, SchemaError, choice_error, join_errors, near_misses
from roofcast.serving.cli.arguments.options import complete_command
from roofcast.serving.cli.arguments.request_check import Problems

USAGE_ERROR: Final[Any] = typer.BadParameter.__base__
"""Base of the errors of arguments, which typer exports under no name of its own."""

EXPECTED: Final = "Input should be"
NOT_ONE: Final = " is not one of "


class _Usage:
    callback: Any
    params: Any
    get_params: Any
    make_parser: Any

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.obj = Problems()
        try:
            return super().parse_args(ctx, [*args])  # type: ignore[misc, no-any-return]
        except USAGE_ERROR as error:
            errors, unread = self._usage_errors(ctx, args)
            if not errors:  # a group without arguments, which prints its help
                raise
            if not getattr(self.callback, "collects", False):
                raise join_errors(errors) from error
            ctx.obj = Problems(errors, unread)
            for param in self.params:
                ctx.params.setdefault(param.name, None)
            return []

    def _usage_errors(self, ctx: Any, args: list[str]) -> tuple[list[InputError], set[str]]:
        args, errors, values = [*args], [], None
        unread: set[str] = set()
        while values is None:
            try:
                values, rest, _ = self.make_parser(ctx).parse_args(args=[*args])
            except USAGE_ERROR as error:
                name = str(getattr(error, "option_name", None) or "")
                param = next((one for one in self.get_params(ctx) if name in (*one.opts, *one.secondary_opts)), None)
                unread |= _names(param) if param else set()
                problem = self._problem(ctx, name, param, args) if name else _lower(error.message)
                errors.append(InputError(name, problem))
                at = next((i for i, arg in enumerate(args) if _is_option(arg, name)), None)
                if at is None:
                    return errors, unread.union(*map(_names, self.get_params(ctx)))
                has_value = "=" not in args[at] and not "".join(args[at + 1 : at + 2]).startswith("-")
                del args[at : at + 1 + has_value]
        for param in self.get_params(ctx):
            try:
                _, rest = param.handle_parse_result(ctx, values, rest)
            except USAGE_ERROR as error:
                if param.name not in unread:
                    errors.append(_value_error(param, values.get(param.name), error))
                unread |= _names(param)
        unexpected = [] if ctx.allow_extra_args else rest
        return [*errors, *(InputError("", f"unexpected argument {arg!r}") for arg in unexpected)], unread

    def _problem(self, ctx: Any, name: str, param: Any, args: list[str]) -> str:
        if param:
            return "takes no value" if param.is_flag else "must have a value"
        commands: Mapping[str, Any] = getattr(self, "commands", {})
        takers = [one for one, command in commands.items() if name in (opt for p in command.params for opt in p.opts)]
        if takers:
            example = next((arg for arg in args if arg in takers), takers[0])
            return f"is an option of commands; write it after one, as in `{ctx.command_path} {example} {name} ...`"
        known = {opt.lstrip("-"): opt for param in self.get_params(ctx) for opt in param.opts if opt.startswith("-")}
        from roofcast.data.measurements.schema import QUESTION_COLUMNS

        column = name.lstrip("-").replace("-", "_")
        if "set" in known and column in QUESTION_COLUMNS:
            return f"no such option; did you mean --set {column}=VALUE?"
        near = " or ".join(known[one] for one in near_misses(name.lstrip("-"), known))
        return f"no such option; {f'did you mean {near}?' if near else f'`{ctx.command_path} --help` lists them'}"


class Command(_Usage, TyperCommand):
    """Command that reports all errors of its arguments at once; it has its declared options when it is used."""

    _params: list[Any]

    @property
    def params(self) -> list[Any]:
        """Parameters, the declared ones among them."""
        if hasattr(self.callback, "declare"):
            complete = complete_command(self.callback)
            self._params, self.callback = complete.params, complete.callback
        return self._params

    @params.setter
    def params(self, params: list[Any]) -> None:
        self._params = params

    def invoke(self, ctx: Any) -> Any:
        """Run the command; its errors name its options."""
        try:
            return super().invoke(ctx)
        except InputError as error:
            fields: Mapping[str, str] = getattr(self.callback, "fields", {})
            columns = getattr(self.callback, "columns", ()) if ctx.params.get("rows") else ()
            params = [param for param in self.get_params(ctx) if param.name not in columns]
            names = _options_by_field(params, fields, ctx.params)
            raise join_errors([name_options(one, names) for one in error.all]) from error


class Group(_Usage, TyperGroup):
    """Group of commands that reports an unknown one as every other problem."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the arguments start with, and the arguments after it.

        Raises `InputError` if there is no such command.
        """
        try:
            return super().resolve_command(ctx, args)
        except USAGE_ERROR as error:
            known = [name for name, command in self.commands.items() if not command.hidden]
            near = " or ".join(near_misses(args[0], known))
            cure = f"did you mean {near}?" if near else f"`{ctx.command_path} --help` lists them"
            raise InputError(args[0], f"no such command; {cure}") from error


def _is_option(arg: str, name: str) -> bool:
    return bool(name) and name in (arg.partition("=")[0].replace("_", "-"), arg[:2])


def _options_by_field(params: Iterable[Any], fields: Mapping[str, str], values: Mapping[str, Any]) -> dict[str, str]:
    options = [param for param in params if param.opts[0].startswith("-")]
    options.sort(key=lambda param: values.get(param.name) is not None)
    by_name = {name: param.opts[0] for param in options for name in _names(param)}
    return by_name | {fields[param.name]: param.opts[0] for param in options if param.name in fields}


def name_options(error: InputError, options: Mapping[str, str]) -> InputError:
    """Return one error that names options in place of the fields that they set; those of a file stay.

    Examples
    --------
    >>> options = {"limits": "--limit", "workload.n_input_token": "--isl"}
    >>> str(name_options(InputError("limits.metric", "no 'tftt' is known"), options))
    "--limit, metric: no 'tftt' is known"
    >>> str(name_options(InputError("workload", "give n_input_token", ["n_input_token"]), options))
    'give --isl'
    """
    if error.field.startswith("-"):  # names an option as it was written
        return InputError(error.field, error.problem)
    if isinstance(error, SchemaError) and (error.source or error.line):
        return SchemaError(error.field, error.problem, error.source, error.line)
    parts = error.field.split(".")
    n = next((n for n in range(len(parts), 0, -1) if ".".join(parts[:n]) in options), 0)
    place = error.field
    if n:
        within = (f" number {int(part) + 1}" if part.isdigit() else f", {part}" for part in parts[n:])
        place = "".join([options[".".join(parts[:n])], *within])
    elif any(field.startswith(f"{place}.") for field in options):
        place = ""
    named = InputError(place, _with_options(error, options))
    named.given, named.expected, named.near = error.given, error.expected, error.near
    return named


def _with_options(error: InputError, options: Mapping[str, str]) -> str:
    if not error.mentions:
        return error.problem
    leaves = {field.rpartition(".")[2]: option for field, option in options.items()}
    names = {one: options.get(one) or leaves.get(one, one) for one in error.mentions}
    mention = rf"(?<![\w.-])(?:{'|'.join(map(re.escape, names))})(?![\w-])"
    return re.sub(mention, lambda found: names[found[0]], error.problem)


def _names(param: Any) -> set[str]:
    names = {param.name, *param.opts, *(name.lstrip("-") for name in param.opts)}
    names |= {name.replace("-", "_") for name in names}
    return names | {f"{name}s" for name in names}


_QUOTED: Final = re.compile(r"'([^']*)'")


def _value_error(param: Any, value: object, error: Any) -> InputError:
    if not isinstance(error, typer.BadParameter) or value is None:
        return InputError(param.opts[0], f"must be given{_meaning(param)}")
    message = str(error.message).removeprefix("Value error, ")
    if NOT_ONE in message:  # a message of typer
        return choice_error(param.opts[0], str(value), _QUOTED.findall(message.partition(NOT_ONE)[2]))
    if message.startswith(EXPECTED):  # a message of pydantic
        message = f"must be{message.removeprefix(EXPECTED).partition(',')[0]}, got {str(value)[:40]!r}"
    return InputError(param.opts[0], _lower(message))


def _meaning(param: Any) -> str:
    text = re.split(r"[.;](?:\s|$)", str(getattr(param, "help", None) or ""))[0]
    return f": {_lower(text)}" if text else ""


def _lower(text: object) -> str:
    message = str(text).rstrip(".")
    is_acronym = message[1:2].isupper()
    return message if is_acronym else message[:1].lower() + message[1:]

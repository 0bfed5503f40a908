"""Build hook: what the client has besides the repository, made of its contract and of its asynchronous half.

`contract.json` has the schemas of the API. From it come the types of requests and answers; the blocking client is the
asynchronous one without `async` and `await`. hatchling runs this file alone, without the service, so it imports the
standard library only. ``python -m codegen.client_build`` writes the contract too.
"""

import json
import keyword
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ModuleNotFoundError:  # outside a build
    BuildHookInterface = object

Schema = dict[str, Any]

FOLDER: Final = Path(__file__).parents[1] / "roofcast" / "client"
CONTRACT: Final = Path(__file__).with_name("contract.json")

_HEAD: Final = '"""{content}; built by codegen.client_build, not kept in the repository."""\n\n# ruff: noqa\n'
_IMPORTS: Final = (
    "\nfrom __future__ import annotations\n\nfrom typing import Any, Literal, NotRequired\n\n"
    "from typing_extensions import TypeAlias, TypedDict\n"
)
_PLAIN: Final = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_REPLACEMENTS: Final = (
    (r'\A""".*?"""\n', _HEAD.format(content="Blocking client")),
    (r"\bimport asyncio\n", ""),
    (r"\basyncio\.sleep\b", "time.sleep"),
    (r"\b__a(enter|exit)__", r"__\1__"),
    (r"\baclose\b", "close"),
    (r"\bAsync(Client|BaseTransport)\b", r"\1"),
    (r"\b(async|await) ", ""),
)


def generate_modules(document: Schema) -> dict[str, str]:
    """Return the sources of the generated modules by file name."""
    sent, received = _schemas(document, "requestBody"), _schemas(document, "responses")
    return {
        "requests.py": _types(document, sent, "Types of requests"),
        "answers.py": _types(document, received - sent, "Types of answers"),
        "blocking.py": blocking_source((FOLDER / "asynchronous.py").read_text(encoding="utf-8")),
    }


def blocking_source(source: str) -> str:
    """Return the source of the blocking client from that of the asynchronous client."""
    for pattern, replacement in _REPLACEMENTS:
        source = re.sub(pattern, replacement, source, flags=re.DOTALL)
    return source


def contract_of(document: Schema) -> str:
    """Return the parts of an OpenAPI document that the types need, as text with one schema a line."""
    schemas = {name: _bare(schema) for name, schema in sorted(document["components"]["schemas"].items())}
    paths = {
        path: {verb: _calls(call) for verb, call in sorted(calls.items())}
        for path, calls in sorted(document["paths"].items())
    }
    parts = (f'"{name}": {{\n{_lines(part)}\n}}' for name, part in (("paths", paths), ("schemas", schemas)))
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _lines(part: Schema) -> str:
    return ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in part.items())


def _calls(call: Schema) -> Schema:
    return {part: sorted(set(_references(call.get(part)))) for part in ("requestBody", "responses")}


def _bare(schema: Any) -> Any:
    """Return a schema without what no type depends on."""
    if isinstance(schema, dict):
        dropped = ("description", "title", "examples", "example", "default", "pattern", "format")
        is_named = "properties" in schema
        kept = {
            name: value
            for name, value in schema.items()
            if name not in dropped and not name.startswith(("min", "max", "exclusive"))
        }
        if is_named:
            kept["properties"] = {name: _bare(value) for name, value in schema["properties"].items()}
            return {name: value if name == "properties" else _bare(value) for name, value in kept.items()}
        return {name: _bare(value) for name, value in kept.items()}
    return [_bare(item) for item in schema] if isinstance(schema, list) else schema


def _schemas(contract: Schema, part: str) -> set[str]:
    pending = [name for calls in contract["paths"].values() for call in calls.values() for name in call[part]]
    names: set[str] = set()
    while pending:
        name = pending.pop()
        if name not in names:
            names.add(name)
            pending += _references(contract["schemas"][name])
    return names


def _references(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"].rpartition("/")[2]
        for part in value.values():
            yield from _references(part)
    elif isinstance(value, list):
        for part in value:
            yield from _references(part)


def _types(contract: Schema, names: set[str], content: str) -> str:
    blocks = [_class(name, contract["schemas"][name]) for name in sorted(names)]
    return "\n".join([_HEAD.format(content=content) + _IMPORTS, *blocks])


def _class(name: str, schema: Schema) -> str:
    if "properties" not in schema:
        return f'\n{name}: TypeAlias = "{_type(schema)}"\n'
    required = set(schema.get("required", ()))
    fields = {
        field: _type(of) if field in required else f"NotRequired[{_type(of)}]"
        for field, of in schema["properties"].items()
    }
    if any(keyword.iskeyword(field) or not field.isidentifier() for field in fields):
        items = ", ".join(f'"{field}": "{kind}"' for field, kind in fields.items())
        return f'\n{name} = TypedDict("{name}", {{{items}}})\n'
    return f"\n\nclass {name}(TypedDict):\n" + (
        "".join(f"    {field}: {kind}\n" for field, kind in fields.items()) or "    pass\n"
    )


def _type(schema: Any) -> str:  # noqa: PLR0911  (one kind of schema a line)
    if not isinstance(schema, dict):
        return "Any"
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return " | ".join(dict.fromkeys(map(_type, schema[several])))
    if "const" in schema or "enum" in schema:
        return f"Literal[{', '.join(json.dumps(value) for value in schema.get('enum', [schema.get('const')]))}]"
    match schema.get("type"):
        case list(kinds):
            return " | ".join(_type({**schema, "type": kind}) for kind in kinds)
        case "array":
            return f"list[{_type(schema.get('items'))}]"
        case "object" if isinstance(schema.get("additionalProperties"), dict):
            names = schema.get("propertyNames", {})
            return f"dict[{_type(names) if 'enum' in names else 'str'}, {_type(schema['additionalProperties'])}]"
        case "object":
            return "dict[str, Any]"
        case kind:
            return _PLAIN.get(str(kind), "Any")


def write_modules() -> None:
    """Write the modules of the contract into the client's folder."""
    for name, text in generate_modules(json.loads(CONTRACT.read_text(encoding="utf-8"))).items():
        (FOLDER / name).write_text(text, encoding="utf-8")


class ClientBuildHook(BuildHookInterface):  # type: ignore[misc]
    """Writes the modules before a wheel, an editable install or a source distribution is made."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002  (hatchling's interface)
        """Write the modules; hatchling calls it first."""
        write_modules()


if __name__ == "__main__":
    from roofcast.serving.http.app import create_app

    CONTRACT.write_text(contract_of(create_app().openapi()), encoding="utf-8")
    write_modules()

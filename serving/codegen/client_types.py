"""The client's types of requests and answers, written from the OpenAPI document: ``python -m codegen.client_types``.

datamodel-code-generator writes them; it is needed for this alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

Document = dict[str, Any]

HEAD: Final = '"""What {what}, as plain dictionaries; written from the OpenAPI document by `make client`."""'
FOLDER: Final = Path(__file__).parents[1] / "roofcast" / "client"
"""Not asked of the package, which cannot be imported while it lacks a type."""

RULES: Final = "# ruff: noqa: D101, I001\n"


def model_files(document: Document) -> dict[str, str]:
    """Return the names and texts of the client's modules of types: what is sent, and what comes back."""
    sent, answered = _schemas(document, "requestBody"), _schemas(document, "responses")
    return {
        "requests.py": _written(document, sent, "is sent"),
        "answers.py": _written(document, answered - sent, "comes back"),
    }


def _schemas(document: Document, part: str) -> set[str]:
    """Return the schemas that a part of any operation names, and those that they name."""
    found: set[str] = set()
    waiting = [operation.get(part) for path in document["paths"].values() for operation in path.values()]
    while waiting:
        for name in _named(waiting.pop()):
            if name not in found:
                found.add(name)
                waiting.append(document["components"]["schemas"][name])
    return found


def _named(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"].rpartition("/")[2]
        for part in value.values():
            yield from _named(part)
    elif isinstance(value, list):
        for part in value:
            yield from _named(part)


def _written(document: Document, names: set[str], what: str) -> str:
    import datamodel_code_generator as writer  # noqa: PLC0415  (who only reads the client's types has none)
    from datamodel_code_generator.enums import DataModelType  # noqa: PLC0415

    schemas = {name: schema for name, schema in document["components"]["schemas"].items() if name in names}
    text = writer.generate(
        json.dumps({**document, "paths": {}, "components": {"schemas": schemas}}),
        input_file_type=writer.InputFileType.OpenAPI,
        output_model_type=DataModelType.TypingTypedDict,
        target_python_version=writer.PythonVersion.PY_311,
        use_standard_collections=True,
        use_union_operator=True,
        use_closed_typed_dict=False,
        collapse_root_models=True,
        disable_timestamp=True,
        custom_file_header=f"{HEAD.format(what=what)}\n\n{RULES}",
        formatters=[writer.Formatter.RUFF_FORMAT],
    )
    own = str(text).replace(", TypedDict\n", "\n\nfrom typing_extensions import TypedDict\n", 1)
    return own.replace('"""\nfrom', '"""\n\nfrom', 1) + "\n"


if __name__ == "__main__":
    from roofcast.serving.http.app import create_app

    for name, text in model_files(create_app().openapi()).items():
        (FOLDER / name).write_text(text, encoding="utf-8")

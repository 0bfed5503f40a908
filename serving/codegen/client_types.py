"""Generator of the client's types of requests and answers, by datamodel-code-generator from the OpenAPI document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

Document = dict[str, Any]

HEAD: Final = '"""Types of {content}; generated from the OpenAPI document by `make client`."""'
RULES: Final = "# ruff: noqa: D101, I001\n"


def type_modules(document: Document) -> dict[str, str]:
    """Return the sources of the modules of types by file name: requests, and answers."""
    sent, received = _schemas(document, "requestBody"), _schemas(document, "responses")
    return {
        "requests.py": _source(document, sent, "requests"),
        "answers.py": _source(document, received - sent, "responses"),
    }


def _schemas(document: Document, part: str) -> set[str]:
    names: set[str] = set()
    pending = [operation.get(part) for path in document["paths"].values() for operation in path.values()]
    while pending:
        for name in _references(pending.pop()):
            if name not in names:
                names.add(name)
                pending.append(document["components"]["schemas"][name])
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


def _source(document: Document, names: set[str], content: str) -> str:
    import datamodel_code_generator as generator  # noqa: PLC0415  (installed for development only)
    from datamodel_code_generator.enums import DataModelType  # noqa: PLC0415

    schemas = {name: schema for name, schema in document["components"]["schemas"].items() if name in names}
    text = generator.generate(
        json.dumps({**document, "paths": {}, "components": {"schemas": schemas}}),
        input_file_type=generator.InputFileType.OpenAPI,
        output_model_type=DataModelType.TypingTypedDict,
        target_python_version=generator.PythonVersion.PY_311,
        use_standard_collections=True,
        use_union_operator=True,
        use_closed_typed_dict=False,
        collapse_root_models=True,
        disable_timestamp=True,
        custom_file_header=f"{HEAD.format(content=content)}\n\n{RULES}",
        formatters=[generator.Formatter.RUFF_FORMAT],
    )
    source = str(text).replace(", TypedDict\n", "\n\nfrom typing_extensions import TypedDict\n", 1)
    return source.replace('"""\nfrom', '"""\n\nfrom', 1) + "\n"

"""What the OpenAPI document says of rows in bulk."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any, Final

from roofcast.serving.http.bulk.media import LEVEL_HEADER, VERSION_HEADER, Kind
from roofcast.serving.http.errors import PROBLEM_TYPE
from roofcast.serving.http.schemas.resources import QUESTION, ProblemResponse

_LINES: Final = {
    "schema": {
        "type": "string",
        "description": "A JSON object a line: a row as in the JSON body's `rows`. In place of a name, `model` may be "
        "an object as in its `models`, up to 100 different ones in a body.",
    },
    "example": json.dumps(QUESTION) + "\n",
}
_FILE: Final = {
    "schema": {
        "type": "string",
        "format": "binary",
        "description": "Columns as the fields of a row, texts or numbers, none of them nested; models by name alone.",
    }
}

BULK_REQUEST: Final[dict[str, Any]] = {
    "requestBody": {"content": {Kind.NDJSON.value: _LINES, Kind.PARQUET.value: _FILE}}
}

_HEADERS: Final = {
    name: {"description": f"{what}, of answers in bulk.", "schema": {"type": "string"}}
    for name, what in ((VERSION_HEADER, "Of the predictor that answered"), (LEVEL_HEADER, "Of the intervals"))
}

BULK_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    int(HTTPStatus.OK): {
        "description": "The rows with their answers, in their order.",
        "headers": _HEADERS,
        "content": {
            Kind.NDJSON.value: {
                "schema": {
                    "type": "string",
                    "description": "A JSON object a line: a row as in the JSON answer's `rows`.",
                }
            },
            Kind.PARQUET.value: _FILE,
        },
    },
    int(HTTPStatus.NOT_ACCEPTABLE): {
        "description": HTTPStatus.NOT_ACCEPTABLE.phrase,
        "content": {PROBLEM_TYPE: {"schema": {"$ref": f"#/components/schemas/{ProblemResponse.__name__}"}}},
    },
}

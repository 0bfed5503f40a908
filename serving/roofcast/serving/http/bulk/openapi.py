"""OpenAPI description of bulk requests and responses."""

import json
from http import HTTPStatus
from typing import Any, Final

from roofcast.serving.http.body import LEVEL_HEADER, STACK_HEADER, VERSION_HEADER, Kind
from roofcast.serving.http.problem_details import NOT_ACCEPTABLE
from roofcast.serving.http.schemas.resources import EXAMPLE_ROW

_LINES: Final = {
    "schema": {
        "type": "string",
        "description": "One JSON object per line: a row as in the JSON body's `rows`. `model` may be an object as in "
        "its `models` in place of a name, up to 100 different ones in a body.",
    },
    "example": json.dumps(EXAMPLE_ROW) + "\n",
}
_FILE: Final = {
    "schema": {
        "type": "string",
        "format": "binary",
        "description": "Columns as the fields of a row: texts, numbers, truth values; models by name only.",
    }
}

BULK_REQUEST: Final[dict[str, Any]] = {
    "requestBody": {"content": {Kind.NDJSON.value: _LINES, Kind.PARQUET.value: _FILE}}
}

_HEADERS: Final = {
    name: {"description": f"{description}, in bulk responses.", "schema": {"type": "string"}}
    for name, description in (
        (VERSION_HEADER, "Predictor version"),
        (LEVEL_HEADER, "Level of the intervals"),
        (STACK_HEADER, "Kind and name of the stack that the request names, and notes on it, percent-encoded"),
    )
}

BULK_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    int(HTTPStatus.OK): {
        "description": "The rows with their answers, in the order of the request.",
        "headers": _HEADERS,
        "content": {
            Kind.NDJSON.value: {
                "schema": {
                    "type": "string",
                    "description": "One JSON object per line: a row as in the JSON response's `rows`.",
                }
            },
            Kind.PARQUET.value: _FILE,
        },
    },
    **NOT_ACCEPTABLE,
}

"""HTTP calls: what a request consists of, how it is sent and retried, and how its response is read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Generic, Literal, TypeVar

import httpx
from httpx_retries import Retry, RetryTransport
from pydantic_core import to_json

from roofcast.client.errors import error_of

Row = dict[str, float | int | str | bool | None]
"""Row of prediction input, answers or measurements."""

Target = Literal["inference", "training"]
"""What a predictor is about: inference, or training jobs."""

T = TypeVar("T")

JSON: Final = "application/json"

FILE_TYPES: Final = {".json": JSON, ".jsonl": "application/x-ndjson", ".csv": "text/csv"}
"""Media type of an uploaded file by its suffix."""

BUSY: Final = (429, 503)
"""Statuses of requests that the service did not act on."""

MAX_WAIT_S: Final = 60.0
"""Longest wait before one retry, whatever the service asks for; all waits of a request together: twice as long."""


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A request and the reader of its response.

    `content` and `content_type`: the body; None if there is none. `is_idempotent`: whether it may be sent again
    although the service may have acted on it already.
    """

    method: str
    path: str
    read: Callable[[httpx.Response], T]
    params: Mapping[str, Any] = field(default_factory=dict)
    content: bytes | None = None
    content_type: str = JSON
    accept: str = JSON
    is_idempotent: bool = True

    def request(self, retries: int) -> dict[str, Any]:
        """Return the arguments of `httpx.Client.request`."""
        headers = {"accept": self.accept} | ({"content-type": self.content_type} if self.content is not None else {})
        return {
            "method": self.method,
            "url": self.path,
            "params": self.params,
            "content": self.content,
            "headers": headers,
            "extensions": {} if self.is_idempotent else {"retry": _retry(retries, is_idempotent=False)},
        }

    def result(self, response: httpx.Response) -> T:
        """Return the content of a response. Raises `RoofcastError` if its status is no success."""
        if not response.is_success:
            raise error_of(response)
        return self.read(response)


def read_json(response: httpx.Response) -> Any:
    """Return the JSON value of a response."""
    return response.json()


def get(path: str, **params: Any) -> Call[Any]:
    """Return a call without a body; parameters that are None are left out."""
    return Call("GET", path, read_json, {name: value for name, value in params.items() if value is not None})


def post(path: str, body: object, *, is_idempotent: bool = True, **params: Any) -> Call[Any]:
    """Return a call with a JSON body; NaN becomes null, which is blank."""
    content = to_json(body, inf_nan_mode="null")
    return Call("POST", path, read_json, params, content=content, is_idempotent=is_idempotent)


def put(path: str, body: object) -> Call[Any]:
    """Return a call that replaces a resource."""
    return Call("PUT", path, read_json, content=to_json(body))


def delete(path: str) -> Call[Any]:
    """Return a call that removes a resource."""
    return Call("DELETE", path, read_json, is_idempotent=False)


def upload(path: str, file: Path, values: Mapping[str, object] | None, **params: Any) -> Call[Any]:
    """Return a call with the content of a file and values by column; parameters that are None are left out."""
    kind = FILE_TYPES.get(file.suffix.lower(), "application/octet-stream")
    set_ = [f"{column}={value}" for column, value in (values or {}).items()]
    given = {"name": file.name, "set": set_} | {name: value for name, value in params.items() if value is not None}
    return Call("POST", path, read_json, given, content=file.read_bytes(), content_type=kind)


def client_options(
    base_url: str,
    api_key: str | None,
    timeout_s: float,
    retries: int,
    transport: httpx.BaseTransport | httpx.AsyncBaseTransport | None,
) -> dict[str, Any]:
    """Return the arguments of `httpx.Client`."""
    return {
        "base_url": base_url,
        "headers": {} if api_key is None else {"authorization": f"Bearer {api_key}"},
        "timeout": timeout_s,
        "transport": RetryTransport(transport, _retry(retries)),
    }


def _retry(retries: int, *, is_idempotent: bool = True) -> Retry:
    return Retry(
        total=retries,
        allowed_methods=("GET", "POST", "PUT"),
        status_forcelist=BUSY,
        retry_on_exceptions=None if is_idempotent else (httpx.ConnectError, httpx.ConnectTimeout),
        backoff_factor=0.25,
        max_backoff_wait=MAX_WAIT_S,
        total_timeout=2 * MAX_WAIT_S,
    )

"""What both clients send with: keys, time limits, and when to try again."""

from __future__ import annotations

from typing import Any, Final, TypeVar

import httpx
from httpx_retries import Retry, RetryTransport

from roofcast.client.calls import Call
from roofcast.client.errors import error_of

T = TypeVar("T")

BUSY: Final = (429, 503)
"""Statuses of a request that was not acted on."""

MAX_WAIT_S: Final = 60.0
"""Longest wait before one request is sent again, whatever the service asks for; and twice it for all of them."""


def options(
    base_url: str,
    api_key: str | None,
    timeout_s: float,
    retries: int,
    transport: httpx.BaseTransport | httpx.AsyncBaseTransport | None,
) -> dict[str, Any]:
    """Return what an httpx client is made with."""
    return {
        "base_url": base_url,
        "headers": {} if api_key is None else {"authorization": f"Bearer {api_key}"},
        "timeout": timeout_s,
        "transport": RetryTransport(transport, _retry(retries)),
    }


def _retry(retries: int, *, may_repeat: bool = True) -> Retry:
    return Retry(
        total=retries,
        allowed_methods=("GET", "POST", "PUT"),
        status_forcelist=BUSY,
        retry_on_exceptions=None if may_repeat else (httpx.ConnectError, httpx.ConnectTimeout),
        backoff_factor=0.25,
        max_backoff_wait=MAX_WAIT_S,
        total_timeout=2 * MAX_WAIT_S,
    )


def request_of(call: Call[T], retries: int) -> dict[str, Any]:
    """Return what httpx is asked for a call."""
    headers = {"accept": call.accept} | ({"content-type": call.content_type} if call.content is not None else {})
    extensions = {} if call.may_repeat else {"retry": _retry(retries, may_repeat=False)}
    return {
        "method": call.method,
        "url": call.path,
        "params": call.params,
        "content": call.content,
        "headers": headers,
        "extensions": extensions,
    }


def read(call: Call[T], response: httpx.Response) -> T:
    """Return what an answer says.

    Raises
    ------
    RoofcastError
        If it is no success.
    """
    if not response.is_success:
        raise error_of(response)
    return call.read(response)

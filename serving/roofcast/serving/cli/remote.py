"""A running service that a command asks in place of its own predictor."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NoReturn

from roofcast.data import errors
from roofcast.serving.cli.arguments.options import with_model
from roofcast.serving.cli.console import spinner
from roofcast.serving.cli.files import read_local_model

if TYPE_CHECKING:
    from roofcast.client import Client, RoofcastError

KEY_VARIABLE: Final = "ROOFCAST_KEY"
"""Environment variable with the API key."""

MAX_PORT: Final = 65_535


@contextmanager
def ask(url: str) -> Iterator[Client]:
    """Give a client of the service; its errors become those of the command line.

    Raises `InputError` if the address or the API key is malformed, or the service refuses the request;
    `NoAnswerError` if the service has no answer; `NotReadyError` if the service cannot be reached, or is not ready.
    """
    from roofcast import client

    _check_url(url)
    try:
        with client.Client(url, _read_key()) as connection, spinner(f"asking {url}"):
            yield connection
    except client.RoofcastError as error:
        _raise(error, url)


def _check_url(url: str) -> None:
    import httpx

    try:
        parts = httpx.URL(url)
    except httpx.InvalidURL:
        parts = httpx.URL("")
    if parts.scheme not in {"http", "https"} or not parts.host or (parts.port or 0) > MAX_PORT:
        raise errors.InputError("server", f"must be a URL such as http://127.0.0.1:8000, got {url!r}")


def _read_key() -> str | None:
    key = os.environ.get(KEY_VARIABLE, "")
    if not (key.isascii() and key.isprintable()) or " " in key:
        problem = "must be an API key as `roofcast keys create` prints it: ASCII without spaces"
        raise errors.InputError(KEY_VARIABLE, problem)
    return key or None


def _raise(error: RoofcastError, url: str) -> NoReturn:
    from roofcast import client

    if isinstance(error, client.UnreachableError):
        problem = f"the service at {url} does not answer ({error}); start it with `roofcast serve`"
        raise errors.NotReadyError(problem) from error
    if isinstance(error, client.InputError):
        if error.errors:
            raise errors.join_errors([*map(_input_error, error.errors)]) from error
        problem = error.detail.removeprefix(f"{error.field}: ")
        raise errors.InputError(error.field or "server", problem) from error
    if isinstance(error, client.NoAnswerError):
        raise errors.NoAnswerError(error.detail) from error
    cure = f"; set {KEY_VARIABLE} to an API key" if isinstance(error, client.NotAllowedError) else ""
    raise errors.NotReadyError(f"the service at {url}: {error.detail}{cure}") from error


def _input_error(parts: Mapping[str, Any]) -> errors.InputError:
    if parts["source"] or parts["line"]:
        return errors.SchemaError(parts["field"], parts["problem"], parts["source"], parts["line"])
    return errors.InputError(parts["field"], parts["problem"], parts["mentions"])


def read_served_model(model: str, url: str) -> str | dict[str, Any]:
    """Return a model as a request to the service takes it: its name, or a configuration of this machine.

    A name that the service knows has precedence, as in `read_model`.

    Raises `InputError` if a file does not exist, cannot be read or is not a JSON object; `NotReadyError` if the
    service is asked for its names and does not answer.
    """
    return read_local_model(model, lambda name: _is_served(name, url))


def served_fields(request: Any, url: str) -> Any:
    """Return the fields of a request that are set, for the service; its model as of `read_served_model`."""
    request = with_model(request, read_served_model(str(request.model), url))
    return request.model_dump(mode="json", exclude_unset=True)


def _is_served(name: str, url: str) -> bool:
    from roofcast.data.catalog import load_catalog

    with ask(url) as client:
        ids = [spec["id"].casefold() for spec in client.models()]
    return name.casefold() in {*ids, *(one.rpartition("/")[2] for one in ids)} or load_catalog().knows_model(name)


def model_and_configs(model: str, url: str) -> tuple[str, list[dict[str, Any]]]:
    """Return a model as the rows of a request name it, and the configurations to send along.

    A configuration whose name the service knows has a name of its own, with a digest of its fields.
    """
    choice = read_served_model(model, url)
    if isinstance(choice, str):
        return choice, []
    name = str(choice["name"])
    if _is_served(name, url):
        name = f"{name}-{sha256(json.dumps(choice['config'], sort_keys=True).encode()).hexdigest()[:8]}"
    return name, [choice | {"name": name}]

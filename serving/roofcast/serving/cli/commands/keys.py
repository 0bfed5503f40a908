"""The commands that create, list and revoke API keys."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from roofcast.serving.cli.console import show, step
from roofcast.serving.cli.context import AsJson

if TYPE_CHECKING:
    from roofcast.data.store.api_keys import ApiKey, KeyStore

keys = typer.Typer(no_args_is_help=True, help="Create, list and revoke API keys of the service.")

Name = Annotated[str, typer.Argument(help="Holder of the key.")]


@contextmanager
def _key_store() -> Iterator[KeyStore]:
    from roofcast.data.store.api_keys import KeyStore
    from roofcast.serving.app_state.settings import load_settings
    from roofcast.serving.app_state.store_access import open_migrated

    with open_migrated(load_settings()) as store:
        yield KeyStore(store.database)


@keys.command()
def create(
    name: Name,
    scope: Annotated[
        Literal["read", "write", "admin"], typer.Option(help="Permission; each scope includes the ones before it.")
    ],
    expires_in_days: Annotated[
        float | None, typer.Option(help="Days until the key expires; never by default.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create a key and print it once: only its hash is stored."""
    lifetime = None if expires_in_days is None else dt.timedelta(days=expires_in_days)
    with _key_store() as store:
        key, secret = store.create(name, scope, lifetime)
    if as_json:
        print(json.dumps({"key": secret, **_row(key)}, default=str))
        return
    end = f" until {key.expires_at:%Y-%m-%d %H:%M} UTC" if key.expires_at else ""
    step(f"{name} may {scope}{end}; store this key, it is not shown again:")
    print(secret)


@keys.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the keys, each with its last four characters."""
    with _key_store() as store:
        show([_row(key) for key in store.load()], as_json=as_json)


@keys.command()
def revoke(name: Name, as_json: AsJson = False) -> None:
    """Revoke a key; a running service rejects it within seconds."""
    with _key_store() as store:
        show([_row(store.revoke(name))], as_json=as_json)


def _row(key: ApiKey) -> dict[str, Any]:
    return {**asdict(key), "state": key.state}

"""The commands that make, list and revoke API keys."""

# ruff: noqa: PLC0415  (a command imports what it needs when it runs)

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from roofcast.serving.cli.console import show
from roofcast.serving.cli.context import AsJson

if TYPE_CHECKING:
    from roofcast.data.store.api_keys import ApiKey, KeyStore

keys = typer.Typer(no_args_is_help=True, help="Make, list and revoke the API keys of the service.")

Name = Annotated[str, typer.Argument(help="Who holds the key.")]


@contextmanager
def _key_store() -> Iterator[KeyStore]:
    from roofcast.data.store.api_keys import KeyStore
    from roofcast.serving.app_state.settings import load_settings
    from roofcast.serving.app_state.state_folder import open_store

    with open_store(load_settings()) as store:
        yield KeyStore(store.database)


@keys.command()
def create(
    name: Name,
    scope: Annotated[Literal["read", "write", "admin"], typer.Option(help="What it may do; each includes the last.")],
    expires_in_days: Annotated[float | None, typer.Option(help="Days until it expires; never if left out.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make a key and print it, once: only its hash is kept."""
    lifetime = None if expires_in_days is None else dt.timedelta(days=expires_in_days)
    with _key_store() as store:
        key, secret = store.create(name, scope, lifetime)
    if as_json:
        print(json.dumps({"key": secret, **_row(key)}, default=str))
        return
    end = f" until {key.expires_at:%Y-%m-%d %H:%M} UTC" if key.expires_at else ""
    typer.echo(f"{name} may {scope}{end}; keep this key, it is not shown again:", err=True)
    print(secret)


@keys.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the keys; of each only the last four characters are known."""
    with _key_store() as store:
        show([_row(key) for key in store.load()], as_json=as_json)


@keys.command()
def revoke(name: Name, as_json: AsJson = False) -> None:
    """Let a key open nothing any more; a running service follows within seconds."""
    with _key_store() as store:
        show([_row(store.revoke(name))], as_json=as_json)


def _row(key: ApiKey) -> dict[str, Any]:
    return {**asdict(key), "state": key.state}

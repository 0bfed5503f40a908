"""The commands that run the HTTP service, and create, list and revoke its API keys."""

from __future__ import annotations

import datetime as dt
import json
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from roofcast.serving.cli.console import show, step
from roofcast.serving.cli.context import AsJson

if TYPE_CHECKING:
    import uvicorn

    from roofcast.data.store.api_keys import ApiKey, KeyStore

MAX_HEADER_BYTE: Final = 131_072
"""Maximum size of the headers of a request, references in the query included. More is answered with 400."""

MAX_CONNECTION: Final = 500
"""Connections of a server process from which requests get 503; most systems let a process open 1,024 files."""

BACKLOG: Final = 512
"""Connections that wait to be accepted."""

KEEP_ALIVE_S: Final = 5
"""Time between two requests of a connection; a proxy closes its connections earlier."""

FINISH_S: Final = 25
"""Time for requests to finish after the drain; both fit into the 30 s that most platforms grant."""

HUNG_S: Final = 60
"""Health-check timeout of a server process with several workers. In uvicorn's default of 5 s a process on a busy
machine has not finished its imports."""

N_THREAD: Final = "OMP_NUM_THREADS"
"""Environment variable that limits the threads of linear algebra in each process. Processes that each use a thread
for every core wait for each other: loading a predictor takes four times as long."""


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Server processes.")] = 1,
) -> None:
    """Serve predictions and recommendations over HTTP; the shipped predictor answers until another is promoted."""
    os.environ.setdefault(N_THREAD, "1")  # numpy reads it when it is imported
    import uvicorn

    from roofcast.data.home import writable_home
    from roofcast.data.store.database.database import Database
    from roofcast.serving.app_state.settings import load_settings
    from roofcast.serving.http.telemetry.prometheus_multiproc import prometheus_multiproc_dir
    from roofcast.serving.logs import configure_service_logs
    from roofcast.serving.queue.queue import worker_process

    settings = load_settings()
    log_config = configure_service_logs(settings.log_format, settings.log_level)
    # uvicorn stops on SIGTERM and raises it again: the worker process must end too
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    Database(settings.store_url)  # an invalid URL is an error now, and so is a folder that cannot be written
    writable_home(settings.home)
    with prometheus_multiproc_dir(), worker_process():
        config = uvicorn.Config(
            "roofcast.serving.http.app:create_app",
            factory=True,
            host=host,
            port=port,
            workers=workers,
            http="h11",
            h11_max_incomplete_event_size=MAX_HEADER_BYTE,
            limit_concurrency=MAX_CONNECTION,
            backlog=BACKLOG,
            timeout_keep_alive=KEEP_ALIVE_S,
            forwarded_allow_ips=settings.forwarded_allow_ips,
            reset_contextvars=True,
            ws="none",
            lifespan="on",
            timeout_graceful_shutdown=FINISH_S,
            timeout_worker_healthcheck=HUNG_S,
            log_config=log_config,
            access_log=False,
            server_header=False,
        )
        _run(config)


def _run(config: uvicorn.Config) -> None:
    from uvicorn import Server
    from uvicorn.supervisors import multiprocess

    from roofcast.serving.cli.server_process import ServerProcess

    listener = config.bind_socket()
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
    if config.workers > 1:
        multiprocess.Process = ServerProcess  # type: ignore[misc]  # the supervisor takes no other class
        multiprocess.Multiprocess(config, sockets=[listener]).run()
        return
    server = Server(config)
    with suppress(KeyboardInterrupt):
        server.run(sockets=[listener])
    if not server.started:
        sys.exit(1)


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

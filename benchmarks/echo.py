"""Floor of the latency of a prediction over HTTP: a bare FastAPI echo that evaluates the same trees.

python -m benchmarks.echo --home FOLDER --port PORT
"""

import argparse
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI

from benchmarks.load import QUERY
from benchmarks.tree_calls import record_tree_calls
from roofcast.data.measurements.target import INFERENCE
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.composition import build_service
from roofcast.serving.predict.question_rows import columns_from_rows
from roofcast.serving.predict.row_answers import PredictOptions, answer_columns
from tests.conditions import wait_until


def create_echo(home: Path) -> FastAPI:
    """Return an application that replays the tree evaluations of a prediction and returns the request body."""
    service = build_service(Settings(home=home))
    service.champions[INFERENCE].refresh()
    options = PredictOptions(service.active_model.bundle, service.catalog)
    replay = record_tree_calls(lambda: answer_columns(columns_from_rows([QUERY]), options))
    service.close()
    app = FastAPI()

    @app.post("/")
    def echo(body: dict[str, Any]) -> dict[str, Any]:
        replay()
        return body

    return app


@contextmanager
def running_echo(home: Path) -> Iterator[tuple[str, int]]:
    """Run the echo server during the block; yield its address when it is ready."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "benchmarks.echo", "--home", str(home), "--port", str(port)]
    process = subprocess.Popen(command)  # noqa: S603  (our own command)
    try:
        wait_until(lambda: _answers(port))
        yield "127.0.0.1", port
    finally:
        process.terminate()
        process.wait()


def _answers(port: int) -> bool:
    try:
        return httpx.post(f"http://127.0.0.1:{port}/", json={}).status_code == 200
    except httpx.TransportError:
        return False


def main() -> None:
    """Run the echo server."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, required=True, help="state folder with a predictor")
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    uvicorn.run(create_echo(options.home), port=options.port, http="h11", log_level="warning")


if __name__ == "__main__":
    main()

"""Fake MLflow server that answers which version is the champion, and can be stopped."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from roofcast.training.lifecycle.registry.registry import CHECKSUM_TAG, MODEL_NAME, SIGNATURE_TAG, Champion

SHORT_TIMEOUTS = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0", "MLFLOW_HTTP_REQUEST_TIMEOUT": "2"}
"""Environment variables of a service that queries it."""


class MlflowServer:
    """A registry over HTTP with one version at a time; `start` and `stop` preserve its address."""

    def __init__(self, champion: Champion) -> None:
        self.champion = champion
        self._server: ThreadingHTTPServer | None = None
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start to answer."""
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                is_known = "/registered-models/alias" in self.path and "alias=champion" in self.path
                body = json.dumps(
                    registry.answer() if is_known else {"error_code": "RESOURCE_DOES_NOT_EXIST"}
                ).encode()
                self.send_response(200 if is_known else 404)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """Start to refuse connections."""
        if self._server:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def answer(self) -> dict[str, Any]:
        """Return MLflow's answer about the champion."""
        values = {CHECKSUM_TAG: self.champion.sha256, SIGNATURE_TAG: self.champion.signature}
        tags = [{"key": key, "value": value} for key, value in values.items()]
        version = {"name": MODEL_NAME, "version": self.champion.version, "run_id": self.champion.run_id, "tags": tags}
        return {"model_version": version}

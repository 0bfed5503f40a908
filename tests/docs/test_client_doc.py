"""The examples of docs/CLIENT.md run against a service."""

import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn

from roofcast.client import Client
from roofcast.data.store.api_keys import KeyStore
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.http.app import create_app
from tests.conditions import wait_until

PAGE = (Path(__file__).parents[2] / "docs" / "CLIENT.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def service(trained_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Return the address of a service and an API key of the scope write."""
    home = Path(shutil.copytree(trained_home, tmp_path_factory.mktemp("client") / "home"))
    app = create_app(Settings(home=home, poll_s=3600))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None))
    thread = threading.Thread(target=server.run)
    thread.start()
    wait_until(lambda: server.started or not thread.is_alive())
    assert server.started
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}", KeyStore(app.state.service.store.database).create("docs", "write", None)[1]
    server.should_exit = True
    thread.join()


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_each_example_runs(
    service: tuple[str, str], number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    address, key = service
    monkeypatch.setenv("ROOFCAST_KEY", key)
    exec(EXAMPLES[number].replace("http://127.0.0.1:8000", address), {})  # noqa: S102  (our own examples)
    assert capsys.readouterr().out.strip()


def test_every_method_is_documented() -> None:
    methods = {name for name in vars(Client) if not name.startswith("_")} - {"close"}
    assert methods == set(
        re.findall(r"(?<![\w.])([a-z_]+)\(", PAGE.partition("| method |")[2].partition("`Async")[0])
    )

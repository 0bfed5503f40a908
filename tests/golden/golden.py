"""Golden answers: stored requests with the answers of the shipped predictor.

``python -m tests.golden.golden`` sends the stored requests again and stores the answers; do so in a separate
commit that says why answers change.
"""

import datetime as dt
import gzip
import json
import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from roofcast.serving.app_state.settings import Settings
from roofcast.serving.http.app import create_app
from roofcast.serving.http.guarded_routes import today
from tests.serving.http_client import Client, running

FILE: Final = Path(__file__).with_name("answers.json.gz")

DAY: Final = dt.date(2026, 11, 24)
"""Day of the answers: prices of a request are of the day that it is answered."""

TOLERANCE: Final = 1e-6
"""Relative tolerance; sums in another order on another processor differ by less."""

VOLATILE: Final = frozenset(
    [
        "id",
        "package_version",
        "predictor_sha256",
        "predictor_version",
        "request_id",
        "did_you_mean",
        "warnings",
        "detail",
    ]
)
"""Keys that depend on the build or on the day, and messages."""

Difference = tuple[str, object, object]


def load_cases() -> list[dict[str, Any]]:
    """Return the stored requests, each with its `path`, `body`, `status` and `answer`."""
    cases: list[dict[str, Any]] = json.loads(gzip.decompress(FILE.read_bytes()))
    return cases


@contextmanager
def serving(home: Path) -> Iterator[Client]:
    """Serve the shipped predictor on `DAY`, with an empty state folder."""
    app = create_app(Settings(home=home))
    app.dependency_overrides[today] = lambda: DAY
    with running(app) as client:
        yield client


def send(client: Client, case: dict[str, Any]) -> tuple[int, Any]:
    """Return status and answer of a stored request."""
    response = client.post(case["path"], case["body"])
    return response.status_code, response.json()


def differences(expected: Any, actual: Any, path: str = "") -> Iterator[Difference]:
    """Yield path, expected and actual value wherever answers differ by more than `TOLERANCE`."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        if expected.keys() != actual.keys():
            yield path, sorted(expected), sorted(actual)
        for key in expected.keys() & actual.keys():
            if key not in VOLATILE and not (key == "reason" and " " in str(expected[key])):
                yield from differences(expected[key], actual[key], f"{path}.{key}")
    elif isinstance(expected, list) and isinstance(actual, list):
        if len(expected) != len(actual):
            yield path, f"{len(expected)} items", f"{len(actual)} items"
        for i, (one, other) in enumerate(zip(expected, actual, strict=False)):
            yield from differences(one, other, f"{path}[{i}]")
    elif not _is_close(expected, actual):
        yield path, expected, actual


def _is_close(expected: object, actual: object) -> bool:
    if any(isinstance(x, bool) or not isinstance(x, int | float) for x in (expected, actual)):
        return type(expected) is type(actual) and expected == actual
    return math.isclose(expected, actual, rel_tol=TOLERANCE)  # type: ignore[arg-type]


def main() -> None:
    """Send every stored request again and store the answers."""
    cases = load_cases()
    with tempfile.TemporaryDirectory() as home, serving(Path(home)) as client:
        for case in cases:
            case["status"], case["answer"] = send(client, case)
    FILE.write_bytes(gzip.compress(json.dumps(cases).encode(), mtime=0))


if __name__ == "__main__":
    main()

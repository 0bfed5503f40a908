from pathlib import Path

import pytest

from roofcast.data.store.api_keys import KeyStore, digest_of
from roofcast.data.store.measurement_store import MeasurementStore
from roofcast.serving.app_state.settings import load_settings
from tests.serving.http_client import Run


def test_a_key_is_created_listed_and_revoked(run: Run) -> None:
    status, secret, err = run("keys", "create", "ci", "--scope", "write", "--expires-in-days", "30")
    assert status == 0
    assert secret.count("\n") == 1, "standard output has the key alone"
    assert "ci may write until" in err
    with MeasurementStore(load_settings().store_url) as store:
        key = KeyStore(store.database).find(digest_of(secret.strip()))
    assert key is not None
    assert key.expires_at is not None
    assert (key.expires_at - key.created_at).days == 30
    listed = run.json("keys", "list")
    assert [(row["name"], row["scope"], row["last_four"], row["state"]) for row in listed] == [
        ("ci", "write", secret.strip()[-4:], "valid")
    ]
    assert secret.strip() not in run("keys", "list")[1]
    assert "revoked" in run("keys", "revoke", "ci")[1]
    assert run.json("keys", "revoke", "ci")[0]["state"] == "revoked"


def test_a_created_key_is_printed_as_json(run: Run) -> None:
    key = run.json("keys", "create", "page", "--scope", "read")
    assert key["key"].endswith(key["last_four"])
    assert key["expires_at"] is None


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("revoke", "nobody"), "no 'nobody' is known"),
        (("create", "a b", "--scope", "read"), "letters, digits"),
        (("create", "a", "--scope", "read", "--expires-in-days", "0"), "longer than 0"),
        (("create", "a", "--scope", "root"), "--scope: must be one of read, write, admin, got 'root'"),
    ],
)
def test_invalid_key_commands_are_errors(run: Run, arguments: tuple[str, ...], problem: str, tmp_path: Path) -> None:
    assert problem in run.error("keys", *arguments)

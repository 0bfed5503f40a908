from __future__ import annotations

import json
from pathlib import Path

import pytest

from roofcast.data.store.api_keys import KeyStore, digest_of
from roofcast.data.store.measurement_store import MeasurementStore
from roofcast.serving.app_state.settings import load_settings
from tests.serving.http_client import Run


def test_a_key_is_made_listed_and_revoked(run: Run) -> None:
    status, secret, said = run("keys", "create", "ci", "--scope", "write", "--expires-in-days", "30")
    assert status == 0
    assert secret.count("\n") == 1, "the key alone, so that a shell can keep it"
    assert "ci may write until" in said
    with MeasurementStore(load_settings().store_url) as store:
        key = KeyStore(store.database).find(digest_of(secret.strip()))
    assert key is not None
    assert key.expires_at is not None
    assert (key.expires_at - key.created_at).days == 30
    listed = json.loads(run("keys", "list", "--json")[1])
    assert [(row["name"], row["scope"], row["last_four"], row["state"]) for row in listed] == [
        ("ci", "write", secret.strip()[-4:], "valid")
    ]
    assert secret.strip() not in run("keys", "list")[1]
    assert "revoked" in run("keys", "revoke", "ci")[1]
    assert json.loads(run("keys", "revoke", "ci", "--json")[1])[0]["state"] == "revoked"


def test_a_key_as_json(run: Run) -> None:
    made = json.loads(run("keys", "create", "page", "--scope", "read", "--json")[1])
    assert made["key"].endswith(made["last_four"])
    assert made["expires_at"] is None


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("revoke", "nobody"), "no 'nobody' is known"),
        (("create", "a b", "--scope", "read"), "letters, digits"),
        (("create", "a", "--scope", "read", "--expires-in-days", "0"), "longer than 0"),
        (("create", "a", "--scope", "root"), "Invalid value for '--scope'"),
    ],
)
def test_what_cannot_be_is_told(run: Run, arguments: tuple[str, ...], problem: str, tmp_path: Path) -> None:
    status, _, said = run("keys", *arguments)
    assert status == 2
    assert problem in said

import datetime as dt
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from roofcast.data.errors import InputError, UnknownNameError
from roofcast.data.store.api_keys import PREFIX, SCOPES, ApiKey, KeyStore, digest_of
from roofcast.data.store.measurement_store import MeasurementStore
from tests.data.store.stores import url_of

NOW = dt.datetime.now(dt.UTC)
DAY = dt.timedelta(days=1)


@pytest.fixture(params=["file", pytest.param("postgresql", marks=pytest.mark.slow)])
def keys(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KeyStore]:
    with MeasurementStore(url_of(request.param, tmp_path, request)) as store:
        yield KeyStore(store.migrate().database)


def test_a_key_is_found_only_by_its_secret(keys: KeyStore) -> None:
    key, secret = keys.create("ci", "write", DAY)
    other, _ = keys.create("page", "read")
    assert secret.startswith(PREFIX)
    assert len(secret) >= len(PREFIX) + 43
    assert (key.last_four, key.state, key.scope) == (secret[-4:], "valid", "write")
    assert keys.find(digest_of(secret)) == key
    assert keys.find(digest_of(secret + "x")) is None
    assert keys.load() == [key, other]
    assert other.expires_at is None


def test_a_revoked_key_is_listed_and_its_name_is_reserved(keys: KeyStore) -> None:
    _, secret = keys.create("ci", "write")
    revoked = keys.revoke("ci")
    assert revoked.state == "revoked"
    assert keys.revoke("ci") == revoked
    assert keys.find(digest_of(secret)) == revoked
    with pytest.raises(InputError, match="choose another name"):
        keys.create("ci", "read")
    with pytest.raises(UnknownNameError, match="did you mean 'ci'"):
        keys.revoke("c")


def test_names_are_printable(keys: KeyStore) -> None:
    for name in ("", "a b", "-x", "a\n", "é", "x" * 101):
        with pytest.raises(InputError, match="must be up to 100 letters"):
            keys.create(name, "read")


def test_a_lifetime_out_of_range_is_refused(keys: KeyStore) -> None:
    for lifetime in (dt.timedelta(), -DAY):
        with pytest.raises(InputError, match="longer than 0"):
            keys.create("ci", "read", lifetime)
    with pytest.raises(InputError, match="before the year 10000"):
        keys.create("ci", "read", dt.timedelta(days=9_999_999))


def test_scopes_include_the_lesser_ones() -> None:
    assert SCOPES == ("read", "write", "admin")
    allowed = {scope: [lesser for lesser in SCOPES if ApiKey("k", scope, "", NOW).may(lesser)] for scope in SCOPES}
    assert allowed == {"read": ["read"], "write": ["read", "write"], "admin": ["read", "write", "admin"]}


def test_a_key_expires() -> None:
    assert ApiKey("k", "read", "", NOW - DAY, NOW).state == "expired"
    assert ApiKey("k", "read", "", NOW, NOW + DAY).state == "valid"
    assert ApiKey("k", "read", "", NOW - DAY, NOW, NOW).state == "revoked"


def test_the_database_holds_no_secret(tmp_path: Path) -> None:
    file = tmp_path / "state.sqlite"
    with MeasurementStore(f"sqlite:///{file}") as store:
        _, secret = KeyStore(store.migrate().database).create("ci", "admin")
    connection = sqlite3.connect(file)
    dumped = "\n".join(connection.iterdump())
    connection.close()
    assert digest_of(secret) in dumped
    assert secret not in dumped
    assert secret.removeprefix(PREFIX) not in dumped

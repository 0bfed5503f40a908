"""API keys: random secrets, shown once, of which the database holds only a SHA-256 digest."""

import datetime as dt
import hashlib
import re
import secrets
from dataclasses import asdict, dataclass
from typing import Final, Literal, get_args

import sqlalchemy as sa

from roofcast.data.errors import InputError, UnknownNameError
from roofcast.data.store.database.database import Database
from roofcast.data.store.database.tables import API_KEY

Scope = Literal["read", "write", "admin"]
State = Literal["valid", "expired", "revoked"]

SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)
"""In ascending order: each scope includes those before it."""

PREFIX: Final = "roofcast_"
"""Prefix by which secret scanners recognise a leaked key."""

N_SECRET_BYTE: Final = 32
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_COLUMNS: Final = [column for column in API_KEY.c if column.name != "digest"]


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key's record, without its secret."""

    name: str
    scope: Scope
    last_four: str
    created_at: dt.datetime
    expires_at: dt.datetime | None = None
    revoked_at: dt.datetime | None = None

    @property
    def state(self) -> State:
        """State now: valid, expired or revoked."""
        if self.revoked_at is not None:
            return "revoked"
        is_over = self.expires_at is not None and self.expires_at <= dt.datetime.now(dt.UTC)
        return "expired" if is_over else "valid"

    def may(self, scope: Scope) -> bool:
        """Return whether the key's scope includes another."""
        return SCOPES.index(self.scope) >= SCOPES.index(scope)


class KeyStore:
    """API keys in a database; every method is one transaction.

    All raise `NotReadyError` if the database cannot be used.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, name: str, scope: Scope, lifetime: dt.timedelta | None = None) -> tuple[ApiKey, str]:
        """Return a new key and its secret, which is not stored.

        `name`: holder of the key, for logs. `lifetime`: time until it expires; None for a key that does not expire.
        Raises `InputError` if the name is malformed or taken, also by a revoked key, or the lifetime is not positive
        or too long.
        """
        if not _NAME.fullmatch(name):
            raise InputError("name", f"must be up to 100 letters, digits, dots, dashes or underscores, got {name!r}")
        secret = PREFIX + secrets.token_urlsafe(N_SECRET_BYTE)
        key = ApiKey(name, scope, secret[-4:], *_lifespan(lifetime))
        try:
            with self._database.writing() as connection:
                connection.execute(sa.insert(API_KEY), {**asdict(key), "digest": digest_of(secret)})
        except sa.exc.IntegrityError as error:
            raise InputError("name", f"there is a key called {name!r}; choose another name") from error
        return key, secret

    def load(self) -> list[ApiKey]:
        """Return all keys, expired and revoked ones too, the oldest first."""
        query = sa.select(*_COLUMNS).order_by(API_KEY.c.created_at, API_KEY.c.name)
        with self._database.reading() as connection:
            return [ApiKey(**row) for row in connection.execute(query).mappings()]

    def revoke(self, name: str) -> ApiKey:
        """Revoke a key and return it; the date of an earlier revocation stays.

        Raises `UnknownNameError` if there is no such key.
        """
        is_due = (API_KEY.c.name == name) & API_KEY.c.revoked_at.is_(None)
        with self._database.writing() as connection:
            connection.execute(sa.update(API_KEY).where(is_due).values(revoked_at=dt.datetime.now(dt.UTC)))
            row = connection.execute(sa.select(*_COLUMNS).where(API_KEY.c.name == name)).mappings().one_or_none()
            known = connection.execute(sa.select(API_KEY.c.name)).scalars().all()
        if row is None:
            raise UnknownNameError("name", name, known)
        return ApiKey(**row)

    def find(self, digest: str) -> ApiKey | None:
        """Return the key of a digest, whatever its state; None if there is none."""
        with self._database.reading() as connection:
            row = connection.execute(sa.select(*_COLUMNS).where(API_KEY.c.digest == digest)).mappings().one_or_none()
        return ApiKey(**row) if row else None


def digest_of(secret: str) -> str:
    """Return the SHA-256 digest of a secret, by which its key is stored and found.

    A fast hash is enough: the secret has 256 random bits. The lookup by digest takes a time that reveals nothing of
    the secret.

    Examples
    --------
    >>> digest_of("a")[:8]
    'ca978112'
    """
    return hashlib.sha256(secret.encode()).hexdigest()


def _lifespan(lifetime: dt.timedelta | None) -> tuple[dt.datetime, dt.datetime | None]:
    now = dt.datetime.now(dt.UTC)
    if lifetime is None:
        return now, None
    if lifetime <= dt.timedelta():
        raise InputError("lifetime", f"must be longer than 0, got {lifetime}")
    try:
        return now, now + lifetime
    except OverflowError as error:
        raise InputError("lifetime", f"must end before the year 10000, got {lifetime}") from error

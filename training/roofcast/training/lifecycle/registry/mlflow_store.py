"""MLflow's store: its address for MLflow's module-level functions, and the error of one that does not answer."""

# ruff: noqa: PLC0415  (MLflow takes seconds to import)

import contextlib
import os
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from roofcast.data.errors import NotReadyError
from roofcast.data.private_files import close_to_others

URI_VARIABLE: Final = "MLFLOW_TRACKING_URI"

CONTENT: Final = frozenset({"experiments", "runs", "registered_models"})
"""Tables of which one holds rows in each store whose creation has ended: MLflow adds an experiment last."""

WHOLE: Final = frozenset({"alembic_version", "experiments"})
"""Tables that hold rows in a new store."""

_IMPORTING: Final = threading.Lock()


def import_mlflow() -> None:
    """Import MLflow; two threads that import parts of it at once would meet modules that are half loaded."""
    with _IMPORTING:
        import mlflow.tracking  # noqa: F401


def set_mlflow_uri(uri: str) -> None:
    """Set the store of MLflow's module-level functions.

    MLflow also sets `URI_VARIABLE`, which is a user setting of roofcast; its previous value is restored.
    """
    import_mlflow()
    import mlflow

    before = os.environ.get(URI_VARIABLE)
    mlflow.set_tracking_uri(uri)
    mlflow.set_registry_uri(uri)
    if before is None:
        os.environ.pop(URI_VARIABLE, None)
    else:
        os.environ[URI_VARIABLE] = before


@contextlib.contextmanager
def reachable(uri: str) -> Iterator[None]:
    """Raise `NotReadyError` with the store's address if the store does not answer."""
    import_mlflow()
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (OSError, sqlite3.Error, SQLAlchemyError) as error:
        raise NotReadyError(f"the MLflow store {uri} does not answer: {error}") from error
    except MlflowException as error:
        if error.error_code in {"TEMPORARILY_UNAVAILABLE", "INTERNAL_ERROR"}:
            raise NotReadyError(f"the MLflow store {uri} does not answer: {error}") from error
        raise


def create_store(file: Path) -> None:
    """Create an embedded store, which its owner alone may read, unless it exists; the caller locks the creation.

    It gets its name once it is whole: MLflow commits table by table, and cannot continue where it was killed. Each
    attempt has a draft of its own, because MLflow keeps its connections to an address for the life of the process.

    Raises `NotReadyError` if MLflow has not made its tables in the draft.
    """
    if file.exists() and file.stat().st_size and _filled(file) & CONTENT:
        close_to_others(file)
        return
    import_mlflow()
    from mlflow.tracking import MlflowClient

    draft = f"{file.name}.new"
    for stale in (file.with_name(draft), *file.parent.glob(f"{draft}-*")):
        stale.unlink(missing_ok=True)
    handle, name = tempfile.mkstemp(prefix=f"{draft}-", dir=file.parent)
    os.close(handle)
    with contextlib.closing(sqlite3.connect(name)) as database:
        database.execute("PRAGMA user_version = 0")
    uri = f"sqlite:///{name}"
    MlflowClient(tracking_uri=uri, registry_uri=uri).search_experiments(max_results=1)
    if not _filled(Path(name)) >= WHOLE:
        raise NotReadyError(f"MLflow has not made its tables in {name}; try again")
    Path(name).replace(file)


def _filled(file: Path) -> set[str]:
    with contextlib.closing(sqlite3.connect(file)) as database:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        found = tables & (CONTENT | WHOLE)
        return {table for table in found if database.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone()}  # noqa: S608

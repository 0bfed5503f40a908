"""What the state folder holds without a predictor: the measurement store, and the models that it knows.

Imports none of the learning libraries, which take seconds: what only lists does not wait for them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from roofcast.data.catalog import Catalog
from roofcast.data.errors import NotReadyError, SchemaError, UnknownNameError
from roofcast.data.specs import ModelSpec
from roofcast.serving.app_state.settings import Settings

if TYPE_CHECKING:
    from roofcast.data.store.measurement_store import MeasurementStore

logger = logging.getLogger(__name__)


def open_store(settings: Settings) -> MeasurementStore:
    """Return the measurement store of these settings, its schema up to date.

    Raises
    ------
    NotReadyError
        If the state folder cannot be made or the store cannot be opened.
    """
    from roofcast.data.store.measurement_store import MeasurementStore  # noqa: PLC0415  (needs SQLAlchemy)

    make_home(settings.home)
    return MeasurementStore(settings.store_url).migrate()


def make_home(home: Path) -> Path:
    """Return the state folder, which is there from now on.

    Raises
    ------
    NotReadyError
        If it cannot be made.
    """
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = f"the state folder {home} cannot be made: {error.strerror}"
        raise NotReadyError(f"{problem}; set ROOFCAST_HOME to one that can") from error
    return home


def find_model(catalog: Catalog, name: str) -> ModelSpec | None:
    """Return the model of this name, or None if there is none."""
    try:
        return catalog.model(name)
    except UnknownNameError:
        return None


def with_registered(catalog: Catalog, registered: Iterable[ModelSpec]) -> Catalog:
    """Return the catalogue with the models registered in a store; a name that it knows stays its own.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> known = load_catalog().model("llama-3.1-8b")
    >>> mine = known.model_copy(update={"id": "my-8b"})
    >>> both = with_registered(load_catalog(), [mine, known.model_copy(update={"n_layer": 1})])
    >>> both.model("my-8b").n_layer, both.model("llama-3.1-8b").n_layer
    (32, 32)
    """
    free = [spec for spec in registered if find_model(catalog, spec.id) is None]
    try:
        return catalog.with_models(free)
    except SchemaError as error:
        logger.warning("models whose names collide are left out: %s", error)
    for spec in free:
        if find_model(catalog, spec.id) is None:
            catalog = catalog.with_models([spec])
    return catalog

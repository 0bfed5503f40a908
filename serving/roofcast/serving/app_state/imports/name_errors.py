"""Check of the names in an import against the catalogue."""

import functools
from collections.abc import Callable, Iterable

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError, UnknownNameError
from roofcast.data.importers.name_check import NameCheck
from roofcast.data.measurements.target import INFERENCE
from roofcast.features.columns import ENGINES
from roofcast.features.validity.engine_choice import is_engine, unknown_engine_error
from roofcast.serving.app_state.catalog.live_catalog import LiveCatalog
from roofcast.serving.app_state.catalog.model_admission import Config, with_configs

HTTP_CURE = (
    "send the config.json of a model of your own in `models` of POST /v1/measurements; GET /v1/models lists all"
)


def check_names(
    catalogs: LiveCatalog,
    configs: Iterable[tuple[str, Config]] = (),
    *,
    dry_run: bool = False,
    model_cure: Callable[[str], str] = lambda _: HTTP_CURE,
) -> NameCheck:
    """Return the check of the names in rows; it loads the catalogue at the first name.

    An unknown engine is stored, so it refuses no import; an import that is refused for another reason lists it too.

    - `configs`: Name and ``config.json`` of each model that the catalogue does not have.
    - `dry_run`: Whether the store is neither created nor migrated.
    - `model_cure`: Returns how to import a model of an unknown name; the first such error says it.
    """

    @functools.cache
    def catalog() -> Catalog:
        known = catalogs.unmigrated_catalog() if dry_run else catalogs.catalog_of(INFERENCE)
        return with_configs(known, configs)[0]

    unknown_models: list[str] = []

    def find_model(name: str) -> InputError | None:
        if catalog().knows_model(name) or (error := _unknown(catalog().model, name)) is None:
            return None
        unknown_models.append(name)
        if len(unknown_models) > 1:
            return error
        cured = InputError(error.field, f"{error.problem}; {model_cure(name)}")
        cured.near = error.near
        return cured

    def find_accelerator(name: str) -> InputError | None:
        return None if catalog().knows_accelerator(name) else _unknown(catalog().accelerator, name)

    def find_engine(name: str) -> InputError | None:
        return None if is_engine(name, ENGINES) else unknown_engine_error(name, ENGINES)

    return NameCheck({"model": find_model, "accelerator": find_accelerator}, {"engine": find_engine})


def _unknown(find: Callable[[str], object], name: str) -> InputError | None:
    try:
        find(name)
    except UnknownNameError as error:
        return error
    return None

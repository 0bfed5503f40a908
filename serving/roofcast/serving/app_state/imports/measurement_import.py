"""Import of measurements of any target into the store: check of their names, and comparison with the champion."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypedDict, TypeVar, Unpack

import pandas as pd

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError, RoofcastError, UnknownNameError
from roofcast.data.importers.name_check import NameCheck
from roofcast.data.measurements.target import INFERENCE, Target
from roofcast.features.columns import ENGINES
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.features.validity.engine_choice import is_engine, unknown_engine_error
from roofcast.features.validity.plausibility import millisecond_columns
from roofcast.serving.abandonment import AbandonedError
from roofcast.serving.app_state.catalog.live_catalog import Config, LiveCatalog, with_configs
from roofcast.serving.app_state.store_access import StoreAccess
from roofcast.serving.predict.row_checks import fill_copy_format
from roofcast.training.dataset.estimate_ratios import estimate_ratios
from roofcast.training.lifecycle.shipped import shipped_limits

if TYPE_CHECKING:
    from roofcast.data.store.measurement_store import Added
    from roofcast.data.store.provenance import Origin

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


Report = TypeVar("Report")

Check = Callable[[Catalog], tuple[pd.DataFrame, pd.Series]]
"""Returns rows with ids of the catalogue, and why each is in quarantine; blank if it is not."""

logger = logging.getLogger(__name__)


class ImportOptions(TypedDict, total=False):
    """Options of an import.

    - `origin`: Who imports; None for the operator.
    - `dry_run`: Count only: nothing is written, created or migrated.
    - `claim_of_keys`: Whether rows that API keys own become the operator's, if the operator imports them; they stay
      the keys' otherwise.
    """

    origin: Origin | None
    dry_run: bool
    claim_of_keys: bool


def import_checked(
    stores: StoreAccess,
    catalogs: LiveCatalog,
    target: Target,
    check: Check,
    configs: Iterable[tuple[str, Config]] = (),
    **options: Unpack[ImportOptions],
) -> Added:
    """Store rows and the models of named configurations; return the numbers of new and known rows.

    All rows are stored, or none. Training leaves out rows in quarantine until they are confirmed.

    `check`: its errors escape. `configs`: name and ``config.json`` of each model that the catalogue does not have.
    Raises `InputError` if a configuration is not a language model's, another model has its name, too many models are
    registered, or a registered model was removed meanwhile; `NotReadyError` if the store cannot be read or written.
    """
    origin, is_claim = options.get("origin"), options.get("claim_of_keys", False)
    if options.get("dry_run"):
        rows, reasons = check(with_configs(catalogs.unmigrated_catalog(target), configs)[0])
        with stores.unmigrated() as store:
            return store.of(target).compare(rows, origin, reasons, claim_of_keys=is_claim)
    new = catalogs.admit_models(configs, origin.limited_key if origin else "", target)
    (rows, reasons), measurements = check(new.catalog), stores.open().of(target)
    added = measurements.add(rows, new.models, origin, reasons, claim_of_keys=is_claim, registered=new.registered)
    if new.models:
        catalogs.refresh()
    return added


def import_rows(
    stores: StoreAccess,
    catalogs: LiveCatalog,
    table: pd.DataFrame,
    configs: Iterable[tuple[str, Config]] = (),
    **options: Unpack[ImportOptions],
) -> Added:
    """Store validated measurements of inference: see `import_checked`.

    Names of models and accelerators are replaced by ids of the catalogue. Rows far from what others measured on alike
    stacks are in quarantine.

    Raises `UnknownNameError` if a row has an unknown model or accelerator. Raises `InputError` as of
    `import_checked`; or if latencies are in milliseconds.
    """

    def check(catalog: Catalog) -> tuple[pd.DataFrame, pd.Series]:
        rows, descriptors = _resolve(table, catalog)
        return rows, shipped_limits(INFERENCE).reasons(rows, estimate_ratios(rows, descriptors))

    return import_checked(stores, catalogs, INFERENCE, check, configs, **options)


def _resolve(table: pd.DataFrame, catalog: Catalog) -> tuple[pd.DataFrame, pd.DataFrame]:
    specs = {name: catalog.model(name) for name in table["model"].unique()}
    accelerators = {name: catalog.accelerator(name).id for name in table["accelerator"].unique()}
    stated = {name: table[name].to_numpy() for name in ("weight_precision", "weight_bit")}
    filled = fill_copy_format(stated, table["model"].to_numpy(), specs, catalog)
    resolved = table.assign(
        model=table["model"].map({name: spec.id for name, spec in specs.items()}),
        accelerator=table["accelerator"].map(accelerators),
        **{name: pd.Series(cells, table.index, dtype=table[name].dtype) for name, cells in filled.items()},
    )
    descriptors = describe(resolved, catalog.models, catalog.accelerators)
    for column, ratio in millisecond_columns(resolved, descriptors).items():
        problem = f"looks like milliseconds: the median is {ratio:,.0f} times the analytic estimate"
        raise InputError(column, f"{problem}; give seconds")
    return resolved, descriptors


def compare_if_possible(added: Added, compare: Callable[[str], Report]) -> Report | None:
    """Return what `compare` reports of the id of an import; None if it claims no row or cannot be compared.

    The rows are stored already, so the reason is logged, and no error escapes but `AbandonedError`.
    """
    if not added.n_new + added.n_claimed:
        return None
    try:
        return compare(added.import_id)
    except RoofcastError as error:
        logger.warning("import not compared with the predictor, import_id=%s: %s", added.import_id, error)
    except AbandonedError:
        raise
    except Exception:
        logger.exception("import not compared with the predictor, import_id=%s", added.import_id)
    return None

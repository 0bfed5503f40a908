"""Import of measured rows into the store, for HTTP and command line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pandas as pd

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError
from roofcast.data.measurements.target import INFERENCE
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.features.validity.plausibility import millisecond_columns
from roofcast.serving.app_state.catalog.live_catalog import LiveCatalog
from roofcast.serving.app_state.catalog.registered_models import Config, with_configs
from roofcast.serving.app_state.store_access import StoreAccess
from roofcast.serving.predict.row_checks import fill_copy_precision
from roofcast.training.dataset.estimate_ratios import estimate_ratios
from roofcast.training.lifecycle.shipped import shipped_limits

if TYPE_CHECKING:
    from roofcast.data.store.measurement_store import Added
    from roofcast.data.store.provenance import Origin


def import_rows(
    stores: StoreAccess,
    catalogs: LiveCatalog,
    table: pd.DataFrame,
    configs: Iterable[tuple[str, Config]] = (),
    *,
    origin: Origin | None = None,
    dry_run: bool = False,
    claim_of_keys: bool = False,
) -> Added:
    """Store measurements and the models of named configurations; return the numbers of new and known rows.

    All rows are stored, or none. Names of models and accelerators are replaced by ids of the catalogue. Rows far from
    what others measured on alike stacks are in quarantine: training leaves them out until they are confirmed.

    Parameters
    ----------
    table
        Validated measurements.
    configs
        Name and ``config.json`` of each model that the catalogue does not have.
    origin
        Who imports; None for the operator.
    dry_run
        Count only: nothing is written, created or migrated.
    claim_of_keys
        Whether rows that API keys own become the operator's, if the operator imports them; they stay the keys'
        otherwise.

    Raises
    ------
    UnknownNameError
        If a row has an unknown model or accelerator.
    InputError
        If a configuration is not a language model's, another model has its name, too many models are registered, a
        registered model was removed meanwhile, or latencies are in milliseconds.
    NotReadyError
        If the store cannot be read or written.
    """
    if dry_run:
        return _count_rows(stores, catalogs, table, configs, origin, claim_of_keys=claim_of_keys)
    new = catalogs.admit_models(configs, origin.limited_key if origin else "")
    rows, descriptors = _resolve(table, new.catalog)
    reasons = shipped_limits(INFERENCE).reasons(rows, estimate_ratios(rows, descriptors))
    added = stores.open().add(
        rows, new.models, origin, reasons, claim_of_keys=claim_of_keys, registered=new.registered
    )
    if new.models:
        catalogs.reload_models()
    return added


def _count_rows(
    stores: StoreAccess,
    catalogs: LiveCatalog,
    table: pd.DataFrame,
    configs: Iterable[tuple[str, Config]],
    origin: Origin | None,
    *,
    claim_of_keys: bool,
) -> Added:
    catalog, _ = with_configs(catalogs.unmigrated_catalog(), configs)
    with stores.unmigrated() as store:
        rows, descriptors = _resolve(table, catalog)
        reasons = shipped_limits(INFERENCE).reasons(rows, estimate_ratios(rows, descriptors))
        return store.compare(rows, origin, reasons, claim_of_keys=claim_of_keys)


def _resolve(table: pd.DataFrame, catalog: Catalog) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows with ids of the catalogue and the precision of quantised copies, and their descriptors.

    Raises
    ------
    UnknownNameError
        If a model or accelerator is unknown.
    InputError
        If a median latency is about 1,000 times the analytic estimate: milliseconds, not seconds.
    """
    specs = {name: catalog.model(name) for name in table["model"].unique()}
    accelerators = {name: catalog.accelerator(name).id for name in table["accelerator"].unique()}
    precision = table["weight_precision"]
    filled = fill_copy_precision(precision.to_numpy(dtype=object), table["model"].to_numpy(), specs, catalog)
    resolved = table.assign(
        model=table["model"].map({name: spec.id for name, spec in specs.items()}),
        accelerator=table["accelerator"].map(accelerators),
        weight_precision=pd.Series(filled, table.index, dtype=precision.dtype),
    )
    descriptors = describe(resolved, catalog.models, catalog.accelerators)
    for column, ratio in millisecond_columns(resolved, descriptors).items():
        problem = f"looks like milliseconds: the median is {ratio:,.0f} times the analytic estimate"
        raise InputError(column, f"{problem}; give seconds")
    return resolved, descriptors

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
from roofcast.serving.app_state.catalog.model_admission import Config
from roofcast.serving.app_state.imports.checked_import import CheckedRows, import_checked
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
    """Store measurements and the models of named configurations: see `import_checked`.

    Names of models and accelerators are replaced by ids of the catalogue. Rows far from what others measured on alike
    stacks are in quarantine.

    Parameters
    ----------
    table
        Validated measurements.
    configs, origin, dry_run, claim_of_keys
        As of `import_checked`.

    Raises
    ------
    UnknownNameError
        If a row has an unknown model or accelerator.
    InputError
        As of `import_checked`; or if latencies are in milliseconds.
    NotReadyError
        If the store cannot be read or written.
    """

    def check(catalog: Catalog) -> CheckedRows:
        rows, descriptors = _resolve(table, catalog)
        return CheckedRows(rows, shipped_limits(INFERENCE).reasons(rows, estimate_ratios(rows, descriptors)))

    return import_checked(
        stores,
        catalogs,
        INFERENCE,
        check,
        configs,
        origin=origin,
        dry_run=dry_run,
        claim_of_keys=claim_of_keys,
    )


def _resolve(table: pd.DataFrame, catalog: Catalog) -> tuple[pd.DataFrame, pd.DataFrame]:
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

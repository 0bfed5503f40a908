"""Import of rows of any target into the store, once they are checked against the catalogue."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from roofcast.data.catalog import Catalog
from roofcast.data.measurements.target import Target
from roofcast.serving.app_state.catalog.live_catalog import LiveCatalog
from roofcast.serving.app_state.catalog.model_admission import Config, with_configs
from roofcast.serving.app_state.store_access import StoreAccess

if TYPE_CHECKING:
    from roofcast.data.store.measurement_store import Added
    from roofcast.data.store.provenance import Origin


@dataclass(frozen=True, slots=True)
class CheckedRows:
    """Rows with ids of the catalogue, and why each is in quarantine; blank if it is not."""

    rows: pd.DataFrame
    reasons: pd.Series


def import_checked(
    stores: StoreAccess,
    catalogs: LiveCatalog,
    target: Target,
    check: Callable[[Catalog], CheckedRows],
    configs: Iterable[tuple[str, Config]] = (),
    *,
    origin: Origin | None = None,
    dry_run: bool = False,
    claim_of_keys: bool = False,
) -> Added:
    """Store rows and the models of named configurations; return the numbers of new and known rows.

    All rows are stored, or none. Training leaves out rows in quarantine until they are confirmed.

    Parameters
    ----------
    check
        Returns the checked rows by the catalogue with these models; its errors escape.
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
    InputError
        If a configuration is not a language model's, another model has its name, too many models are registered, or
        a registered model was removed meanwhile.
    NotReadyError
        If the store cannot be read or written.
    """
    if dry_run:
        checked = check(with_configs(catalogs.unmigrated_catalog(target), configs)[0])
        with stores.unmigrated() as store:
            return store.of(target).compare(checked.rows, origin, checked.reasons, claim_of_keys=claim_of_keys)
    new = catalogs.admit_models(configs, origin.limited_key if origin else "", target)
    checked, measurements = check(new.catalog), stores.open().of(target)
    added = measurements.add(
        checked.rows, new.models, origin, checked.reasons, claim_of_keys=claim_of_keys, registered=new.registered
    )
    if new.models:
        catalogs.refresh()
    return added

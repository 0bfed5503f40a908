"""What imported rows are good for: those that the next training uses, and what is doubtful in them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import pandas as pd

from roofcast.data.campaigns import CAMPAIGNS, load_campaigns
from roofcast.data.catalog import Catalog
from roofcast.data.errors import near_misses
from roofcast.data.measurements.validation import row_ids
from roofcast.features.columns import ENGINES
from roofcast.serving.display_names import count_text
from roofcast.training.dataset.review import review
from roofcast.training.dataset.training_set import TRAINED_ON

if TYPE_CHECKING:
    from roofcast.data.store.measurement_store import Added
    from roofcast.data.store.provenance import Action

COMES_WITH_PACKAGE: Final = "comes_with_package"
"""Rule of a row that is also a row of a shipped campaign."""

QUARANTINED: Final = "quarantined"
"""State of rows that no training uses before they are confirmed, and their rule."""


def own_campaign_report(stored: pd.DataFrame, catalog: Catalog) -> list[dict[str, Any]]:
    """Return a row for each imported campaign, with the columns of `review.campaign_report`.

    An import stores all rows of a file or none; the number of rows read is not recorded. The rules that compare rows
    do so within a model and an accelerator, so that only the shipped rows of those are reviewed beside.

    `stored`: all measurements of the store, with their `state`; withdrawn ones do not count.
    """
    stored = stored[stored["state"] != "withdrawn"]
    if stored.empty:
        return []
    shipped = load_campaigns(TRAINED_ON)
    shipped = shipped[_setups(shipped).isin(_setups(stored))]
    is_held = stored["state"] == QUARANTINED
    is_new = ~pd.Series(row_ids(stored), index=stored.index).isin(row_ids(shipped)) & ~is_held
    rows = pd.concat([shipped, stored.loc[is_new, shipped.columns]], ignore_index=True)
    rejected = review(rows, catalog.models, catalog.accelerators)["rule"]
    own_rejected = rejected[rejected.index >= len(shipped)]
    rules = (
        pd.Series(COMES_WITH_PACKAGE, index=stored.index, dtype=object).mask(is_new, "").mask(is_held, QUARANTINED)
    )
    rules.loc[stored.index[is_new][own_rejected.index - len(shipped)]] = own_rejected.to_numpy()
    return [_row(str(name), rules[stored["campaign"] == name]) for name in sorted(stored["campaign"].unique())]


def _setups(rows: pd.DataFrame) -> pd.Series:
    return rows["model"] + "\n" + rows["accelerator"]


def _row(name: str, rules: pd.Series) -> dict[str, Any]:
    counts = rules[rules != ""].value_counts()
    return {
        "campaign": name,
        "n_read": None,
        "n_rejected": 0,
        "n_kept": len(rules),
        "n_learnable": len(rules) - int(counts.sum()),
        "rejected": "",
        "not_learnt": ", ".join(f"{rule} {n}" for rule, n in counts.items()),
    }


Caller = Literal["command", "http"]

_VERBS: Final[dict[Action, str]] = {"withdrawal": "withdraw", "restoration": "restore", "confirmation": "confirm"}


def count_failed_runs(table: pd.DataFrame) -> int:
    """Return the number of runs without an outcome, which have one row each."""
    return int((table["status"] != "ok").sum())


def import_warnings(table: pd.DataFrame) -> Iterator[str]:
    """Yield what is doubtful in validated measurements."""
    n_blank = int((table["engine"] == "").sum())
    if n_blank:
        cure = "set the engine that was measured, such as --set engine=vllm; rows stored without it stay stored"
        yield f"engine: is blank in {n_blank} of {count_text(len(table), 'row')}; {cure}"
    for name in sorted(set(table["engine"]) - {*ENGINES, ""}):
        near = near_misses(name, ENGINES, 1)
        question = f"; did you mean {near[0]}?" if near else ""
        unknown = f"{name!r} is not an engine of the shipped measurements, and is stored under this name"
        yield f"engine: {unknown}{question}"
    for name in sorted(set(table["campaign"]) & set(CAMPAIGNS)):
        yield f"campaign: {name!r} is also the name of a shipped campaign; choose another name with --campaign"
    yield from _failures(table)


@dataclass(frozen=True)
class _Cures:
    caller: Caller
    import_id: str

    def change(self, action: Action) -> str:
        command = f"`roofcast measurements {_VERBS[action]} --import {self.import_id}`"
        request = f'POST /v1/measurements/{action}s with {{"import_id": "{self.import_id}"}}'
        return command if self.caller == "command" else f"{request} or {command}"

    def claim(self) -> str:
        return "--claim" if self.caller == "command" else "?claim=true"


def added_warnings(added: Added, caller: Caller) -> Iterator[str]:
    """Yield which rows of an import teach nothing or are a key's, with the cure; of a dry run, what would be."""
    cures, is_dry = _Cures(caller, added.import_id), not added.import_id
    if added.n_quarantined:
        are = f"{'would be' if is_dry else _are(added.n_quarantined)} in quarantine"
        far = "far from what others measured, and no training uses them before a confirmation"
        reasons = "; ".join(added.quarantine_reasons)
        cure = "confirm them after the import" if is_dry else cures.change("confirmation")
        yield f"{count_text(added.n_quarantined, 'row')} {are}: {far}. {reasons}. If they are right: {cure}"
    yield from _key_warnings(added, cures, is_dry=is_dry)
    if added.n_withdrawn:
        how = "`roofcast measurements restore`"
        how = how if caller == "command" else f"POST /v1/measurements/restorations or {how}"
        rows = f"{count_text(added.n_withdrawn, 'row')} withdrawn before, and still so"
        yield f"{rows}: no training uses them; {how} undoes a withdrawal, an operator's by an operator alone"


def _key_warnings(added: Added, cures: _Cures, *, is_dry: bool) -> Iterator[str]:
    n_row = sum(added.n_of_key.values())
    if not n_row:
        return
    keys = ", ".join(f"{name!r} ({n})" for name, n in added.n_of_key.items())
    rows = f"{count_text(n_row, 'row')} {_are(n_row)} stored by the key{'s' * (len(added.n_of_key) > 1)} {keys}"
    if not added.n_claimed:
        stay = "not claimed by this import: with the limited weight of a key, and until it withdraws them"
        yield f"{rows} and {stay}; to make them the operator's, import again with {cures.claim()}"
    elif is_dry:
        yield f"{rows}; the import would make them the operator's, as measurements of the service's own stack"
    else:
        also = f", and withdraws the {count_text(added.n_new, 'new row')} of the import too" if added.n_new else ""
        undo = f"{cures.change('withdrawal')} gives them back{also}"
        yield f"{rows}, and now the operator's, as measurements of the service's own stack; {undo}"


def _are(n: int) -> str:
    return "is" if n == 1 else "are"


def _failures(table: pd.DataFrame) -> Iterator[str]:
    n_failed_run = count_failed_runs(table)
    if n_failed_run:
        kinds = ", ".join(f"{n} {status}" for status, n in table["status"].value_counts().items() if status != "ok")
        yield f"status: {count_text(n_failed_run, 'failed run')} ({kinds}), without an outcome"
    done = table[(table["status"] == "ok") & (table["n_failed"] > 0)]
    if len(done):
        share = float((done["n_failed"] / done["n_request"]).max())
        most: str = "" if math.isnan(share) else f", of a run up to {share:.1%}"
        yield f"n_failed: {count_text(len(done), 'row')} of runs with failed requests{most}"

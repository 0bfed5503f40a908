"""What is doubtful in imported rows: names, failed runs, quarantine, rows of keys and withdrawn rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import pandas as pd

from roofcast.data.campaigns import CAMPAIGNS
from roofcast.data.errors import near_misses
from roofcast.features.columns import ENGINES
from roofcast.serving.counts import count_text

if TYPE_CHECKING:
    from roofcast.data.store.measurement_store import Added
    from roofcast.data.store.provenance import Action

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

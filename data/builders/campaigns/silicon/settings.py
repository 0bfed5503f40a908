"""Server settings of `silicon_sample.csv`, looked up in the launch scripts of InferenceX by id and day."""

import dataclasses
from collections.abc import Sequence
from typing import Final

from builders.campaigns.silicon.geometry import NODE, Geometry
from builders.campaigns.silicon.history import scenario_of
from builders.campaigns.silicon.scripts import SCRIPTS, Launch, Script, Value
from builders.campaigns.silicon.source import SourceRow
from builders.campaigns.silicon.speculation import Mtp

Settings = dict[str, str | float | None]
"""Columns of the measurement table by name."""

COLUMNS: Final = {
    "kv_precision": "kv",
    "gpu_memory_utilization": "memory",
    "max_num_seqs": "seqs",
    "prefix_caching": "prefix",
    "poll_interval_step": "poll",
    "stream_interval_token": "stream",
    "chunk_size_token": "chunk",
    "attention_dp_wait_step": "dp_wait",
    "batch_wait_step": "batch_wait",
    "n_speculative_token": "n_draft",
}
"""Setting of a script by column."""

NVFP4_CACHE: Final = "fp8"
"""NVIDIA's NVFP4 checkpoints carry scales for an FP8 cache, and engines left at ``auto`` use it."""


@dataclasses.dataclass(frozen=True)
class Served:
    """What a launch script served, and on which ISO day or month, in the names of ``scripts.csv``."""

    model: str
    system: str
    engine: str
    precision: str
    day: str
    mtp: bool = False

    def by(self, script: Script) -> bool:
        """Return whether a script served it."""
        is_same_model = (script.model, script.engine) == (self.model, self.engine)
        is_same = is_same_model and self.precision in script.precisions.split()
        is_valid = self.system in script.systems.split() and script.mtp in (None, self.mtp)
        return is_same and is_valid and script.since <= self.day <= (script.until or self.day)


def settings_of(row: SourceRow, geometry: Geometry, mtp: Mtp) -> Settings:
    """Return the known server settings by column, without those that depend on an unsure multi-token prediction.

    Examples
    --------
    >>> cells = {"model_path": "deepseek-ai/DeepSeek-R1", "system": "b200_sxm", "backend": "sglang", "isl": "1024"}
    >>> cells |= {"precision": "fp4", "osl": "1024", "mode": "agg"}
    >>> cells |= {"silicon_data_source": "db-dump/x; silicon_concurrency=64; measured=2026-03-25"}
    >>> settings_of(SourceRow(1, "dump", cells), Geometry(8, tp=8, dp=1), "no")["poll_interval_step"]
    30
    """
    answers = [_settings(row, geometry, is_mtp) for is_mtp in (True, False) if mtp in ("unsure", _word(is_mtp))]
    return {name: value for name, value in answers[0].items() if all(a.get(name) == value for a in answers)}


def script_of(row: SourceRow, mtp: bool, scripts: Sequence[Script] = SCRIPTS) -> Script | None:
    """Return the script that served an aggregated row of InferenceX on its day; None if none is known."""
    if row.is_disaggregated or not row.is_inferencex or row.date is None:
        return None
    model, system, engine, precision = scenario_of(row)[:4]
    served = Served(model, system.removesuffix("_sxm"), engine, precision, row.date.isoformat(), mtp)
    return next((script for script in scripts if served.by(script)), None)


def launch_settings(served: Served, run: Launch) -> Settings:
    """Return the settings of the script that served a run, by column; none if no script is known.

    Examples
    --------
    >>> run = Launch(1024, 1024, 64, 8, has_dp=False)
    >>> launch_settings(Served("deepseek", "b200", "sglang", "fp4", "2025-11"), run)["max_num_seqs"]
    256.0
    """
    script = next((script for script in SCRIPTS if served.by(script)), None)
    values = _values(script, run) if script else {}
    return {column: value for column, value in values.items() if value not in (None, "")}


def _settings(row: SourceRow, geometry: Geometry, mtp: bool) -> Settings:
    script = script_of(row, mtp) if geometry.n_accelerator <= NODE else None
    if script is None:
        is_nvfp4 = row.cells["precision"] == "fp4" and scenario_of(row)[0] != "gpt-oss"
        return {"kv_precision": NVFP4_CACHE if is_nvfp4 else ""}
    run = Launch(
        n_input=int(row.cells["isl"]),
        n_output=int(row.cells["osl"]),
        concurrency=row.concurrency or 0,
        n_device=geometry.n_accelerator,
        has_dp=(geometry.dp or 1) > 1,
    )
    return _values(script, run)


def _values(script: Script, run: Launch) -> Settings:
    return {column: _value(getattr(script, name), run) for column, name in COLUMNS.items()}


def _value(value: Value | str, run: Launch) -> str | float | None:
    return value(run) if callable(value) else value


def _word(is_mtp: bool) -> Mtp:
    return "yes" if is_mtp else "no"

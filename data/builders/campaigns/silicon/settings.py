"""Server settings of `silicon_sample.csv`, looked up in the launch scripts of InferenceX by id and day."""

from builders.campaigns.silicon.geometry import NODE, Geometry
from builders.campaigns.silicon.history import scenario_of
from builders.campaigns.silicon.scripts import Launch, Served, Settings
from builders.campaigns.silicon.source import SourceRow
from builders.campaigns.silicon.speculation import Mtp


def settings_of(row: SourceRow, geometry: Geometry, mtp: Mtp) -> Settings:
    """Return the known server settings by column, without those that depend on an unsure multi-token prediction.

    NVIDIA's NVFP4 checkpoints carry scales for an FP8 cache, and engines left at ``auto`` use it.

    Examples
    --------
    >>> cells = {"model_path": "deepseek-ai/DeepSeek-R1", "system": "b200_sxm", "backend": "sglang", "isl": "1024"}
    >>> cells |= {"precision": "fp4", "osl": "1024", "mode": "agg"}
    >>> cells |= {"silicon_data_source": "db-dump/x; silicon_concurrency=64; measured=2026-03-25"}
    >>> settings_of(SourceRow(1, "dump", cells), Geometry(8, tp=8, dp=1), "no")["poll_interval_step"]
    30.0
    """
    answers = [_settings(row, geometry, is_mtp) for is_mtp in (True, False) if mtp in ("unsure", _word(is_mtp))]
    return {name: value for name, value in answers[0].items() if all(a.get(name) == value for a in answers)}


def _settings(row: SourceRow, geometry: Geometry, mtp: bool) -> Settings:
    model, system, engine, precision = scenario_of(row)[:4]
    settings = None
    if not row.is_disaggregated and row.is_inferencex and row.date and geometry.n_accelerator <= NODE:
        served = Served(model, system.removesuffix("_sxm"), engine, precision, row.date.isoformat(), mtp)
        lengths, has_dp = (int(row.cells["isl"]), int(row.cells["osl"])), (geometry.dp or 1) > 1
        settings = served.settings(Launch(*lengths, row.concurrency or 0, geometry.n_accelerator, has_dp=has_dp))
    if settings is None:
        return {"kv_precision": "fp8"} if precision == "fp4" and model != "gpt-oss" else {}
    return settings


def _word(is_mtp: bool) -> Mtp:
    return "yes" if is_mtp else "no"

"""Validation of the memory model against runs and out-of-memory failures; prints JSON on the last line.

Every shipped measurement with status ok ran, so its weights and one request must fit. A model lacks rows for some of
LLM-Pilot's 14 profiles because it ran out of memory or because its server does not support the profile: models
without tensor parallelism, and fused attention on V100. FasterTransformer's tables state which batches ran out of
memory.
"""

import json

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.data.campaigns import CAMPAIGNS, load_campaigns
from roofcast.data.catalog import Catalog, load_catalog
from roofcast.data.errors import InputError
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
from roofcast.features.engine.memory import Memory, estimate_memory
from roofcast.features.queries import descriptor_arrays

GROUP = ["campaign", "model", "accelerator", "n_accelerator", "engine", "weight_precision"]
UNFUSED = "nvidia-v100-pcie-16gb"


def memory_of(rows: pd.DataFrame, catalog: Catalog) -> Memory:
    """Return the memory of each row's replica, with the coefficients' priors."""
    d = descriptor_arrays(describe(rows, catalog.models, catalog.accelerators))
    return estimate_memory(d, DEFAULT_COEFFICIENTS.by_row(d["config.engine"]))


def describable(rows: pd.DataFrame, catalog: Catalog) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows whose parallelism `describe` accepts; it is evaluated once per parallelism."""
    is_describable = np.ones(len(rows), dtype=bool)
    position = pd.Series(np.arange(len(rows)), index=rows.index)
    columns = ["model", "n_accelerator", "tp", "pp", "dp", "n_prefill_accelerator", "n_decode_accelerator"]
    for _, group in rows.groupby(columns, dropna=False):
        try:
            describe(group.head(1), catalog.models, catalog.accelerators)
        except InputError:
            is_describable[position[group.index]] = False
    return is_describable


def campaign_figures(catalog: Catalog) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the share of successful rows that fit by campaign, and the groups that do not fit."""
    figures, failing = [], []
    for name in CAMPAIGNS:
        rows = load_campaigns([name]).query("status == 'ok'").reset_index(drop=True)
        sound = rows[describable(rows, catalog)]
        memory = memory_of(sound, catalog)
        is_static = (sound["load"] == "static_batch").to_numpy()
        is_beyond = is_static & (memory.capacity < sound["concurrency"].to_numpy(dtype=float))
        figures.append(
            {"campaign": name, "rows": len(rows), "undescribed": len(rows) - len(sound),
             "fits": float(memory.fits.mean()), "static_batches": int(is_static.sum()),
             "beyond_capacity": int(is_beyond.sum())}
        )  # fmt: skip
        short = (memory.needed_byte / np.maximum(memory.usable_byte, 1.0))[~memory.fits]
        failing.append(sound[~memory.fits].assign(short=short))
        failing.append(sound[is_beyond].assign(campaign=f"{name}, static batch", short=np.nan))
    groups = pd.concat(failing).groupby(GROUP)["short"].agg(["size", "max"]).reset_index()
    return pd.DataFrame(figures), groups


def missing_profiles(catalog: Catalog) -> pd.DataFrame:
    """Return LLM-Pilot's models and profiles: measured, not run for other reasons than memory, predicted to fit."""
    rows = load_campaigns(["llm_pilot"])
    profiles = rows[["accelerator", "n_accelerator"]].drop_duplicates()
    first = rows.drop_duplicates("model").drop(columns=["accelerator", "n_accelerator", "tp"])
    every = first.merge(profiles, how="cross").assign(tp=lambda t: t["n_accelerator"])
    measured = set(rows[["model", "accelerator", "n_accelerator"]].itertuples(index=False, name=None))
    keys = list(every[["model", "accelerator", "n_accelerator"]].itertuples(index=False, name=None))
    split = {model for model, _, n in measured if n > 1}
    memory = memory_of(every, catalog)
    return pd.DataFrame(
        {
            "model": every["model"], "accelerator": every["accelerator"], "n_accelerator": every["n_accelerator"],
            "measured": [key in measured for key in keys],
            "not_for_memory": [
                (model not in split and n > 1) or (part == UNFUSED and fused)
                for (model, part, n), fused in zip(keys, every["flash_attention"], strict=True)
            ],
            "fits": memory.fits, "capacity": memory.capacity,
            "filled": memory.needed_byte / memory.usable_byte,
        }
    )  # fmt: skip


def out_of_memory(catalog: Catalog) -> pd.DataFrame:
    """Return FasterTransformer's rows with their status and whether the full batch is predicted to fit."""
    rows = load_campaigns(["fastertransformer"])
    memory = memory_of(rows, catalog)
    return rows[
        ["model", "accelerator", "n_accelerator", "n_input_token", "n_output_token", "concurrency", "status"]
    ].assign(capacity=memory.capacity, fits=memory.capacity >= rows["concurrency"])


def main() -> None:
    """Print tables, then the figures as one line of JSON."""
    catalog = load_catalog()
    figures, failing = campaign_figures(catalog)
    pilot, batches = missing_profiles(catalog), out_of_memory(catalog)
    missing = pilot[~pilot["measured"] & ~pilot["not_for_memory"]]
    measured = pilot[pilot["measured"]]
    print(figures.to_string(index=False), "\n\nrows that ran and do not fit:\n", failing.to_string(index=False))
    print("\nmissing profiles that are predicted to fit:\n", missing[missing["fits"]].to_string(index=False))
    failed = batches[batches["status"] == "out_of_memory"]
    print("\nbatches that ran out of memory:\n", failed.to_string(index=False))
    described = figures["rows"] - figures["undescribed"]
    print(
        json.dumps(
            {
                "rows": int(described.sum()),
                "fits": float((figures["fits"] * described).sum() / described.sum()),
                "measured_profiles": len(measured),
                "measured_profiles_fit": float(measured["fits"].mean()),
                "missing_profiles": len(missing),
                "missing_profiles_do_not_fit": float((~missing["fits"]).mean()),
                "batches_out_of_memory": len(failed),
                "batches_out_of_memory_do_not_fit": float((~failed["fits"]).mean()),
                "batches_that_ran_fit": float(batches[batches["status"] == "ok"]["fits"].mean()),
            }
        )
    )


if __name__ == "__main__":
    main()

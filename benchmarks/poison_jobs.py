"""Attempts of one API key to spoil others' predictions of training jobs, each with the gate's decision; JSON last.

    python -m benchmarks.poison_jobs [--scenario NAME ...] [--runs 1500]

Shipped runs without a share of the lineages, which judge from outside: `harm` is the relative increase of their mean
absolute log error of rates by what is in service afterwards, `limited` that of the candidate. Every row counts as
confirmed by its key, and `quarantined` is the share that had to be. `unguarded` is the harm of the same rows as
another owner's, without limit of weight or gate.
"""

import argparse
import dataclasses
import json
import time
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.training.jobs.held_out import ErrorRows, HeldOutErrors, LogErrorModel
from roofcast.training.jobs.job_predictor import LEARNS_UPLOADS, RATE, MetricErrors
from roofcast.training.jobs.job_trial import JobTrial, build_slices
from roofcast.training.lifecycle.gate.judgement import BASELINE, compare_with
from roofcast.training.lifecycle.gate.slice_bootstrap import SIGNIFICANCE
from roofcast.training.lifecycle.gate.trial import HELD_OUT, Recipe
from roofcast.training.lifecycle.learned_targets import JOB_TARGET
from roofcast.training.lifecycle.shipped import shipped_limits, shipped_rows

HIDDEN_SHARE: Final = 0.25
N_UPLOAD: Final = 300
N_INVENTED: Final = 100
SLOWER: Final = 10.0
OWNER, STACK = "key:evil", "key:evil/rig"
SCENARIOS: Final = ("invented_models", "known_lineages")


@dataclasses.dataclass(frozen=True)
class Bench:
    """Rows that are learnt from with their slices, and rows of other lineages that judge from outside."""

    public: ErrorRows
    slices: pd.DataFrame
    alike: pd.DataFrame
    hidden: ErrorRows


def take(rows: ErrorRows, index: npt.NDArray[np.intp]) -> ErrorRows:
    """Return some rows."""
    names = ("x", "keys", "error", "lineage", "owner", "stack", "is_measured", "is_plain")
    return dataclasses.replace(rows, **{name: getattr(rows, name)[index] for name in names})


def build_bench(n_run: int, seed: int = 0) -> Bench:
    """Return a sample of the shipped runs, at most a fifth of them of one owner."""
    data, rng = shipped_rows(JOB_TARGET), np.random.default_rng(seed)
    errors = data.errors[RATE]
    slices = build_slices(data).iloc[errors.index].reset_index(drop=True)
    alike = slices.rename(columns={"framework": "engine"})
    alike["load"] = data.rows.measurements["method"].iloc[errors.index].to_numpy()
    order = pd.DataFrame({"owner": errors.rows.owner, "rank": rng.random(len(slices))}).sort_values("rank")
    chosen = np.sort(order.groupby("owner").head(max(n_run // 5, 1)).head(n_run).index.to_numpy())
    lineages = rng.permutation(np.unique(errors.rows.lineage[chosen]))
    is_hidden = np.isin(errors.rows.lineage[chosen], lineages[: int(HIDDEN_SHARE * len(lineages))])
    inside, outside = chosen[~is_hidden], chosen[is_hidden]
    tables = (table.iloc[inside].reset_index(drop=True) for table in (slices, alike))
    return Bench(take(errors.rows, inside), *tables, take(errors.rows, outside))


def joined(
    bench: Bench, scenario: str, rng: np.random.Generator, owner: str = OWNER
) -> tuple[ErrorRows, pd.DataFrame]:
    """Return the public rows and those of the key, ten times slower with 1 % of noise, and their slices."""
    chosen = rng.choice(len(bench.public.error), N_UPLOAD, replace=False)
    own, slices = take(bench.public, chosen), bench.slices.iloc[chosen].assign(stack=owner)
    noise = rng.normal(0.0, 0.01, N_UPLOAD)
    stack = STACK if owner == OWNER else owner
    own = dataclasses.replace(
        own,
        error=own.error - np.log(SLOWER) + noise,
        owner=np.full(N_UPLOAD, owner, dtype=object),
        stack=np.full(N_UPLOAD, stack, dtype=object),
    )
    if scenario == "invented_models":
        of_row = rng.integers(0, N_INVENTED, N_UPLOAD)
        x, shift = own.x.copy(), rng.normal(0.0, 0.3, N_INVENTED)[of_row]
        for name in ("log.n_param", "log.hidden"):
            x[:, own.columns.index(name)] += shift
        own = dataclasses.replace(own, x=x, lineage=np.array([f"invented-{i}" for i in of_row], dtype=object))
        slices = slices.assign(lineage=own.lineage)
    names = ("x", "keys", "error", "lineage", "owner", "stack", "is_measured", "is_plain")
    both = {name: np.concatenate([getattr(bench.public, name), getattr(own, name)]) for name in names}
    return dataclasses.replace(bench.public, **both), pd.concat([bench.slices, slices], ignore_index=True)


def fit(rows: ErrorRows) -> HeldOutErrors:
    """Return the held-out errors of rows, with the model fitted to them."""
    return HeldOutErrors.fit(rows, learns_uploads=LEARNS_UPLOADS[RATE])


def hidden_error(bench: Bench, model: LogErrorModel) -> float:
    """Return the mean absolute log error on the hidden lineages, over rows and then lineages."""
    mean, _ = model.predict(bench.hidden.x, bench.hidden.keys, bench.hidden.is_plain)
    error = pd.Series(np.abs(bench.hidden.error - mean))
    return float(error.groupby(bench.hidden.lineage).mean().mean())


def run(bench: Bench, scenario: str, clean: float) -> dict[str, Any]:
    """Return the figures of a scenario."""
    start = time.process_time()
    rows, slices = joined(bench, scenario, np.random.default_rng(0))
    held_out = fit(rows)
    errors = {RATE: MetricErrors(rows, np.arange(len(rows.error)))}
    is_public = np.asarray(slices["stack"] != OWNER, dtype=bool)
    trial = JobTrial(errors, {RATE: held_out.correction}, slices)
    recipe = Recipe(BASELINE, None, is_public, (is_public,))
    decision = compare_with(recipe, trial, significance=SIGNIFICANCE / len(HELD_OUT))
    own = ~is_public
    alike = bench.alike.iloc[np.random.default_rng(0).choice(len(bench.public.error), N_UPLOAD, replace=False)]
    ratios = pd.DataFrame({"throughput_token_per_s": rows.error[own]}, index=alike.index)
    reasons = shipped_limits("training").reasons(alike, ratios)
    limited = hidden_error(bench, held_out.model) / clean - 1
    unguarded = hidden_error(bench, fit(joined(bench, scenario, np.random.default_rng(0), owner="rig")[0]).model)
    return {
        "scenario": scenario,
        "n_upload": N_UPLOAD,
        "quarantined": float((reasons != "").mean()),
        "promoted": decision.promoted,
        "harm": limited if decision.promoted else 0.0,
        "limited": limited,
        "unguarded": unguarded / clean - 1,
        "reason": decision.reason,
        "cpu_s": time.process_time() - start,
    }


def main() -> None:
    """Print a line a scenario, then JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenario", nargs="+", choices=SCENARIOS, default=list(SCENARIOS))
    parser.add_argument("--runs", type=int, default=1500)
    options = parser.parse_args()
    bench = build_bench(options.runs)
    print(f"{len(bench.public.error)} runs, {len(bench.hidden.error)} of hidden lineages", flush=True)
    clean = hidden_error(bench, fit(bench.public).model)
    figures = []
    for scenario in options.scenario:
        figures.append(run(bench, scenario, clean))
        print(figures[-1], flush=True)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()

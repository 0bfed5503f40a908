"""Seven attempts of API keys to spoil others' predictions, each with the gate's decision; JSON on the last line.

    python -m benchmarks.poison [--scenario NAME ...] [--seeds 10] [--rows 900] [--calibrate] [--full]

Reduced training sets of shipped rows without a share of the lineages, which judge from outside: `harm` is the
relative increase of their mean absolute log error. The trees' seed alone moves that error by 1 to 2 %, so each seed
draws rows, lineages, uploads and trees, with and without the uploads, and the mean over seeds counts. `honest` is a
control. Every row counts as confirmed by its key, and `quarantined` is the share that had to be. `unguarded` is the
harm of the same rows as the operator's own, without limit of weight or gate; `limited` that without the gate alone.
"""

import argparse
import dataclasses
import functools
import json
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import pandas as pd

from roofcast.data.measurements.row_owners import UNPROVEN
from roofcast.features.columns import DESCRIPTORS
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
from roofcast.features.pipeline import build_features
from roofcast.training.config import TrainingConfig
from roofcast.training.dataset.stacks import UPLOADED, is_uploaded, stack_owners
from roofcast.training.dataset.targets import log_ratio
from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.learner.predictor import RoofcastPredictor
from roofcast.training.learner.ratio_model import RatioModel, predict_held_out
from roofcast.training.lifecycle.gate.comparison import held_out_error
from roofcast.training.lifecycle.gate.inference_trial import InferenceTrial, predict_stacks_held_out
from roofcast.training.lifecycle.gate.judgement import (
    BASELINE,
    CHAMPION,
    changed_rows,
    compare_with,
    significance_of_each,
)
from roofcast.training.lifecycle.gate.trial import Recipe
from roofcast.training.lifecycle.learned_targets import INFERENCE_TARGET
from roofcast.training.lifecycle.shipped import shipped_limits, shipped_rows

METRICS: Final = ("ttft_s", "tpot_s")
CONFIG: Final = TrainingConfig(n_estimators=60, n_fold=4, calibrate=False)
HIDDEN_SHARE: Final = 0.25
ALL: Final = "all"
MIN_ROW: Final = 20
"""Hidden rows of an accelerator whose error is reported."""

N_NIGHT: Final = 10
MODEL_COLUMNS: Final = ["model.n_param", "model.n_param_dense", "model.hidden_size"]


@dataclasses.dataclass(frozen=True)
class Bench:
    """Rows that are learnt from, and rows of other lineages that judge from outside.

    The seed of `config` draws uploads and trees.
    """

    public: TrainingSet
    hidden: TrainingSet
    config: TrainingConfig

    @functools.cached_property
    def clean(self) -> pd.Series:
        """`hidden_errors` of what is learnt from `public`."""
        return hidden_errors(self, self.public)

    def harm(self, data: TrainingSet) -> pd.Series:
        """Return the relative increase of `hidden_errors` by learning from `data` in place of `public`."""
        return hidden_errors(self, data) / self.clean - 1


@functools.cache
def central_rows() -> TrainingSet:
    """Return the shipped means and medians; cached."""
    data = shipped_rows(INFERENCE_TARGET)
    return take(data, (data.X["workload.quantile"] == 0.5) & (data.y[list(METRICS)] > 0).all(axis=1))


def build_bench(n_row: int, config: TrainingConfig, seed: int = 0) -> Bench:
    """Return a sample of `central_rows`, at most a tenth of them of one owner."""
    data, rng = central_rows(), np.random.default_rng(seed)
    rows = pd.DataFrame({"owner": stack_owners(data.stacks), "rank": rng.random(len(data.X))})
    chosen = rows.sort_values("rank").groupby("owner").head(max(n_row // 10, 1)).head(n_row).index
    data = take(data, data.X.index.isin(chosen))
    lineages = rng.permutation(data.groups.unique())
    is_hidden = data.groups.isin(lineages[: int(HIDDEN_SHARE * len(lineages))]).to_numpy()
    return Bench(take(data, ~is_hidden), take(data, is_hidden), config.model_copy(update={"seed": seed}))


def take(data: TrainingSet, mask: Any) -> TrainingSet:
    """Return some rows on a range index."""
    return reindexed(data.take(np.asarray(mask)))


def reindexed(data: TrainingSet) -> TrainingSet:
    """Return the training set on a range index."""
    tables = ("measurements", "X", "y", "groups", "stacks", "ids")
    return dataclasses.replace(data, **{name: getattr(data, name).reset_index(drop=True) for name in tables})


def joined(one: TrainingSet, other: TrainingSet) -> TrainingSet:
    """Return the rows of both."""
    tables = ("measurements", "X", "y", "groups", "stacks", "ids")
    parts = {name: pd.concat([getattr(one, name), getattr(other, name)], ignore_index=True) for name in tables}
    return dataclasses.replace(one, **parts)


def upload(source: TrainingSet, factor: Any, n_row: int, rng: np.random.Generator, night: int = 0) -> TrainingSet:
    """Return rows of a key: questions of the source, with latencies multiplied by a factor and 1 % of noise."""
    rows = rng.choice(len(source.X), n_row, replace=n_row > len(source.X))
    tables = ("measurements", "X", "y", "groups", "stacks", "ids")
    data = reindexed(dataclasses.replace(source, **{name: getattr(source, name).iloc[rows] for name in tables}))
    factor = np.asarray(factor)[rows] if np.ndim(factor) else np.full(n_row, float(factor))
    noise = np.exp(rng.normal(0, 0.01, (n_row, data.y.shape[1])))
    slower = [name for name in map(str, data.y) if "throughput" not in name]
    y = data.y * noise
    y[slower] = y[slower].mul(factor, axis=0)
    ids = pd.Series([f"{night}-{i}-{rng.integers(2**62)}" for i in range(n_row)])
    return dataclasses.replace(data, y=y, ids=ids, stacks=pd.Series([f"{UPLOADED}{UNPROVEN}/rig"] * n_row))


def invented(data: TrainingSet, n_model: int, rng: np.random.Generator) -> TrainingSet:
    """Return the rows with made-up models, each a lineage."""
    of_row = rng.integers(0, n_model, len(data.X))
    scale = np.exp(rng.normal(0, 0.3, n_model))[of_row]
    X = data.X.copy()
    for name in (column.name for column in DESCRIPTORS if column.name in MODEL_COLUMNS):
        X[name] *= scale
    return dataclasses.replace(data, X=X, groups=pd.Series([f"invented-{i}" for i in of_row]))


def one_lineage(bench: Bench, rng: np.random.Generator) -> Iterator[TrainingSet]:
    """Yield ten times slower rows of the most measured lineage."""
    name = bench.public.groups.value_counts().index[0]
    yield upload(take(bench.public, bench.public.groups == name), 10.0, 300, rng)


def all_lineages(bench: Bench, rng: np.random.Generator) -> Iterator[TrainingSet]:
    """Yield ten times slower rows of all lineages."""
    yield upload(bench.public, 10.0, 400, rng)


def invented_models(bench: Bench, rng: np.random.Generator) -> Iterator[TrainingSet]:
    """Yield 300 ten times slower rows of 100 made-up models."""
    yield invented(upload(bench.public, 10.0, 300, rng), 100, rng)


def small_steps(bench: Bench, rng: np.random.Generator) -> Iterator[TrainingSet]:
    """Yield rows that are 10 % slower each night than the night before."""
    for night in range(N_NIGHT):
        yield upload(bench.public, 1.1 ** (night + 1), 100, rng, night)


def fresh_keys(bench: Bench, rng: np.random.Generator) -> Iterator[TrainingSet]:
    """Yield twice as fast or 1.5 times slower rows, each night of another key that has not earned weight."""
    factor = rng.choice([0.5, 1.5])
    for night in range(N_NIGHT):
        yield upload(bench.public, factor, 100, rng, night)


def jittered_duplicates(bench: Bench, rng: np.random.Generator) -> Iterator[TrainingSet]:
    """Yield copies of the rows that are slowest beside their estimate."""
    _, estimates, _ = build_features(bench.public.X, DEFAULT_COEFFICIENTS)
    ratio = log_ratio(bench.public.y["tpot_s"].to_numpy(dtype=float), estimates["tpot_s"])
    yield upload(take(bench.public, ratio > np.quantile(ratio, 0.8)), 1.0, 2000, rng)


def adversarial(bench: Bench, rng: np.random.Generator) -> Iterator[TrainingSet]:
    """Yield, one each night, variants of region, factor and size; whatever passes stays in the store."""
    accelerators = bench.public.measurements["accelerator"].value_counts().index
    for night, (factor, n_row, region) in enumerate(
        (
            (1.3, 200, ""),
            (0.7, 200, ""),
            (1.5, 100, accelerators[0]),
            (1.2, 300, accelerators[1]),
            (2.0, 50, accelerators[2]),
        )
    ):
        where = (bench.public.measurements["accelerator"] == region) | (region == "")
        yield invented(upload(take(bench.public, where), factor, n_row, rng, night), 30, rng)


def honest(bench: Bench, rng: np.random.Generator) -> Iterator[TrainingSet]:
    """Yield true repeats: the control."""
    yield upload(bench.public, 1.0, 2000, rng)


Scenario = Callable[[Bench, np.random.Generator], Iterator[TrainingSet]]

SCENARIOS: Final[dict[str, Scenario]] = {
    "one_lineage": one_lineage, "all_lineages": all_lineages, "invented_models": invented_models,
    "small_steps": small_steps, "fresh_keys": fresh_keys,
    "jittered_duplicates": jittered_duplicates, "adversarial": adversarial,
}  # fmt: skip


def held_out_predictor(data: TrainingSet, config: TrainingConfig) -> RoofcastPredictor:
    """Return a predictor that has only what the gate reads of a candidate: its held-out predictions."""
    predictor, every = RoofcastPredictor(config, METRICS), np.ones(len(data.X), dtype=bool)
    predictor.held_out_ = predict_held_out(predictor, data.X, data.y, data.groups, stacks=data.stacks)
    predictor.stack_held_out_ = predict_stacks_held_out(RatioModel(config, METRICS), data, every, every)
    return predictor


def hidden_errors(bench: Bench, data: TrainingSet) -> pd.Series:
    """Return the error of what is learnt from `data` on the hidden lineages: of all, and by accelerator."""
    model = RatioModel(bench.config, METRICS).fit(data.X, data.y, data.groups, stacks=data.stacks)
    predicted, hidden = model.predict(bench.hidden.X), bench.hidden
    error = pd.DataFrame(
        {m: np.abs(log_ratio(hidden.y[m].to_numpy(dtype=float), predicted[m].to_numpy())) for m in METRICS}
    )
    rows = error.mean(axis=1).groupby(hidden.measurements["accelerator"].to_numpy())
    parts: pd.Series = rows.mean()[rows.size() >= MIN_ROW]
    parts[ALL] = held_out_error(hidden.y, predicted, hidden.groups)
    return parts


def decide(data: TrainingSet, known: pd.Series, config: TrainingConfig) -> str:
    """Return why the gate refuses what is learnt from `data`, blank if it promotes it."""
    trial, is_upload = InferenceTrial(held_out_predictor(data, config), data), is_uploaded(data.stacks)
    is_known = data.ids.isin(known).to_numpy()
    judged = tuple(is_known & ~owned for owned in changed_rows(data.stacks, is_known))
    both = [Recipe(BASELINE, config, ~is_upload.to_numpy(), (~is_upload.to_numpy(),))]
    if is_upload[is_known].any():
        both.append(Recipe(CHAMPION, config, is_known, judged, holds_out_stacks=False))
    significance = significance_of_each(both, trial)
    for recipe in both:
        decision = compare_with(recipe, trial, significance=significance)
        if not decision.promoted:
            return decision.reason
    return ""


def uploaded(bench: Bench, scenario: Scenario) -> TrainingSet:
    """Return the public rows and all uploads of a scenario."""
    return functools.reduce(joined, scenario(bench, np.random.default_rng(bench.config.seed)), bench.public)


def as_own(data: TrainingSet) -> TrainingSet:
    """Return the uploads as the operator's own rows, which nothing limits."""
    return dataclasses.replace(data, stacks=data.stacks.mask(is_uploaded(data.stacks), ""))


def run(bench: Bench, scenario: Scenario) -> dict[str, Any]:
    """Return the figures of a scenario."""
    start, rng = time.process_time(), np.random.default_rng(bench.config.seed)
    champion, stored, reasons = bench.public, bench.public, []
    for night in scenario(bench, rng):
        stored = joined(stored, night)
        reason = decide(stored, champion.ids, bench.config)
        reasons.append(reason)
        champion = champion if reason else stored
    uploads = take(stored, is_uploaded(stored.stacks))
    _, estimates, _ = build_features(uploads.X, DEFAULT_COEFFICIENTS)
    ratios = pd.DataFrame(
        {m: log_ratio(uploads.y[m].to_numpy(dtype=float), estimates[m]) for m in METRICS}, index=uploads.X.index
    )
    harm = bench.harm(champion)
    return {
        "scenario": scenario.__name__,
        "seed": bench.config.seed,
        "n_upload": len(uploads.X),
        "quarantined": float((shipped_limits("inference").reasons(uploads.measurements, ratios) != "").mean()),
        "n_night": len(reasons),
        "n_promoted": sum(not reason for reason in reasons),
        "harm": float(harm[ALL]),
        "limited": float(bench.harm(stored)[ALL]),
        "unguarded": float(bench.harm(as_own(stored))[ALL]),
        "harm_by_accelerator": harm.drop(ALL).to_dict(),
        "reason": next((reason for reason in reasons if reason), ""),
        "cpu_s": time.process_time() - start,
    }


def main() -> None:
    """Print a line a scenario, then JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenario", nargs="*", choices=list(SCENARIOS), default=list(SCENARIOS))
    parser.add_argument("--seeds", type=int, default=5, help="draws of rows, hidden lineages, uploads and trees")
    parser.add_argument("--rows", type=int, default=900)
    parser.add_argument("--calibrate", action="store_true", help="also fit the coefficients of the estimate")
    parser.add_argument("--full", action="store_true", help="all shipped rows and the settings of the service")
    options = parser.parse_args()
    config = TrainingConfig() if options.full else CONFIG.model_copy(update={"calibrate": options.calibrate})
    n_row = 10**9 if options.full else options.rows
    benches = [build_bench(n_row, config, seed) for seed in range(options.seeds)]
    figures = []
    for scenario in (*(SCENARIOS[name] for name in options.scenario), honest):
        for bench in benches:
            figures.append(run(bench, scenario))
            print(figures[-1], flush=True)
    print(f"\n{summary(pd.DataFrame(figures))}\n")
    print(json.dumps(figures))


def summary(figures: pd.DataFrame) -> str:
    """Return a table: means of each scenario over seeds, and the accelerator with the most harm beside `honest`."""
    of = figures.groupby("scenario", sort=False)
    table = of[["n_promoted", "harm", "limited", "unguarded", "quarantined"]].mean()
    table["harm_se"], table["limited_se"] = of["harm"].sem(), of["limited"].sem()
    parts = figures["harm_by_accelerator"].apply(pd.Series).groupby(figures["scenario"], sort=False).mean()
    beside = parts - parts.loc[honest.__name__]
    table["worst_accelerator"], table["its_harm_beside_honest"] = beside.idxmax(axis=1), beside.max(axis=1)
    return table.round(4).to_string()


if __name__ == "__main__":
    main()

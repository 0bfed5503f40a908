"""The scoreboard: scores of all methods under all protocols, and the rows that they are computed from.

Scores of roofcast under P1 and P2 are medians over seeds, each by itself, so success, overspend and S/O need not come
from one seed. Peers are single published runs, listed as seed 0.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from judge.peers.llm_pilot_peers import PEERS
from judge.protocols.campaign_rows import CampaignRows, load_campaign_rows
from judge.protocols.fold_lines import (
    DERIVED,
    Fit,
    class_parts,
    method_figures,
    store_fits,
    with_classes,
)
from judge.protocols.jobs.p6_baselines import METHODS as RUN_METHODS
from judge.protocols.jobs.p6_baselines import RunMethod
from judge.protocols.jobs.p6_jobs import N_FOLD as N_FOLD_TRAINING
from judge.protocols.jobs.p6_jobs import (
    judge_figures,
    of_first_job_campaigns,
    of_ordinary_trainers,
    predict_judges,
    predict_referenced,
    predict_training,
    training_figures,
    training_parts,
)
from judge.protocols.jobs.p6_methods import RoofcastMethod
from judge.protocols.llm_pilot.capacity import Rule, cheapest
from judge.protocols.llm_pilot.p1_p2_llm_pilot import (
    DEMANDS,
    decide,
    join_measured,
    peer_predictions,
    score_decisions,
)
from judge.protocols.p3_methods import METHODS
from judge.protocols.p3_silicon import (
    Method,
    SiliconCampaign,
    figures_by_part,
    load_silicon_campaign,
    predict_silicon,
    silicon_figures,
)
from judge.protocols.p4_p5_campaigns import (
    N_FOLD,
    campaign_figures,
    campaign_parts,
    predict_campaigns,
    reference_figures,
    with_sources,
)
from judge.protocols.p7_p8_stacks import N_FOLD as N_FOLD_STACK
from judge.protocols.p7_p8_stacks import (
    N_OWN_RUN,
    OWN_RUNS,
    of_first_campaigns,
    own_run_figures,
    predict_stacks,
    stack_figures,
    stack_parts,
)
from judge.protocols.p9_memory import memory_figures, predict_starts
from judge.protocols.p10_reliability import reliability_figures, reliability_parts, rent, state_limits
from judge.protocols.p11_p12_transfer import on_stack_figures, part_figures, predict_on_stacks, predict_parts
from judge.protocols.regret import (
    decision_candidates,
    least_prices,
    regret_figures,
    regrets,
    without_price,
)
from roofcast.data.errors import UnknownNameError
from roofcast.training.config import TrainingConfig
from roofcast.training.jobs.job_table import (
    JobTable,
    load_job_judge_rows,
    load_job_rows,
)

PROTOCOLS: Final = (*DEMANDS, "P3", "P4", "P5", "P6", "P7", "P8", "P9", "P10", "P11", "P12")
"""Protocols of `run_scoreboard`. P3 has two results, all rows and ``P3_clean``; P4 also has ``P4_methods``, with its
baselines, and ``decisions``; P6 also has ``P6_all``, ``P6_ordinary`` and ``P6_judges``, P7 ``P7_all``."""

OWN: Final = "roofcast"
"""Name of roofcast's own scores."""

POINTS: Final = "llm_pilot_points"
"""File name of the predicted latencies of P1 and P2, one row per method, seed and point."""

_PATHS: Final[Mapping[str, tuple[str, ...]]] = {
    "P3": ("split", "method", "metric"),
    "P3_clean": ("split", "method", "metric"),
    "P4": ("metric",),
    "P4_methods": ("method", "metric"),
    "P5": ("n_reference", "questions", "metric"),
    "decisions": (),
    "P6": ("split", "method", "quantity"),
    "P6_all": ("split", "method", "quantity"),
    "P6_ordinary": ("split", "method", "quantity"),
    "P6_judges": ("table", "method"),
    "P7": ("method", "metric", "over"),
    "P7_all": ("method", "metric", "over"),
    "P8": ("own_runs_of", "n_own_run", "metric"),
    "P9": ("method", "quantity"),
    "P10": ("of",),
    "P11": ("method", "part", "metric"),
    "P12": ("split", "method", "metric"),
}
"""Meaning of the nested keys of a protocol's scores, outermost first; by default the method."""

_OWN_RUN_COLUMNS: Final = tuple(f"{kind}_{k}" for kind in OWN_RUNS for k in N_OWN_RUN)

Predict = Callable[[int], pd.DataFrame]
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class ProtocolResult:
    """Scores of one protocol as in the JSON, and the tables of its dump by file name."""

    figures: Mapping[str, object]
    tables: Mapping[str, pd.DataFrame]


@dataclass(frozen=True)
class Scoreboard:
    """Results by protocol."""

    results: Mapping[str, ProtocolResult] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return the scores as JSON; a score that is undefined, such as overspend without a success, is null.

        Examples
        --------
        >>> Scoreboard({"P1": ProtocolResult({"RF": {"success": 0.0, "overspend": float("nan")}}, {})}).to_json()
        '{"P1": {"RF": {"success": 0.0, "overspend": null}}}'
        """
        return json.dumps({name: _finite(r.figures) for name, r in self.results.items()}, allow_nan=False)

    def dump(self, folder: Path) -> list[Path]:
        """Write one CSV per protocol, and those that protocols share, into the folder; return their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        tables = {name: table for result in self.results.values() for name, table in result.tables.items()}
        paths = []
        for name, table in tables.items():
            paths.append(folder / f"{name}.csv")
            table.to_csv(paths[-1], index=False)
        return paths


def run_scoreboard(
    protocols: Iterable[str] = tuple(DEMANDS),
    predict_llm_pilot: Predict | None = None,
    n_seed: int = 10,
    progress: Progress | None = None,
    rule_llm_pilot: Callable[[int], Rule] | None = None,
    *,
    methods_silicon: Mapping[str, Method] = METHODS,
    silicon: SiliconCampaign | None = None,
    campaigns: CampaignRows | None = None,
    config: TrainingConfig | None = None,
    n_fold: int | None = None,
    training: JobTable | None = None,
) -> Scoreboard:
    """Return the scoreboard of the given protocols.

    Raises `UnknownNameError` if a protocol is unknown; `SchemaError` if a column or a point is missing in the
    predictions.

    - `protocols`: Names of protocols; their order is kept.
    - `predict_llm_pilot`: Function from a seed to predictions of LLM-Pilot's 528 points, each without training rows
      of its LLM, with the columns of `decide`. If None, only peers are scored.
    - `n_seed`: Number of seeds, from 0.
    - `progress`: Called after each step with its description, the steps done and the number of steps.
    - `rule_llm_pilot`: Function from a seed to the decision rule of roofcast's predictions; by default, and for the
      peers, the cheapest profile by the point predictions.
    - `methods_silicon`: Methods of P3 by name.
    - `silicon`, `campaigns`: Rows of P3, and of P4 and P5; None for the shipped campaigns.
    - `config`: Settings of the predictor; None for the defaults.
    - `n_fold`: Number of folds under P4 to P8; None for the protocols' own.
    - `training`: Rows of P6; None for the shipped training campaigns.
    """
    names = tuple(dict.fromkeys(protocols))
    for name in names:
        if name not in PROTOCOLS:
            raise UnknownNameError("protocol", name, PROTOCOLS)
    results: dict[str, ProtocolResult] = {}
    if demands := [name for name in names if name in DEMANDS]:
        runs = [_Run(method, 0, peer_predictions(method)) for method in PEERS]
        if predict_llm_pilot is not None:
            runs += _own_runs(predict_llm_pilot, n_seed, progress, rule_llm_pilot)
        results = {name: _llm_pilot_result(name, runs) for name in demands}
    with TemporaryDirectory() as folder:
        fit = store_fits(Path(folder), config)
        inputs = _Inputs(campaigns, silicon, methods_silicon, training, fit, n_fold, progress)
        for shared, run in _RUNS.items():
            if set(shared) & set(names):
                results |= run(inputs)
    return Scoreboard({name: results[name] for name in _in_order(names, results)})


@dataclass(frozen=True)
class _Inputs:
    """Arguments of `run_scoreboard` that runs share."""

    given: CampaignRows | None
    silicon: SiliconCampaign | None
    methods_silicon: Mapping[str, Method]
    training: JobTable | None
    fit: Fit
    n_fold: int | None
    progress: Progress | None

    @cached_property
    def campaigns(self) -> CampaignRows:
        return load_campaign_rows() if self.given is None else self.given


def _in_order(names: Iterable[str], results: Mapping[str, object]) -> list[str]:
    """Return the names of the results in the requested order, each followed by the results that it includes."""
    included = {
        "P3": ("P3_clean",),
        "P4": ("P4_methods", "decisions"),
        "P6": ("P6_all", "P6_ordinary", "P6_judges"),
        "P7": ("P7_all",),
    }
    return [part for name in names for part in (name, *included.get(name, ())) if part in results]


def figure_rows(protocol: str, figures: Mapping[str, Any]) -> list[dict[str, object]]:
    """Return a protocol's scores as rows of one table.

    Examples
    --------
    >>> figure_rows("P1", {"RF": {"success": 0.7}})
    [{'method': 'RF', 'success': 0.7}]
    >>> figure_rows("P3", {"leave_one_lineage_out": {"roofcast": {"tpot": {"mape": 0.2}}}})
    [{'split': 'leave_one_lineage_out', 'method': 'roofcast', 'metric': 'tpot', 'mape': 0.2}]
    >>> figure_rows("decisions", {"median_regret": 0.0})
    [{'median_regret': 0.0}]
    """
    figures = _without_classes(figures)
    if protocol == "P5":  # P3's rows are one level higher than P4's
        figures = {k: _by_questions(of) for k, of in figures.items() if isinstance(of, Mapping)}
    if protocol == "P10":
        figures = _nested(figures, "decisions")
    names = _PATHS.get(protocol, ("method",))
    return [{**dict(zip(names, path, strict=True)), **values} for path, values in _leaves(figures, ())]


def _without_classes(figures: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _without_classes(of) if isinstance(of, Mapping) else of
        for name, of in figures.items()
        if name != "classes"
    }


def _by_questions(figures: Mapping[str, object]) -> dict[str, object]:
    return {"P3": {name: of for name, of in figures.items() if name != "P4"}, "P4": figures["P4"]}


def _nested(figures: Mapping[str, object], name: str) -> dict[str, object]:
    """Return figures with those that are not nested under a name."""
    nested: dict[str, object] = {key: of for key, of in figures.items() if isinstance(of, Mapping)}
    others = {key: of for key, of in figures.items() if key not in nested}
    return nested | ({name: others} if others else {})


def _leaves(
    figures: Mapping[str, object], path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], dict[str, object]]]:
    nested = {name: value for name, value in figures.items() if isinstance(value, Mapping)}
    if figures and not nested:
        yield path, dict(figures)
    for name, value in nested.items():
        yield from _leaves(value, (*path, name))


def _run_silicon(inputs: _Inputs) -> dict[str, ProtocolResult]:
    campaign = inputs.silicon or load_silicon_campaign(inputs.campaigns)
    dump = predict_silicon(campaign, inputs.methods_silicon, inputs.progress, inputs.fit)
    tables = {"P3": dump, "P3_parts": figures_by_part(dump)}
    return {
        "P3": ProtocolResult(silicon_figures(dump), tables),
        "P3_clean": ProtocolResult(silicon_figures(dump[dump["is_clean"]]), {}),
    }


def _run_campaigns(inputs: _Inputs) -> dict[str, ProtocolResult]:
    rows = inputs.campaigns
    dump = with_sources(predict_campaigns(rows, inputs.fit, inputs.progress, inputs.n_fold or N_FOLD), rows)
    lines = dump[[name for name in map(str, dump) if "_draw_" not in name]]
    prices = least_prices()
    candidates = decision_candidates(lines, prices)
    n_left_out = sum(without_price(lines, prices).values())
    decided = {**regret_figures(regrets(candidates)), "n_without_price": n_left_out}
    figures = with_classes(campaign_figures(lines), lines)
    tables = {"P4": lines, "P4_parts": campaign_parts(lines), "P4_class_parts": class_parts(figures)}
    return {
        "P4": ProtocolResult(figures, tables),
        "P4_methods": ProtocolResult(method_figures(lines), {}),
        "decisions": ProtocolResult(decided, {"decisions": candidates}),
        "P5": _reference_result(dump),
    }


def _reference_result(dump: pd.DataFrame) -> ProtocolResult:
    plain = {name for name in map(str, dump) if name.startswith(("low_", "high_", "by_")) and "_draw_" not in name}
    columns = [name for name in map(str, dump) if name not in plain]
    lines = dump.loc[dump["metric"] != DERIVED, columns].reset_index(drop=True)
    return ProtocolResult(reference_figures(lines), {"P5": lines})


def _run_training(inputs: _Inputs) -> dict[str, ProtocolResult]:
    rows, progress, n_fold = inputs.training or load_job_rows(), inputs.progress, inputs.n_fold or N_FOLD_TRAINING
    roofcast = RoofcastMethod()
    methods: dict[str, RunMethod] = {"roofcast": roofcast, **RUN_METHODS}
    plain = predict_training(rows, methods, progress=progress, n_fold=n_fold)
    referenced = predict_referenced(rows, roofcast, progress=progress, n_fold=n_fold)
    dump = pd.concat([plain, referenced], ignore_index=True)
    judged = predict_judges(rows, load_job_judge_rows(), methods)
    memory = training_parts(dump[dump["quantity"] == "memory"], "memory_kind")
    tables = {"P6": dump, "P6_parts": training_parts(dump), "P6_memory": memory}
    return {
        "P6": ProtocolResult(training_figures(of_first_job_campaigns(dump)), tables),
        "P6_all": ProtocolResult(training_figures(dump), {}),
        "P6_ordinary": ProtocolResult(training_figures(of_ordinary_trainers(dump)), {}),
        "P6_judges": ProtocolResult(judge_figures(judged), {"P6_judges": judged}),
    }


def _run_stacks(inputs: _Inputs) -> dict[str, ProtocolResult]:
    dump = predict_stacks(inputs.campaigns, inputs.fit, inputs.progress, inputs.n_fold or N_FOLD_STACK)
    plain = dump[[name for name in map(str, dump) if not name.endswith(_OWN_RUN_COLUMNS)]]
    others = {name for name in map(str, dump) if name.startswith("by_")}
    own = dump.loc[dump["metric"] != DERIVED, [name for name in map(str, dump) if name not in others]]
    competent = plain[plain["is_competent"]]
    limits, candidates = state_limits(competent), rent(competent, least_prices())
    stated = {"P10": limits, "P10_parts": reliability_parts(limits), "P10_candidates": candidates}
    first, whole = (
        figures | {OWN: with_classes(figures[OWN], of[of["is_competent"]])}
        for of in (of_first_campaigns(plain), plain)
        for figures in [stack_figures(of)]
    )
    tables = {"P7": plain, "P7_parts": stack_parts(plain), "P7_class_parts": class_parts(whole[OWN])}
    return {
        "P7": ProtocolResult(first, tables),
        "P7_all": ProtocolResult(whole, {}),
        "P8": ProtocolResult(own_run_figures(own), {"P8": own.reset_index(drop=True)}),
        "P10": ProtocolResult(reliability_figures(limits, candidates), stated),
    }


def _run_starts(_: _Inputs) -> dict[str, ProtocolResult]:
    dump = predict_starts()
    return {"P9": ProtocolResult(memory_figures(dump), {"P9": dump})}


def _run_parts(inputs: _Inputs) -> dict[str, ProtocolResult]:
    dump = predict_parts(inputs.campaigns, inputs.fit, inputs.progress)
    return {"P11": ProtocolResult(part_figures(dump), {"P11": dump})}


def _run_named_stacks(inputs: _Inputs) -> dict[str, ProtocolResult]:
    dump = predict_on_stacks(inputs.campaigns, inputs.fit, inputs.progress)
    return {"P12": ProtocolResult(on_stack_figures(dump), {"P12": dump})}


_RUNS: Final[Mapping[tuple[str, ...], Callable[[_Inputs], dict[str, ProtocolResult]]]] = {
    ("P3",): _run_silicon,
    ("P4", "P5"): _run_campaigns,
    ("P6",): _run_training,
    ("P7", "P8", "P10"): _run_stacks,
    ("P9",): _run_starts,
    ("P11",): _run_parts,
    ("P12",): _run_named_stacks,
}
"""Runs by the protocols that share them."""


class _Run(NamedTuple):
    method: str
    seed: int
    predictions: pd.DataFrame
    rule: Rule = cheapest


def _own_runs(
    predict: Predict, n_seed: int, progress: Progress | None, rule_of: Callable[[int], Rule] | None
) -> Iterator[_Run]:
    for seed in range(n_seed):
        yield _Run(OWN, seed, predict(seed), cheapest if rule_of is None else rule_of(seed))
        if progress is not None:
            progress(f"LLM-Pilot, seed {seed}", seed + 1, n_seed)


def _llm_pilot_result(name: str, runs: list[_Run]) -> ProtocolResult:
    decisions = [decide(run.predictions, DEMANDS[name], run.rule) for run in runs]
    scores: dict[str, list[dict[str, float]]] = {}
    for run, table in zip(runs, decisions, strict=True):
        scores.setdefault(run.method, []).append(score_decisions(table).figures())
    points = [join_measured(run.predictions) for run in runs]
    return ProtocolResult(
        figures={method: _medians(of_method) for method, of_method in scores.items()},
        tables={name: _label_runs(runs, decisions), POINTS: _label_runs(runs, points)},
    )


def _label_runs(runs: list[_Run], tables: list[pd.DataFrame]) -> pd.DataFrame:
    labelled = []
    for run, table in zip(runs, tables, strict=True):
        copy = table.rename(columns={"model": "fold"})
        copy.insert(0, "method", run.method)
        copy.insert(1, "seed", run.seed)
        labelled.append(copy)
    return pd.concat(labelled, ignore_index=True)


def _medians(scores: list[dict[str, float]]) -> dict[str, float]:
    figures = {}
    for name in scores[0]:
        values = np.array([score[name] for score in scores])
        defined = values[~np.isnan(values)]
        figures[name] = float(np.median(defined)) if defined.size else float("nan")
    return figures


def _finite(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value

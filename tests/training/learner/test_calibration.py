from functools import cache

import numpy as np
import pandas as pd
import pytest

from roofcast.features.columns import ENGINES
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS, NAMES, PRIORS, Coefficients, StackCoefficients
from roofcast.features.engine.estimate import estimate
from roofcast.features.pipeline import estimate_metrics
from roofcast.features.queries import descriptor_arrays
from roofcast.training.dataset.targets import log_ratio
from roofcast.training.learner import calibration
from roofcast.training.learner.calibration import (
    MAX_OPEN_ROWS_PER_CELL,
    MAX_ROWS_PER_CELL,
    MAX_ROWS_PER_GROUP,
    fit_coefficients,
    fitted_targets,
    limit_groups,
    select_rows,
)
from tests.builders import a_question, describe_questions

MEASURED = ("vllm", "sglang", "trtllm")
MOVED = {"step_overhead_s": 2e-3, "request_overhead_s": 50e-3}
MAX_DISTANCE = 4.0


@cache
def questions() -> pd.DataFrame:
    """Return questions about three engines: prompts, answers, loads and splits of many sizes."""
    pick = np.random.default_rng(0)
    return describe_questions(
        *(
            a_question(
                engine=engine,
                n_accelerator=int(pick.choice([1, 2, 4])),
                n_input_token=int(pick.choice([100, 1000, 3000])),
                n_output_token=int(pick.choice([100, 300, 1000])),
                concurrency=int(pick.choice([1, 4, 16, 64])),
                n_request=1e9,
            )
            for engine in MEASURED
            for _ in range(80)
        )
    )


GROUPS = pd.Series([f"group {i % 4}" for i in range(len(questions()))])


def truth(**engine_factors: float) -> Coefficients:
    """Return coefficients with `MOVED` typical values, and SGLang's further away by factors."""
    typical = DEFAULT_COEFFICIENTS.with_values(**MOVED).typical
    offset = np.zeros((len(ENGINES), len(NAMES)))
    for name, factor in engine_factors.items():
        offset[ENGINES.index("sglang"), NAMES.index(name)] = np.log(factor)
    return Coefficients(typical, offset)


def estimated(X: pd.DataFrame, c: Coefficients | StackCoefficients) -> pd.DataFrame:
    """Return what `c` says of these questions."""
    d = descriptor_arrays(X)
    return pd.DataFrame(estimate_metrics(d, estimate(d, c)), index=X.index)


def measured(c: Coefficients, noise: float = 0.0) -> pd.DataFrame:
    """Return what `c` says of the questions, times log-normal noise."""
    random, values = np.random.default_rng(1), estimated(questions(), c)
    return pd.DataFrame({m: v * np.exp(noise * random.standard_normal(len(v))) for m, v in values.items()})


def slowed(name: str, factor: float) -> Coefficients:
    """Return the truth with one coefficient greater, of all engines."""
    c = truth()
    c.typical[NAMES.index(name)] += np.log(factor)
    return c


def at_rates(X: pd.DataFrame) -> pd.DataFrame:
    """Return the questions as seldom requests of an open loop."""
    return X.assign(**{"workload.concurrency": np.nan, "workload.request_rate_per_s": 0.02})


def fit(X: pd.DataFrame, y: pd.DataFrame, groups: pd.Series, stacks: pd.Series | None = None) -> Coefficients:
    """Return the fitted coefficients of a stack that nobody measured."""
    return fit_coefficients(X, y, groups, stacks)[0]


def test_known_coefficients_are_recovered_from_noisy_measurements() -> None:
    fitted = fit(questions(), measured(truth(), noise=0.03), GROUPS)
    for name, value in MOVED.items():
        for engine in MEASURED:
            gone = np.log(fitted.value(name, engine) / PRIORS[name].median)
            assert gone / np.log(value / PRIORS[name].median) == pytest.approx(1.0, abs=0.25), (name, engine)


def test_costs_that_only_come_together_are_recovered_together() -> None:
    """One model of 32 layers cannot tell the cost of a layer from that of a step; their sum is plain."""
    true = DEFAULT_COEFFICIENTS.with_values(layer_overhead_s=60e-6)
    fitted = fit(questions(), measured(true, noise=0.02), GROUPS)
    for engine in MEASURED:
        found, wanted = (
            32 * c.value("layer_overhead_s", engine) + c.value("step_overhead_s", engine) for c in (fitted, true)
        )
        assert found == pytest.approx(wanted, rel=0.15), engine


def test_one_engine_that_differs_is_recovered() -> None:
    true = truth(step_overhead_s=2.0)
    fitted = fit(questions(), measured(true, noise=0.02), GROUPS)
    for engine in MEASURED:
        found, wanted = (c.value("step_overhead_s", engine) for c in (fitted, true))
        assert np.log(found / wanted) == pytest.approx(0.0, abs=0.35), engine


def test_priors_that_are_true_stay_where_they_are() -> None:
    assert fit(questions(), measured(DEFAULT_COEFFICIENTS), GROUPS) == DEFAULT_COEFFICIENTS


@pytest.mark.parametrize("n_row", [0, 10])
def test_without_measurements_they_stay_at_their_priors(n_row: int) -> None:
    y = measured(DEFAULT_COEFFICIENTS) * np.nan
    fitted = fit(questions().head(n_row), y.head(n_row), GROUPS.head(n_row))
    assert fitted == DEFAULT_COEFFICIENTS


def test_engines_have_offsets_only_where_they_were_measured() -> None:
    fitted = fit(questions(), measured(truth(), noise=0.03), GROUPS)
    places = [ENGINES.index(engine) for engine in MEASURED]
    assert np.abs(fitted.offset[places]).sum(axis=1).min() > 0
    assert not np.delete(fitted.offset, places, axis=0).any()
    shared = [i for i, prior in enumerate(PRIORS.values()) if prior.engine_log_sd == 0]
    assert not fitted.offset[:, shared].any()


def test_engines_without_a_class_share_no_offset() -> None:
    """Two owners' engines are alike and have no class; a question that names no engine keeps the typical values."""
    X = questions().assign(**{"config.engine": float(ENGINES.index("other"))})
    stacks = pd.Series([f"owner {i % 2}/main" for i in range(len(X))], index=X.index)
    y = measured(truth(step_overhead_s=3.0), noise=0.02)
    shared, owners = fit_coefficients(X, y, GROUPS, stacks)
    assert not shared.offset.any()
    assert np.abs(owners.offset).sum(axis=1).min() > 0


def test_tails_are_left_out() -> None:
    y = measured(truth())
    tail = questions().assign(**{"workload.quantile": 0.99, "workload.is_mean": 0.0})
    X = pd.concat([questions(), tail], ignore_index=True)
    both = pd.concat([y, y * 1e4], ignore_index=True)
    groups = pd.concat([GROUPS, GROUPS], ignore_index=True)
    assert fit(X, both, groups) == fit(questions(), y, GROUPS)


def test_few_rows_of_request_rates_are_fitted_to_in_a_cell() -> None:
    closed = describe_questions(*(a_question(concurrency=users) for users in range(1, 31)))
    rate = np.linspace(0.1, 3.0, 30)
    opened = closed.assign(**{"workload.concurrency": np.nan})
    opened["workload.request_rate_per_s"] = rate
    y = measured(truth()).iloc[:60]
    rows, count = select_rows(pd.concat([closed, opened], ignore_index=True), y)
    assert rows[:30].tolist() == list(range(30))
    assert len(rows) == 30 + MAX_OPEN_ROWS_PER_CELL
    assert (count == 1).all()
    assert np.diff(rate[rows[30:] - 30]).min() > 0.5


def test_an_owner_of_open_loops_alone_has_offsets() -> None:
    """The fixed time of its requests is fitted to its open loops; the other owner measured closed loops alone."""
    X, half = questions(), len(questions()) // 2
    of_open = at_rates(X.iloc[half:])
    opened = estimated(of_open, slowed("request_overhead_s", 8.0))
    stacks = pd.Series(["lab/closed"] * half + ["shop/open"] * (len(X) - half), index=X.index)
    y = pd.concat([measured(truth()).iloc[:half], opened])
    common, offsets = fit_coefficients(pd.concat([X.iloc[:half], of_open]), y, GROUPS, stacks)
    own = {owner: offsets.of_owner(owner, common).value("request_overhead_s", "trtllm") for owner in ("lab", "shop")}
    assert own["shop"] > 3 * own["lab"]


def test_open_loops_move_nothing_that_owners_have_in_common() -> None:
    X, wild = questions(), measured(truth()) * 30
    both, y = pd.concat([X, at_rates(X)], ignore_index=True), pd.concat([measured(truth()), wild], ignore_index=True)
    stacks = pd.Series(["lab/closed"] * len(X) + ["shop/open"] * len(X))
    alone = fit(X, measured(truth()), GROUPS, stacks.iloc[: len(X)])
    assert fit(both, y, pd.concat([GROUPS, GROUPS], ignore_index=True), stacks).typical == pytest.approx(
        alone.typical
    )


def test_a_keys_offsets_are_those_of_any_owner_with_the_same_rows() -> None:
    """One row of others limits the weight of the key's eighty to a tenth of a row, in what owners share alone."""
    X, first, name = questions(), len(questions()) - 79, "request_overhead_s"
    y, gone = measured(truth()), {}
    y.iloc[first:] = estimated(X.iloc[first:], slowed(name, 6.0))
    for owner in ("shop", "key:shop"):
        stacks = pd.Series(["lab/rig"] * first + [f"{owner}/rig"] * (len(X) - first), index=X.index)
        common, offsets = fit_coefficients(X, y, GROUPS, stacks)
        gone[owner] = np.log(offsets.of_owner(owner, common).value(name, "trtllm") / truth().value(name, "trtllm"))
    assert gone["key:shop"] == pytest.approx(np.log(6.0), abs=0.05)
    assert gone["key:shop"] == pytest.approx(gone["shop"], abs=0.05)


@pytest.mark.parametrize("n_row", [1, 2, 60])
@pytest.mark.parametrize("most", [1, 100, 2**14])
def test_residuals_are_those_of_one_estimate(monkeypatch: pytest.MonkeyPatch, most: int, n_row: int) -> None:
    """Rows at a request rate, with disaggregated prefill, with both, and with neither; in any number of calls."""
    monkeypatch.setattr(calibration, "MAX_ROWS_PER_CALL", most)
    X = questions().iloc[:: len(questions()) // n_row].copy()
    kind = np.arange(len(X)) % 4
    X["workload.request_rate_per_s"] = np.where(kind % 2 == 0, 0.02, np.nan)
    X["workload.concurrency"] = X["workload.concurrency"].mask(kind % 2 == 0)
    X["config.n_prefill_accelerator"] = np.where(kind < 2, 2.0 * X["config.tp"] * X["config.pp"], 0.0)
    unit = np.arange(len(X)) % 3
    outcome = {m: measured(truth())[m].to_numpy()[: len(X)] for m in ("ttft_s", "tpot_s")}
    log = np.tile(truth().typical, (3, 1)) + np.linspace(-0.2, 0.2, 3)[:, None]
    coefficients = [StackCoefficients(log + shift, unit) for shift in (0.0, 0.1, 0.3)]
    found = calibration._FittedRows(descriptor_arrays(X), outcome, unit).residuals(coefficients)
    for c, residuals in zip(coefficients, found, strict=True):
        metrics = estimated(X, c)
        wanted = [log_ratio(outcome[m], metrics[m].to_numpy()) / calibration.ERROR_SCALE[m] for m in outcome]
        np.testing.assert_array_equal(residuals, np.concatenate(wanted))


def test_an_owners_own_fit_follows_its_rows_further_than_the_joint_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    X, name = questions(), "decode_attention_ratio"
    slow, lab = slowed(name, 6.0), pd.Series("lab/rig", index=X.index)
    y, left = estimated(X, slow), []
    for spread in (1.0, calibration.OWNER_SPREAD):
        monkeypatch.setattr(calibration, "OWNER_SPREAD", spread)
        common, offsets = fit_coefficients(X, y, GROUPS, lab)
        left.append(abs(np.log(offsets.of_owner("lab", common).value(name, "vllm") / slow.value(name, "vllm"))))
    assert left[1] < 0.9 * left[0]


def test_of_many_rows_of_a_cell_some_are_fitted_to_over_all_loads() -> None:
    X = describe_questions(*(a_question(concurrency=users) for users in range(100, 0, -1)))
    rows, count = select_rows(X, measured(truth()).iloc[:100])
    assert len(rows) == MAX_ROWS_PER_CELL
    assert count.sum() == 100
    load = np.sort(X["workload.concurrency"].iloc[rows])
    assert load[0] == 1
    assert np.diff(load).max() <= 3
    rows, count = select_rows(X.head(12), measured(truth()).iloc[:12])
    np.testing.assert_array_equal(rows, range(12))
    np.testing.assert_array_equal(count, np.ones(12))


def test_a_group_weighs_the_same_however_many_rows_it_has() -> None:
    some = questions()
    is_first = (GROUPS == "group 0").to_numpy()
    y = measured(DEFAULT_COEFFICIENTS).mul(np.where(is_first, 1.3, 1.0), axis=0)
    rows = np.concatenate([np.arange(len(some)), *[np.flatnonzero(is_first)] * 3])
    once = fit(some, y, GROUPS)
    often = fit(some.iloc[rows], y.iloc[rows], GROUPS.iloc[rows])
    step_s = [estimate(descriptor_arrays(some), c).tpot_s for c in (once, often)]
    assert np.median(np.log(step_s[1] / step_s[0])) == pytest.approx(0.0, abs=0.02)


def test_an_engine_without_kernel_tables_may_lie_farther_away() -> None:
    moved = {}
    for engine in ("vllm", "tgis"):
        X, name = questions().assign(**{"config.engine": float(ENGINES.index(engine))}), "decode_attention_ratio"
        moved[engine] = fit(X, estimated(X, slowed(name, 8.0)), GROUPS).value(name, engine)
    assert moved["vllm"] < moved["tgis"] < 10.0


def test_rows_without_targets_are_not_selected() -> None:
    X, y = questions().head(6), measured(truth()).head(6)
    y.iloc[[1, 4]] = np.nan
    told = {"e2e_s": 4.0, "output_throughput_token_per_s": 800.0}
    y.iloc[2] = pd.Series(told).reindex(y.columns)  # the time of a static batch, told as a rate too
    assert select_rows(X, fitted_targets(y))[0].tolist() == [0, 3, 5]


def test_one_row_in_twenty_may_be_nonsense() -> None:
    y = measured(truth(), noise=0.02)
    y.loc[y.index % 20 == 0] *= 50
    fitted = fit(questions(), y, GROUPS)
    for name, value in MOVED.items():
        assert np.log(fitted.value(name, "vllm") / value) == pytest.approx(0.0, abs=0.3), name


def test_throughput_counts_where_nothing_else_is_measured() -> None:
    y = measured(truth(), noise=0.02)
    y.loc[:, ["ttft_s", "tpot_s", "itl_s", "e2e_s", "nttft_s_per_token"]] = np.nan
    fitted = fit(questions(), y, GROUPS)
    assert fitted.value("step_overhead_s", "vllm") > 1.5 * PRIORS["step_overhead_s"].median
    y = measured(DEFAULT_COEFFICIENTS)
    y["output_throughput_token_per_s"] *= 2
    assert fit(questions(), y, GROUPS) == DEFAULT_COEFFICIENTS


def test_however_fast_the_measurements_no_share_exceeds_one() -> None:
    fitted = fit(questions(), measured(DEFAULT_COEFFICIENTS) * 1e-3, GROUPS)
    for place, (name, prior) in enumerate(PRIORS.items()):
        distance = abs(fitted.typical[place] - np.log(prior.median))
        assert distance <= MAX_DISTANCE * prior.log_sd * (1 + 1e-9)
        for engine in ENGINES:
            assert not prior.is_share or fitted.value(name, engine) <= 1.0
    row = fitted.by_row(np.arange(float(len(ENGINES))))
    assert (row["poll_ratio"] <= 1.0).all()


def test_what_owners_have_in_common_is_told_from_what_is_of_each() -> None:
    """Eight owners differ in the fixed time of a request, and all of them from the prior in three coefficients."""
    X = questions()
    owner = np.arange(len(X)) % 8
    random = np.random.default_rng(3)
    own, name = random.normal(0.0, 0.5, 8), "request_overhead_s"
    common = truth()
    logs = np.tile(common.typical, (8, 1))
    logs[:, NAMES.index(name)] += own
    y = estimated(X, StackCoefficients(logs, owner))
    stacks = pd.Series([f"owner {i}/stack" for i in owner], index=X.index)
    fitted, offsets = fit_coefficients(X, y, GROUPS, stacks)
    gone = np.log([fitted.value(name, engine) / common.value(name) for engine in MEASURED])
    assert gone.mean() == pytest.approx(own.mean(), abs=0.2)
    for i, shift in enumerate(own):
        mine = offsets.of_owner(f"owner {i}", fitted)
        assert np.log(mine.value(name, "vllm") / common.value(name)) == pytest.approx(shift, abs=0.25), i
    assert offsets.of_owner("nobody", fitted) == fitted


def test_one_owner_moves_the_common_coefficients_less_than_its_own() -> None:
    y = measured(truth(request_overhead_s=3.0))
    X, one = questions(), pd.Series("lab/rig", index=questions().index)
    common, offsets = fit_coefficients(X, y, GROUPS, one)
    pooled, none = fit_coefficients(X, y, GROUPS)
    prior, name = PRIORS["request_overhead_s"].median, "request_overhead_s"
    gone = {
        which: np.log(c.value(name, "vllm") / prior)
        for which, c in (("common", common), ("own", offsets.of_owner("lab", common)), ("pooled", pooled))
    }
    assert gone["own"] == pytest.approx(gone["pooled"], abs=0.1)
    assert 0 < gone["common"] < 0.9 * gone["own"]
    assert not none.owner


def test_a_lineage_counts_in_full_for_each_owner_who_measured_it() -> None:
    """Twenty owners measured each group: an owner's own time is found as if it alone had measured them."""
    X, name = questions(), "request_overhead_s"
    owner = np.arange(len(X)) // 4 % 20
    own = np.log(np.where(np.arange(20) == 7, 6.0, 1.0))
    logs = np.tile(truth().typical, (20, 1))
    logs[:, NAMES.index(name)] += own
    y = estimated(X, StackCoefficients(logs, owner))
    stacks = pd.Series([f"owner {i}/stack" for i in owner], index=X.index)
    groups = pd.Series("one group", index=X.index)
    common, offsets = fit_coefficients(X, y, groups, stacks)
    gone = np.log(offsets.of_owner("owner 7", common).value(name, "vllm") / truth().value(name, "vllm"))
    assert gone == pytest.approx(np.log(6.0), abs=0.2)


def test_rows_of_many_owners_have_the_coefficients_of_each() -> None:
    y = measured(truth(request_overhead_s=3.0))
    stacks = pd.Series([("a/x", "b", "a/y")[i % 3] for i in range(len(y))], index=y.index)
    common, offsets = fit_coefficients(questions(), y, GROUPS, stacks)
    engine = np.array([ENGINES.index(name) * 1.0 for name in ("vllm", "sglang", "tgis", "vllm")])
    rows = offsets.of_owners(np.array(["a", "b", "a", "stranger"], dtype=object), engine, common)
    table = rows.by_row(engine)
    for i, owner in enumerate(["a", "b", "a", "stranger"]):
        alone = offsets.of_owner(owner, common).by_row(engine[i : i + 1])
        for name in NAMES:
            assert table[name][i] == pytest.approx(alone[name][0], rel=1e-12), (owner, name)


def test_a_group_of_many_rows_has_the_weight_of_few() -> None:
    weight = limit_groups(np.ones(40), pd.Series(["a"] * 36 + ["b"] * 4))
    assert weight[:36].sum() == pytest.approx(MAX_ROWS_PER_GROUP)
    assert weight[36:].tolist() == [1.0] * 4


def test_rows_with_drafts_of_unknown_acceptance_hardly_move_the_coefficients() -> None:
    """Half of the rows have drafts and take twice as long; the fit follows the others."""
    X = questions().copy()
    has_drafts = np.arange(len(X)) % 2 == 0
    X.loc[has_drafts, "config.n_draft_token"] = 3.0
    X.loc[has_drafts, "config.acceptance_ratio"] = np.nan
    values = estimated(X, truth())
    fitted = fit(X, values.mul(np.where(has_drafts, 2.0, 1.0), axis=0), GROUPS)
    error = log_ratio(values["ttft_s"].to_numpy(), estimated(X, fitted)["ttft_s"].to_numpy())
    assert np.median(np.abs(error[~has_drafts])) < 0.05

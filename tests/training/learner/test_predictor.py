import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from roofcast.data.errors import OutOfRangeError
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
from roofcast.features.engine.estimate import estimate as estimate_queries
from roofcast.features.pipeline import METRICS, build_features
from roofcast.features.queries import descriptor_arrays
from roofcast.training.config import TrainingConfig
from roofcast.training.dataset.targets import log_ratio
from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.learner.calibration import fit_coefficients
from roofcast.training.learner.derived_metrics import THROUGHPUT
from roofcast.training.learner.errors.error_distribution import LogError, fit_error_distribution
from roofcast.training.learner.errors.group_keys import build_group_keys
from roofcast.training.learner.errors.prediction_errors import derived_sds
from roofcast.training.learner.predictor import CalibrationPoints, RoofcastPredictor
from roofcast.training.learner.ratio_model import RatioModel, fit_held_out, predict_by_model, predict_held_out
from tests.training.builders import LINEAGES, QUICK, repeated, synthetic

LATENCIES = tuple(metric for metric in METRICS if metric != THROUGHPUT)


@pytest.fixture
def predictor(quick: RoofcastPredictor) -> RoofcastPredictor:
    return quick


def test_higher_percentiles_of_latency_are_never_lower(campaign: TrainingSet) -> None:
    fitted = RatioModel(TrainingConfig(n_member=2, n_estimators=100)).fit(campaign.X, campaign.y, campaign.groups)
    base = campaign.X.assign(**{"workload.is_mean": 0.0})
    tables = [fitted.predict(base.assign(**{"workload.quantile": q})) for q in (0.5, 0.9, 0.95, 0.99)]
    for lower, higher in itertools.pairwise(tables):
        for metric in LATENCIES:
            assert (higher[metric] >= lower[metric]).all(), metric
    assert (tables[-1]["ttft_s"] > tables[0]["ttft_s"]).any()


def test_measurements_that_follow_the_estimate_leave_nothing_to_learn(subset: TrainingSet) -> None:
    data = synthetic(subset)
    fitted = RatioModel(QUICK).fit(data.X, data.y, data.groups)
    np.testing.assert_allclose(fitted.predict(data.X), data.y, rtol=1e-6)


def test_a_constant_ratio_is_learnt(subset: TrainingSet) -> None:
    data = synthetic(subset)
    slower = data.y * 3
    slower["output_throughput_token_per_s"] = data.y["output_throughput_token_per_s"] / 3
    fitted = RatioModel(QUICK).fit(data.X, slower, data.groups)
    np.testing.assert_allclose(fitted.predict(data.X), slower, rtol=1e-3)


def test_predictions_keep_index_and_order(predictor: RoofcastPredictor, campaign: TrainingSet) -> None:
    some = campaign.X.iloc[[5, 2, 900]]
    predicted = predictor.predict(some)
    assert predicted.index.equals(some.index)
    assert tuple(predicted.columns) == METRICS
    pd.testing.assert_frame_equal(predicted, predictor.predict(campaign.X).iloc[[5, 2, 900]])
    assert (predicted > 0).all(axis=None)


def test_a_metric_that_nobody_measured_is_not_predicted(subset: TrainingSet) -> None:
    y = subset.y.assign(itl_s=np.nan, tpot_s=0.0)
    fitted = RoofcastPredictor(QUICK, ("itl_s", "tpot_s", "ttft_s")).fit(subset.X, y, subset.groups)
    assert fitted.metrics_ == ("ttft_s",)
    assert list(fitted.predict_distribution(subset.X).median.columns) == ["ttft_s"]


def test_a_metric_of_one_lineage_is_not_predicted(subset: TrainingSet) -> None:
    y = subset.y.assign(itl_s=subset.y["itl_s"].where(subset.groups == LINEAGES[0]))
    fitted = RoofcastPredictor(QUICK, ("itl_s", "ttft_s")).fit(subset.X, y, subset.groups)
    assert fitted.metrics_ == ("ttft_s",)
    assert fitted.highest_level() == pytest.approx(0.75)
    assert fitted.held_out_["itl_s"].notna().any()


def test_given_coefficients_are_used_and_others_fitted(subset: TrainingSet) -> None:
    arguments = (subset.X, subset.y, subset.groups)
    given = DEFAULT_COEFFICIENTS.with_values(wait_step=9.0)
    assert RatioModel(QUICK, coefficients=given).fit(*arguments).coefficients_ == given
    assert RatioModel(QUICK).fit(*arguments).coefficients_ == DEFAULT_COEFFICIENTS
    calibrating = QUICK.model_copy(update={"calibrate": True})
    assert RatioModel(calibrating).fit(*arguments).coefficients_ == fit_coefficients(*arguments)[0]


def test_an_unfitted_predictor_says_so(subset: TrainingSet) -> None:
    for ask in (RoofcastPredictor().predict, RoofcastPredictor().predict_distribution, RoofcastPredictor().sample):
        with pytest.raises(NotFittedError):
            ask(subset.X)
    with pytest.raises(NotFittedError):
        RoofcastPredictor().highest_level()


def test_intervals_hold_the_value_and_nest(predictor: RoofcastPredictor, campaign: TrainingSet) -> None:
    prediction = predictor.predict_distribution(campaign.X)
    narrow, wide = (prediction.interval(level) for level in (0.5, 0.9))
    for low, high in (narrow, wide):
        assert (low <= prediction.median).all(axis=None)
        assert (prediction.median <= high).all(axis=None)
        assert (low > 0).all(axis=None)
    assert (wide[0] < narrow[0]).all(axis=None)
    assert (wide[1] > narrow[1]).all(axis=None)


def test_the_probability_of_a_limit_fits_the_interval(predictor: RoofcastPredictor, campaign: TrainingSet) -> None:
    prediction = predictor.predict_distribution(campaign.X.head(50), metrics=["tpot_s"])
    low, high = prediction.interval(0.8)
    for limit, p in ((low, 0.1), (prediction.median, 0.5), (high, 0.9)):
        np.testing.assert_allclose(prediction.p_below("tpot_s", limit["tpot_s"].to_numpy()), p, atol=1e-9)
    np.testing.assert_allclose(prediction.p_below("tpot_s", 1e9, slice(3)), np.full(3, 0.95), atol=1e-12)


def test_no_interval_reaches_beyond_physics_and_no_limit_beyond_it_is_met(
    predictor: RoofcastPredictor, campaign: TrainingSet
) -> None:
    prediction = predictor.predict_distribution(campaign.X.head(20))
    for ratio in (0.999, 1.1):  # of the medians: a median that is beyond the bound is its own
        bounds = {m: value * (1 / ratio if m == THROUGHPUT else ratio) for m, value in prediction.medians.items()}
        some = replace(prediction, physical=bounds)
        low, high = some.bounds(0.9)
        for metric, value in prediction.medians.items():
            end, side = (high[metric], 1 / 0.999) if metric == THROUGHPUT else (low[metric], 0.999)
            np.testing.assert_allclose(end, value * (side if ratio < 1 else 1.0))
            beyond = end * (1.00001 if metric == THROUGHPUT else 0.99999)
            assert (some.p_below(metric, beyond) == float(metric == THROUGHPUT)).all()


def test_intervals_hold_as_many_lineages_as_promised(predictor: RoofcastPredictor, campaign: TrainingSet) -> None:
    """Errors of predictions without the lineage, in standard deviations that do not know it either."""
    for metric, known in predictor.error_distributions_.items():
        rows = _training_points(predictor, campaign, metric)
        groups, prediction = campaign.groups.iloc[rows].to_numpy(), predictor.predict_ratio(campaign.X.iloc[rows])
        ratio = (campaign.y[metric] / predictor.held_out_[metric]).iloc[rows].to_numpy(dtype=float)
        errors = {}
        for name, of in predictor.error_distributions_.items():
            points = _training_points(predictor, campaign, name)
            effects, lineages = of.effects, campaign.groups.iloc[points].to_numpy()
            n = np.arange(len(points))
            effects = effects.with_points(effects.training_points_.take(n), effects.errors_[n])
            sd = of.scale.predict(prediction.features)
            sd *= effects.predict_sd_left_out(prediction.keys, groups, lineages)
            errors[name] = LogError(np.zeros_like(sd), sd, sd)
        inside = np.abs(np.log(ratio)) / derived_sds(prediction, errors)[metric] <= known.conformal.quantile(0.8)
        n_group = known.conformal.n_group
        assert pd.Series(inside).groupby(groups).mean().mean() >= 0.8 * n_group / (n_group + 1), metric


def test_measured_rows_shift_towards_their_measurement(predictor: RoofcastPredictor, campaign: TrainingSet) -> None:
    is_mean = campaign.X["workload.is_mean"] == 1
    X, y = campaign.X[is_mean], campaign.y[is_mean]
    moved, plain = predictor.predict_distribution(X).median, predictor.predict(X)
    for metric in predictor.metrics_:
        after, before = ((table[metric] / y[metric]).map(np.log).abs().median() for table in (moved, plain))
        assert after < 0.85 * before, metric


def test_a_few_own_rows_shift_what_others_measured(subset: TrainingSet) -> None:
    """The stack that is asked about takes half as long as the others' in two of the rows that they measured."""
    theirs = (subset.groups == "llama-13b").to_numpy()
    mine = np.flatnonzero(theirs)[[0, 5]]
    X = pd.concat([subset.X, subset.X.iloc[mine]], ignore_index=True)
    y = pd.concat([subset.y, subset.y.iloc[mine] / 2], ignore_index=True)
    groups = pd.concat([subset.groups, subset.groups.iloc[mine]], ignore_index=True)
    apart = pd.Series(["theirs"] * len(subset.X) + ["", ""])
    asked, told = subset.X[theirs], {}
    for name, stacks in (("one", None), ("apart", apart)):
        fitted = RoofcastPredictor(QUICK, ("tpot_s",)).fit(X, y, groups, stacks=stacks)
        ratio = fitted.predict_distribution(asked).median["tpot_s"] / subset.y["tpot_s"][theirs]
        told[name] = np.median(ratio)
    assert told["apart"] < 0.98 * told["one"]


def test_a_measured_stack_is_predicted_by_what_it_measured(subset: TrainingSet) -> None:
    """One of three stacks takes twice as long as the others; the LLM in question was measured on none of them."""
    data = repeated(subset, "fast/a", "slow/b", "fair/c")
    data.y[data.stacks == "slow/b"] *= 2
    seen = data.take((data.groups != LINEAGES[-1]).to_numpy())
    fitted = RoofcastPredictor(QUICK, ("tpot_s",)).fit(seen.X, seen.y, seen.groups, stacks=seen.stacks)
    asked = subset.X[(subset.groups == LINEAGES[-1]).to_numpy()]
    value = {
        name: fitted.on_stack(name).predict_distribution(asked).median["tpot_s"] for name in ("slow/b", "fast/a")
    }
    assert (value["slow/b"] > 1.3 * value["fast/a"]).all()
    together = fitted.on_stack(pd.Series("slow/b", asked.index)).predict_distribution(asked).median["tpot_s"]
    pd.testing.assert_series_equal(together, value["slow/b"])
    points = CalibrationPoints(asked.iloc[:2], (3 * value["slow/b"].iloc[:2]).to_frame())
    before, after = fitted.condition_on(points).on_stack("slow/b"), fitted.on_stack("slow/b").condition_on(points)
    first, then = (about.predict_distribution(asked).median["tpot_s"] for about in (before, after))
    pd.testing.assert_series_equal(first, then)
    assert (first >= (1 - 1e-9) * value["slow/b"]).all()
    assert (first > value["slow/b"]).any()
    with pytest.raises(ValueError, match="several owners, ask about one at a time"):
        fitted.on_stack(pd.Series(["slow/b", "fast/a"]))
    assert fitted.knows_stacks(pd.Series(["slow/b", "", "nobody"])).tolist() == [True, False, False]
    with pytest.raises(OutOfRangeError, match="is of the stack 'nobody'"):
        fitted.on_stack("nobody")


def test_trees_learn_what_the_offsets_of_owners_leave(subset: TrainingSet) -> None:
    """One of three owners has a step overhead fifty times as long, which its offsets explain."""
    data = repeated(subset, "fast/a", "slow/b", "fair/c")
    X, stacks, d = data.X, data.stacks, descriptor_arrays(data.X)
    values = [
        estimate_queries(d, c).tpot_s
        for c in (DEFAULT_COEFFICIENTS, DEFAULT_COEFFICIENTS.with_values(step_overhead_s=20e-3))
    ]
    y = pd.DataFrame({"tpot_s": np.where(stacks == "slow/b", values[1], values[0])}, X.index).reindex(
        columns=subset.y.columns
    )
    calibrating = QUICK.model_copy(update={"calibrate": True})
    model = RatioModel(calibrating, ("tpot_s",)).fit(X, y, data.groups, stacks=stacks)
    mine = (stacks == "slow/b").to_numpy()
    own = model.predict_ratio(X[mine], coefficients=model.coefficients_on(stacks[mine], X[mine]))
    none = model.predict_ratio(X[mine])
    error = [np.abs(np.log(p.estimates["tpot_s"] / values[1][mine])).mean() for p in (own, none)]
    assert error[0] < 0.6 * error[1]
    assert np.abs(np.log(model.predict(X[mine], stacks[mine])["tpot_s"] / values[1][mine])).mean() < 0.6 * error[1]


def _training_points(predictor: RoofcastPredictor, campaign: TrainingSet, metric: str) -> npt.NDArray[np.intp]:
    is_known = (campaign.y[metric] > 0).to_numpy() & predictor.held_out_[metric].notna().to_numpy()
    return np.flatnonzero(is_known)[predictor.error_distributions_[metric].training_row]


def test_training_points_are_means_and_medians(predictor: RoofcastPredictor, campaign: TrainingSet) -> None:
    for metric, known in predictor.error_distributions_.items():
        rows = _training_points(predictor, campaign, metric)
        assert (campaign.X["workload.quantile"].iloc[rows] == 0.5).all()
        points = known.effects.training_points_.keys[: len(rows)]
        np.testing.assert_array_equal(build_group_keys(campaign.X.iloc[rows]).keys, points)


def test_draws_scatter_about_the_prediction(predictor: RoofcastPredictor, campaign: TrainingSet) -> None:
    some = campaign.X.iloc[[0, 500, 900]]
    draws, value = predictor.sample(some, 2000), predictor.predict_distribution(some).median
    assert tuple(draws) == predictor.metrics_
    for metric, table in draws.items():
        assert table.shape == (2000, 3)
        np.testing.assert_allclose(np.median(table, axis=0), value[metric], rtol=0.1)


def test_fitting_and_asking_leave_settings_and_tables_alone(subset: TrainingSet) -> None:
    kept = subset.X.copy(), subset.y.copy(), subset.groups.copy()
    settings = RoofcastPredictor(QUICK, ("tpot_s",))
    before = clone(settings).get_params()
    fitted = settings.fit(subset.X, subset.y, subset.groups)
    fitted.predict_distribution(subset.X, CalibrationPoints(subset.X.head(3), subset.y.head(3)))
    fitted.sample(subset.X.head(3), 5)
    assert settings.get_params() == before
    pd.testing.assert_frame_equal(subset.X, kept[0])
    pd.testing.assert_frame_equal(subset.y, kept[1])
    pd.testing.assert_series_equal(subset.groups, kept[2])


@pytest.mark.parametrize("level", [0.91, 0.99, 0.0, 1.0])
def test_too_high_a_level_is_refused(level: float, predictor: RoofcastPredictor, campaign: TrainingSet) -> None:
    assert predictor.highest_level() == pytest.approx(0.9)
    with pytest.raises(OutOfRangeError):
        predictor.predict_distribution(campaign.X.head(1)).interval(level)
    with pytest.raises(OutOfRangeError):
        predictor.check_level(level)


def test_a_predictor_without_metrics_supports_no_level(subset: TrainingSet) -> None:
    fitted = RoofcastPredictor(QUICK).fit(subset.X, subset.y * np.nan, subset.groups)
    assert fitted.predict(subset.X).shape == (len(subset.X), 0)
    with pytest.raises(OutOfRangeError, match="no metric was measured"):
        fitted.highest_level()


def test_arrays_are_answered_as_the_table_is(predictor: RoofcastPredictor, campaign: TrainingSet) -> None:
    X = campaign.X.tail(7)
    table, arrays = (predictor.predict_distribution(queries) for queries in (X, descriptor_arrays(X)))
    known = predictor.predict_distribution(X, estimate=table.estimate, keys=build_group_keys(X))
    pd.testing.assert_frame_equal(table.median, known.median, check_exact=True)
    pd.testing.assert_frame_equal(table.median.reset_index(drop=True), arrays.median, check_exact=True)
    pd.testing.assert_frame_equal(table.log_sd.reset_index(drop=True), arrays.log_sd, check_exact=True)


@pytest.mark.parametrize("side", ["min", "max"])
def test_exactly_the_features_beyond_the_range_are_named(
    side: str, predictor: RoofcastPredictor, campaign: TrainingSet
) -> None:
    features, _, _ = build_features(campaign.X.head(3), predictor.coefficients_)
    spread = predictor.feature_range_.diff().loc["max"]
    sign = 1 if side == "max" else -1
    for name in ("roofline.step_log", "config.tp_log"):
        moved = features.copy()
        moved[name] = predictor.feature_range_[name][side] + sign * np.array([0.0, 0.049, 0.051]) * spread[name]
        assert predictor.extrapolated_features(moved.to_numpy()) == [[], [], [name]]
    both = features.assign(**{"config.tp_log": 9.0, "model.n_layer_log": 99.0})
    assert predictor.extrapolated_features(both.to_numpy()) == [["model.n_layer_log", "config.tp_log"]] * 3


@pytest.mark.slow  # calibrates twice in each fold; the next test has the folds without calibration
def test_held_out_predictions_know_nothing_of_their_own_lineage(campaign: TrainingSet) -> None:
    calibrating = QUICK.model_copy(update={"calibrate": True})
    predictor = RatioModel(calibrating, ("ttft_s", "tpot_s"))
    hidden = campaign.groups == "flan-ul2"
    absurd = campaign.y.mask(hidden, campaign.y * 1e3)
    before, after = (predict_held_out(predictor, campaign.X, y, campaign.groups) for y in (campaign.y, absurd))
    pd.testing.assert_frame_equal(before[hidden], after[hidden])
    assert (before[~hidden] != after[~hidden]).any(axis=None)


def test_held_out_predictions_are_those_of_a_predictor_without_the_lineage(subset: TrainingSet) -> None:
    predictor = RatioModel(QUICK, ("tpot_s",))
    held_out = predict_held_out(predictor, subset.X, subset.y, subset.groups)
    for name in LINEAGES:
        inside = (subset.groups == name).to_numpy()
        rest = subset.take(~inside)
        alone = RatioModel(QUICK, ("tpot_s",)).fit(rest.X, rest.y, rest.groups).predict(subset.X[inside])
        pd.testing.assert_frame_equal(held_out[inside], alone)


def test_each_model_of_a_fold_predicts_all_rows_and_its_own_as_held_out(subset: TrainingSet) -> None:
    predictor = RatioModel(QUICK, ("tpot_s",))
    folds = fit_held_out(predictor, subset.X, subset.y, subset.groups, stacks=subset.stacks)
    fold, by_fold = predict_by_model(folds, subset.X, subset.stacks)
    held_out = predict_held_out(predictor, subset.X, subset.y, subset.groups, stacks=subset.stacks)
    np.testing.assert_allclose(by_fold["tpot_s"][fold, np.arange(len(fold))], held_out["tpot_s"], rtol=1e-12)
    for i, one in enumerate(folds):
        every = one.model.predict(subset.X, subset.stacks)["tpot_s"]
        np.testing.assert_array_equal(by_fold["tpot_s"][i], every)
        assert not set(subset.groups.iloc[fold == i]) & set(subset.groups.iloc[fold != i])


def test_scores_of_measured_stacks_are_of_the_residuals_of_each_fold(
    subset: TrainingSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {}

    def capture(*args: Any, **kwargs: Any) -> Any:
        given.update(kwargs)
        return fit_error_distribution(*args, **kwargs)

    monkeypatch.setattr("roofcast.training.learner.predictor.fit_error_distribution", capture)
    fitted = RoofcastPredictor(QUICK, ("tpot_s",)).fit(subset.X, subset.y, subset.groups, stacks=subset.stacks)
    folds = fit_held_out(fitted, subset.X, subset.y, subset.groups, stacks=subset.stacks)
    fold, by_fold = predict_by_model(folds, subset.X, subset.stacks)
    error = log_ratio(subset.y["tpot_s"].to_numpy(), by_fold["tpot_s"])
    known = ~np.isnan(error[0])
    np.testing.assert_array_equal(given["fold_errors"].fold, fold[known])
    np.testing.assert_array_equal(given["fold_errors"].error, error[:, known])
    assert np.abs(given["fold_errors"].error - given["stack_residual"]).max() > 0.01


def test_uploads_do_not_decide_which_lineages_are_held_out_together(subset: TrainingSet) -> None:
    few_folds = RatioModel(QUICK.model_copy(update={"n_fold": 2}), ("tpot_s",))
    rows = np.flatnonzero((subset.groups == LINEAGES[-1]).to_numpy())
    at = np.concatenate([np.resize(rows, 3 * len(subset.X)), np.arange(len(subset.X))])
    is_upload = np.arange(len(at)) < len(at) - len(subset.X)
    X, y = (table.iloc[at].reset_index(drop=True) for table in (subset.X, subset.y))
    groups = subset.groups.iloc[at].reset_index(drop=True)
    stacks = pd.Series(np.where(is_upload, "key:ci/rig", "public"), dtype=object)
    alone = fit_held_out(few_folds, subset.X, subset.y, subset.groups)
    together = fit_held_out(few_folds, X, y, groups, stacks=stacks)
    held_out = [set(groups[fold.test][~is_upload[fold.test]]) for fold in together]
    assert held_out == [set(subset.groups.iloc[fold.test]) for fold in alone]


def test_only_trainable_rows_are_trained_on(subset: TrainingSet) -> None:
    predictor = RatioModel(QUICK, ("tpot_s",))
    trainable = subset.groups == LINEAGES[0]
    absurd = subset.y.where(trainable, subset.y * 1e3)
    before, after = (
        predict_held_out(predictor, subset.X, y, subset.groups, trainable=trainable.to_numpy())
        for y in (subset.y, absurd)
    )
    pd.testing.assert_frame_equal(before, after)
    assert before["tpot_s"].isna().tolist() == trainable.tolist()


def test_rows_of_a_key_widen_no_range(campaign: TrainingSet) -> None:
    both = repeated(campaign.take(np.arange(len(campaign.X)) % 20 == 0), "lab", "key:ci/rig")
    both.X["config.tp"] = both.X["config.tp"].where(both.stacks == "lab", 1024.0)
    public, every = (
        RoofcastPredictor(QUICK, ("tpot_s",)).fit(rows.X, rows.y, rows.groups, stacks=rows.stacks).feature_range_
        for rows in (both.take((both.stacks == "lab").to_numpy()), both)
    )
    pd.testing.assert_frame_equal(public, every)

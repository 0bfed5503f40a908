"""Calibration points, on a world of known effects: LLMs on two engines and two accelerators."""

import itertools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import InputError
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
from roofcast.features.pipeline import build_features
from roofcast.training.learner.predictor import CalibrationPoints, RoofcastPredictor
from tests.training.builders import QUICK

MODELS = (
    "BAAI/Aquila-7B", "bigcode/starcoder", "bigscience/bloom-7b1", "codellama/CodeLlama-13b-hf",
    "EleutherAI/gpt-j-6b", "EleutherAI/gpt-neox-20b", "facebook/opt-6.7b", "meta-llama/Llama-2-7b-hf",
)  # fmt: skip
PARTS = ("nvidia-a100-sxm-80gb", "nvidia-h100-sxm-80gb")
ENGINES = ("vllm", "sglang")
NEW = MODELS[-1]
SLOWER = 1.5
LEVEL = 0.8


@dataclass(frozen=True)
class World:
    """Questions, a predictor that never saw `NEW`, and what a `NEW` that is slower than predicted would show."""

    questions: pd.DataFrame
    X: pd.DataFrame
    predictor: RoofcastPredictor
    predicted: pd.Series

    def measured(self, factor: float = SLOWER) -> pd.Series:
        noise = np.random.default_rng(1).normal(0, 0.02, len(self.X))
        return self.predicted * factor * np.exp(noise)

    def points(self, n: int, factor: float = SLOWER) -> CalibrationPoints:
        rows = np.flatnonzero(self.here)[:n]
        return CalibrationPoints(self.X.iloc[rows], pd.DataFrame({"tpot_s": self.measured(factor).iloc[rows]}))

    def shift(self, points: CalibrationPoints) -> npt.NDArray[np.float64]:
        """Return by how much the points move the logarithm of each prediction."""
        value = self.predictor.predict_distribution(self.X, points).median["tpot_s"]
        return np.asarray(np.log(value / self.predicted))

    @property
    def here(self) -> npt.NDArray[np.bool_]:
        q = self.questions
        return np.asarray((q["model"] == NEW) & (q["engine"] == ENGINES[0]) & (q["accelerator"] == PARTS[0]))


@pytest.fixture(scope="module", params=(1, 2, 3), ids="world {}".format)
def world(request: pytest.FixtureRequest) -> World:
    catalog = load_catalog()
    shared = {"n_accelerator": 1, "n_input_token": 1000, "n_output_token": 200, "weight_precision": "bf16"}
    questions = pd.DataFrame(
        [
            shared | {"model": model, "accelerator": part, "engine": engine, "concurrency": users}
            for model in MODELS
            for part in PARTS
            for engine in ENGINES
            for users in (1, 4, 8, 16, 64)
        ]
    )
    X = describe(questions, catalog.models, catalog.accelerators)
    rng = np.random.default_rng(request.param)
    cell = questions.groupby(["model", "accelerator", "engine"]).ngroup().to_numpy()
    ratio = np.exp(rng.normal(0, 0.3, cell.max() + 1)[cell] + rng.normal(0, 0.03, len(X)))
    y = pd.DataFrame(build_features(X, DEFAULT_COEFFICIENTS)[1], index=X.index).mul(ratio, axis=0)
    seen = (questions["model"] != NEW).to_numpy()
    predictor = RoofcastPredictor(QUICK, ("tpot_s",)).fit(
        X[seen], y[seen], questions["model"][seen], stacks=pd.Series("theirs", X.index[seen])
    )
    return World(questions, X, predictor, predictor.predict_distribution(X).median["tpot_s"])


def test_three_points_cut_the_error_where_they_were_measured_to_a_third(world: World) -> None:
    rest = np.flatnonzero(world.here)[3:]
    measured, points = world.measured().iloc[rest], world.points(3)
    after = world.predictor.predict_distribution(world.X.iloc[rest], points).median["tpot_s"]
    error = [np.median(np.abs(np.log(measured / value))) for value in (world.predicted.iloc[rest], after)]
    assert error[0] == pytest.approx(np.log(SLOWER), abs=0.04)
    assert error[1] < error[0] / 3


def test_points_say_nothing_of_another_accelerator(world: World) -> None:
    shift, q = world.shift(world.points(3)), world.questions
    elsewhere = (q["accelerator"] != PARTS[0]).to_numpy()
    assert elsewhere.any()
    np.testing.assert_allclose(shift[elsewhere], 0.0, atol=1e-9)


def test_other_llms_elsewhere_move_little(world: World) -> None:
    shift, q = world.shift(world.points(3)), world.questions
    others = ((q["model"] != NEW) & ((q["engine"] != ENGINES[0]) | (q["accelerator"] != PARTS[0]))).to_numpy()
    is_engine = (q["engine"] == ENGINES[0]).to_numpy()
    assert np.abs(shift[others & ~is_engine]).max() < 0.1, "the stack is the same there"
    assert np.abs(shift[others & is_engine]).max() < 0.15, "so is its engine"


def test_the_first_point_tells_far_more_than_the_next(world: World) -> None:
    gains = np.diff([np.median(world.shift(world.points(n))[world.here]) for n in range(5)])
    assert gains[0] > 3 * np.abs(gains[1:]).max()


def test_points_narrow_the_interval_and_never_widen_one(world: World) -> None:
    widths = []
    for n in (0, 1, 3):
        answer = world.predictor.predict_distribution(world.X, world.points(n))
        widths.append(answer.log_sd["tpot_s"].to_numpy())
    for before, after in itertools.pairwise(widths):
        assert (after <= before + 1e-9).all()
    assert np.median(widths[2][world.here]) < 0.6 * np.median(widths[0][world.here])


def test_points_that_agree_lie_within_their_own_interval(world: World) -> None:
    points = world.points(5, 2.0)
    answer = world.predictor.predict_distribution(points.X, points)
    low, high = answer.interval(LEVEL)
    inside = points.y["tpot_s"].between(low["tpot_s"], high["tpot_s"])
    assert inside.mean() >= 0.4  # two of five: those at the highest loads lie outside


@pytest.mark.parametrize("factor", [0.2, 5.0])
def test_points_that_agree_are_believed_however_far_off(factor: float, world: World) -> None:
    points = world.points(5, factor)
    answer = world.predictor.predict_distribution(points.X, points)
    missed = np.abs(np.log(answer.median["tpot_s"] / points.y["tpot_s"]))
    assert np.median(missed) < 0.25
    assert missed.max() < 0.6


def test_draws_know_the_points_too(world: World) -> None:
    X = world.X[world.here]
    plain, conditioned = (world.predictor.sample(X, 300, given)["tpot_s"] for given in (None, world.points(3)))
    assert plain.shape == (300, len(X))
    assert np.median(conditioned) > 1.2 * np.median(plain)
    assert np.log(conditioned).std(axis=0).max() < np.log(plain).std(axis=0).min()
    np.testing.assert_array_equal(plain, world.predictor.sample(X, 300)["tpot_s"])
    assert (plain != world.predictor.sample(X, 300, seed=1)["tpot_s"]).any()


def test_draws_of_one_configuration_go_together(world: World) -> None:
    q = world.questions
    pair = np.flatnonzero(q["model"] == NEW)[[0, 1, -1]]
    draws = np.log(world.predictor.sample(world.X.iloc[pair], 2000)["tpot_s"])
    correlation = np.corrcoef(draws.T)
    assert correlation[0, 1] > correlation[0, 2] + 0.1
    assert correlation[0, 1] > 0.7


@pytest.mark.parametrize("y", [{}, {"tpot_s": [np.nan] * 2}, {"tpot_s": [0.0] * 2}, {"ttft_s": [9.0] * 2}])
def test_points_without_a_metric_do_not_shift_it(y: dict[str, list[float]], world: World) -> None:
    X = world.X.head(2)
    np.testing.assert_array_equal(world.shift(CalibrationPoints(X, pd.DataFrame(y, index=X.index))), 0.0)


def test_a_blank_cell_is_left_out(world: World) -> None:
    whole = world.points(3)
    X, y = world.X.iloc[[0, 1]], pd.DataFrame({"tpot_s": [np.nan, 0.0]}, index=world.X.index[:2])
    more = CalibrationPoints(pd.concat([X, whole.X]), pd.concat([y, whole.y]))
    np.testing.assert_allclose(world.shift(more), world.shift(whole), atol=1e-12)


def test_questions_and_measurements_are_as_many(world: World) -> None:
    with pytest.raises(InputError, match="references: got 2 questions and 1 measurements"):
        CalibrationPoints(world.X.head(2), pd.DataFrame({"tpot_s": [1.0]}))


def test_a_run_left_out_is_predicted_from_the_other_runs(world: World) -> None:
    X = world.points(5).X
    points = CalibrationPoints(X, world.predicted[X.index].mul([1.0, 1.01, 1.01, 1.02, 1.01]).to_frame())
    runs = np.array([0, 0, 1, 2, 2])
    left_out = world.predictor.predict_left_out(points, runs, np.ones(5, dtype=bool))
    for run in range(3):
        own, others = np.flatnonzero(runs == run), np.flatnonzero(runs != run)
        rest = CalibrationPoints(points.X.iloc[others], points.y.iloc[others])
        wanted = world.predictor.predict_distribution(points.X.iloc[own], rest)
        pd.testing.assert_frame_equal(left_out.median.iloc[own], wanted.median)
        pd.testing.assert_frame_equal(left_out.log_sd.iloc[own], wanted.log_sd)

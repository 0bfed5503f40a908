from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from roofcast.data.errors import InputError, UnknownNameError
from roofcast.serving.app_state.app_state import AppState
from roofcast.serving.app_state.champion_loader import LoadedModel
from roofcast.serving.stacks import measured
from roofcast.serving.stacks.joined_points import JoinedPointsCache
from roofcast.serving.stacks.measured import MAX_CACHED, MeasuredBundles, MeasuredStack
from roofcast.serving.stacks.profiles import Profile
from roofcast.serving.stacks.stack_choice import StackUsed, choose_stack
from roofcast.training.learner.predictor import CalibrationPoints
from roofcast.training.lifecycle.bundles.bundle import ModelBundle

STACKS = ("lab", "farm/one", "farm/two", "hut/rig", "unknown/rig")
POINTS = CalibrationPoints(pd.DataFrame({"x": [1.0]}), pd.DataFrame({"tpot_s": [0.1]}))


class FakePredictor:
    """Knows all of `STACKS` but the last; counts the predictors about a stack that it made."""

    def __init__(self, stack: str = "") -> None:
        self.stack, self.n_made = stack, 0

    def knows_stacks(self, names: pd.Series) -> npt.NDArray[np.bool_]:
        return names.isin(STACKS[:-1]).to_numpy()

    def on_stack(self, stack: str) -> FakePredictor:
        self.n_made += 1
        return FakePredictor(stack)

    def build_cache(self, _metrics: object) -> Self:
        return self


def active_model(sha256: str = "ab") -> LoadedModel:
    predictor: Any = FakePredictor()
    bundle = ModelBundle(predictor, "", "", (), (), (), {})
    return cast("LoadedModel", SimpleNamespace(champion=SimpleNamespace(sha256=sha256), bundle=bundle))


class FakeProfiles:
    """Has one profile, which is named like a measured stack."""

    def load(self, _state: object, _owner: str, name: str) -> Profile:
        if name != "lab":
            raise UnknownNameError("stack", name, ["lab"])
        return Profile(name, [], POINTS, POINTS, notes=("a note",))


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> AppState:
    stacks = tuple(MeasuredStack(name, 7, ("a", "b"), tuple("abcdefghijklmn"), ("tgi", "vllm")) for name in STACKS)
    monkeypatch.setattr(measured, "_shipped_stacks", lambda: stacks)
    return cast(
        "AppState",
        SimpleNamespace(
            profiles=FakeProfiles(), measured_bundles=MeasuredBundles(), joined_points=JoinedPointsCache()
        ),
    )


def test_a_profile_comes_first(state: AppState) -> None:
    active = active_model()
    bundle, points, used = choose_stack(state, active, "ann", "lab", POINTS)
    assert bundle is active.bundle
    assert points is not None
    assert len(points.X) == 2
    assert used == StackUsed("lab", "profile", ("a note",))
    assert choose_stack(state, active, "ann", None, POINTS) == (active.bundle, POINTS, None)


def test_requests_with_the_same_references_share_the_points_that_predictors_are_conditioned_on(
    state: AppState,
) -> None:
    first, other, again = (
        choose_stack(state, active_model(), "ann", "lab", CalibrationPoints(POINTS.X + x, POINTS.y)).points
        for x in (0.0, 1.0, 0.0)
    )
    assert first is again
    assert first is not other


@pytest.mark.parametrize("name", ["hut/rig", "hut"])
def test_a_measured_stack_is_named_in_full_or_by_an_owner_of_one_alone(state: AppState, name: str) -> None:
    active = active_model()
    bundle, points, used = choose_stack(state, active, "ann", name, POINTS)
    assert cast("FakePredictor", bundle.predictor).stack == "hut/rig"
    assert points is POINTS
    assert used is not None
    assert (used.name, used.kind) == ("hut/rig", "measured")
    assert used.notes == (
        "it measured tgi, vllm on a, b, c, d, e, f, g, h, i, j, k, l, 2 more (7 rows of 2 LLMs): "
        "intervals about any other engine or accelerator are too narrow, leave `stack` out there",
    )


def test_another_name_is_an_error_with_near_misses(state: AppState) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'hut/rig'"):
        choose_stack(state, active_model(), "ann", "hut/rigg")
    with pytest.raises(InputError, match="'farm' has 2 of them: farm/one, farm/two; name one"):
        choose_stack(state, active_model(), "ann", "farm")
    with pytest.raises(UnknownNameError, match="no 'unknown/rig' is known"):
        choose_stack(state, active_model(), "ann", "unknown/rig")


def test_a_bundle_about_a_stack_is_made_once_and_their_number_is_bounded() -> None:
    cache, active = MeasuredBundles(), active_model()
    first = cache.load(active, "hut/rig")
    assert cache.load(active, "hut/rig") is first
    assert cast("FakePredictor", active.bundle.predictor).n_made == 1
    for i in range(MAX_CACHED):
        cache.load(active, str(i))
    assert cache.load(active, "hut/rig") is not first
    assert len(cache._cache) == MAX_CACHED
    cache.load(active_model("cd"), "hut/rig")
    assert len(cache._cache) == 1

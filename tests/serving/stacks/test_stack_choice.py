from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import InputError, UnknownNameError
from roofcast.data.store.stack_profiles import StoredProfile
from roofcast.serving.app_state.champion_loader import LoadedModel
from roofcast.serving.app_state.store_access import StoreAccess
from roofcast.serving.stacks import stack_choice
from roofcast.serving.stacks.profiles import Profile
from roofcast.serving.stacks.stack_choice import MeasuredStackSummary, StackChoice, Stacks, StackUsed
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
    bundle = ModelBundle(predictor, "", "", (), {}, (), ())
    return cast("LoadedModel", SimpleNamespace(champion=SimpleNamespace(sha256=sha256), bundle=bundle))


class FakeStore:
    """Has one profile, which is named like a measured stack."""

    def open(self) -> Any:
        return SimpleNamespace(stacks=self)

    def load(self, _owner: str, name: str) -> StoredProfile:
        if name != "lab":
            raise UnknownNameError("stack", name, ["lab"])
        return StoredProfile(("id",), [], is_shared=False, hides_shared=False)


@pytest.fixture
def stacks(monkeypatch: pytest.MonkeyPatch) -> Stacks:
    measured_stacks = tuple(
        MeasuredStackSummary(name, 7, ("a", "b"), tuple("abcdefghijklmn"), ("tgi", "vllm")) for name in STACKS
    )
    monkeypatch.setattr(stack_choice, "_shipped_stacks", lambda: measured_stacks)
    profile = Profile("lab", [], POINTS, POINTS, notes=("a note",))
    return Stacks(cast("StoreAccess", FakeStore()), lambda *_: profile)


def choose(
    stacks: Stacks, active: LoadedModel, name: str | None, references: CalibrationPoints | None = None
) -> StackChoice:
    return stacks.choose(load_catalog(), active, "ann", name, references)


def test_a_profile_comes_first(stacks: Stacks) -> None:
    active = active_model()
    bundle, points, used = choose(stacks, active, "lab", POINTS)
    assert bundle is active.bundle
    assert points is not None
    assert len(points.X) == 2
    assert used == StackUsed("lab", "profile", ("a note",))
    assert choose(stacks, active, None, POINTS) == (active.bundle, POINTS, None)


@pytest.mark.parametrize("name", ["hut/rig", "hut"])
def test_a_measured_stack_is_named_in_full_or_by_an_owner_of_one_alone(stacks: Stacks, name: str) -> None:
    active = active_model()
    bundle, points, used = choose(stacks, active, name, POINTS)
    assert cast("FakePredictor", bundle.predictor).stack == "hut/rig"
    assert points is POINTS
    assert used is not None
    assert (used.name, used.kind) == ("hut/rig", "measured")
    assert used.notes == (
        "it measured tgi, vllm on a, b, c, d, e, f, g, h, i, j, k, l, 2 more (7 rows of 2 LLMs): "
        "intervals about any other engine or accelerator are too narrow, leave `stack` out there",
    )


def test_another_name_is_an_error_with_near_misses(stacks: Stacks) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'hut/rig'"):
        choose(stacks, active_model(), "hut/rigg")
    with pytest.raises(InputError, match="'farm' has 2 of them: farm/one, farm/two; name one"):
        choose(stacks, active_model(), "farm")
    with pytest.raises(UnknownNameError, match="no 'unknown/rig' is known"):
        choose(stacks, active_model(), "unknown/rig")


def test_a_bundle_about_a_stack_is_made_once_for_a_champion(stacks: Stacks) -> None:
    active = active_model()
    first = choose(stacks, active, "hut/rig").bundle
    assert choose(stacks, active, "hut/rig").bundle is first
    assert cast("FakePredictor", active.bundle.predictor).n_made == 1
    assert choose(stacks, active_model("cd"), "hut/rig").bundle is not first

import numpy as np
import pytest

from roofcast.training.learner.boosted_trees import ResidualRegressor
from roofcast.training.lifecycle.bundles.ubjson import parse_ubjson
from tests.training.lifecycle.bundles.ubjson_writer import write_ubjson

LENGTH_5 = b"L" + bytes(7) + b"\5"


def test_the_model_of_a_booster_equals_its_json() -> None:
    X = np.random.default_rng(0).normal(size=(100, 4))
    regressor = ResidualRegressor(n_estimators=140, min_child_weight=1.0).fit(X, X[:, 0])
    model = parse_ubjson(regressor.members_[0])
    expected = regressor.boosters_[0].to_json()
    trees = [one["learner"]["gradient_booster"]["model"].pop("trees") for one in (model, expected)]
    for tree, other in zip(*trees, strict=True):
        assert tree.keys() == other.keys()
        for name, value in tree.items():
            assert value == other[name] if isinstance(value, dict | int) else value == pytest.approx(other[name])
    model["learner"]["gradient_booster"]["model"].pop("cats")
    expected["learner"]["gradient_booster"]["model"].pop("cats")
    assert model == expected


@pytest.mark.parametrize(
    "value", [None, True, False, 3, -1, 0.1, "é", [], [1, ["a"]], {}, {"a": {"b": [None]}}, {"é": "\0"}]
)
def test_values_are_read_as_they_were_written(value: object) -> None:
    assert parse_ubjson(write_ubjson(value)) == value


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "i4", "i8", "f4", "f8"])
def test_typed_arrays_are_read_as_they_were_written(dtype: str) -> None:
    for values in ([], [1, 2, 3]):
        np.testing.assert_array_equal(parse_ubjson(write_ubjson(np.array(values, dtype=dtype))), values)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "1 bytes are declared at 0 of 0"),
        (b"X", "unknown marker"),
        (b"TT", "1 bytes follow the end"),
        (b"l\0", "4 bytes are declared at 1 of 2"),
        (b"S" + LENGTH_5 + b"ab", "5 bytes are declared"),
        (b"SL" + b"\xff" * 8, "-1 bytes are declared"),
        (b"Si\1a", "no length"),
        (b"[TF]", "an array without length"),
        (b"[$l]", "an array without length"),
        (b"[$d#" + LENGTH_5 + bytes(8), "20 bytes are declared"),
        (b"[$d#L" + b"\x7f" + b"\xff" * 7, "bytes are declared"),
        (b"{", "1 bytes are declared at 1 of 1"),
        (write_ubjson({"a": 1})[:-1] + write_ubjson({"a": 2})[1:], "'a' is given twice"),
    ],
)
def test_other_documents_are_refused(content: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_ubjson(content)


@pytest.mark.parametrize("marker", [b"S", b"T", b"X"])
def test_typed_arrays_hold_numbers(marker: bytes) -> None:
    with pytest.raises(KeyError):
        parse_ubjson(b"[$" + marker + b"#" + LENGTH_5 + bytes(99))


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(RecursionError):
        parse_ubjson((b"[#L" + bytes(7) + b"\1") * 100_000)

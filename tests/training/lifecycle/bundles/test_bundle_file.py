import json
import tracemalloc
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from roofcast.data.errors import InputError
from roofcast.training.config import TrainingConfig
from roofcast.training.lifecycle.bundles import bundle_file
from roofcast.training.lifecycle.bundles.bundle_file import (
    ARRAYS,
    FORMAT,
    TREE,
    BundleFile,
    stored_fields,
    write_object,
)


@dataclass(frozen=True)
class Point:
    x: Any
    y: Any = 0
    total: Any = field(init=False, default=None)


class Estimator:
    def __init__(self) -> None:
        self.a_ = 1

    def predict(self) -> int:
        return self.a_


CLASSES = {Point: stored_fields(Point), Estimator: ("a_",), TrainingConfig: stored_fields(TrainingConfig)}


def round_trip(value: Any, path: Path) -> Any:
    write_object(path, value, CLASSES, {})
    return BundleFile.parse(path.read_bytes(), path.name).decode(CLASSES)


def forge(change: Callable[[dict[str, Any]], object], tmp_path: Path) -> BundleFile:
    """Return a file with a changed tree."""
    path = tmp_path / "forge"
    write_object(path, Point(np.arange(3.0)), CLASSES, {})
    with zipfile.ZipFile(path) as file:
        tree, arrays = json.loads(file.read(TREE)), file.read(ARRAYS)
    change(tree)
    return BundleFile.parse(archive(path, [(TREE, json.dumps(tree)), (ARRAYS, arrays)]), path.name)


def archive(path: Path, contents: Iterable[tuple[str, str | bytes]], compression: int = zipfile.ZIP_STORED) -> bytes:
    """Write an archive of these members and return its bytes."""
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in contents:
            file.writestr(name, content)
    return path.read_bytes()


EMPTY = json.dumps({"format": 1, "about": {}, "value": None})


@pytest.mark.parametrize(
    "value",
    [
        None, True, 3, 0.1, float("inf"), "text", b"\0\xff", [1, [2]], (1, (2, "a")), {"a": {"b": None}}, {},
        Point(1, (2,)), TrainingConfig(n_estimators=7),
    ],
)  # fmt: skip
def test_values_survive_a_round_trip(value: object, tmp_path: Path) -> None:
    result = round_trip(value, tmp_path / "f")
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "u8", "u1", "?"])
def test_arrays_survive_a_round_trip(dtype: str, tmp_path: Path) -> None:
    value = np.arange(6).reshape(2, 3).astype(dtype)
    for array in (value, value.T, value[:0]):
        result = round_trip(array, tmp_path / "f")
        np.testing.assert_array_equal(result, array)
        assert result.dtype == array.dtype


def test_tables_survive_a_round_trip(tmp_path: Path) -> None:
    table = pd.DataFrame({"n": [1.5, np.nan], "name": ["a", None], "key": np.array([2**63, 1], dtype=np.uint64)})
    pd.testing.assert_frame_equal(round_trip(table, tmp_path / "f"), table)
    named = pd.DataFrame({"a": [1.0, 2.0]}, index=["min", "max"])
    pd.testing.assert_frame_equal(round_trip(named, tmp_path / "f"), named)


def test_attributes_that_are_not_registered_are_left_out(tmp_path: Path) -> None:
    estimator = Estimator()
    estimator.__dict__["cache"] = object()
    assert vars(round_trip(estimator, tmp_path / "f")) == {"a_": 1}


def test_equal_arrays_are_stored_once(tmp_path: Path) -> None:
    once, twice = tmp_path / "once", tmp_path / "twice"
    array = np.random.default_rng(0).normal(size=10_000)
    write_object(once, [array], {}, {})
    write_object(twice, [array, array.copy()], {}, {})
    assert twice.stat().st_size < 1.01 * once.stat().st_size


@pytest.mark.parametrize(
    "value", [object(), {1: 2}, {"$": 1}, np.array([object()]), pd.DataFrame({"a": [object()]}), Estimator, len]
)
def test_other_values_are_not_written(value: object, tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        write_object(tmp_path / "f", value, CLASSES, {})
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("name", ["os.system", "builtins.eval", "subprocess", "Unknown", "", None, 1, ["Point"]])
def test_a_name_in_a_file_is_never_imported(name: object, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot be read.*retrain"):
        forge(lambda tree: tree["value"].update({"$": name or "None"}), tmp_path).decode(CLASSES)


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "|O"}, {"dtype": "object"}, {"dtype": "<f8,<f8"}, {"dtype": "<M8[ns]"}, {"dtype": 8},
        {"shape": [10**12]}, {"shape": [2**62, 2**62]}, {"shape": [-1]}, {"shape": [-3, -1]}, {"shape": "3"},
        {"at": -8}, {"at": 10**9}, {"at": 8}, {"at": "0"}, {"$": "bytes", "size": 10**12},
    ],
)  # fmt: skip
def test_an_array_must_lie_in_the_block_and_hold_numbers(change: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot be read.*retrain"):
        forge(lambda tree: tree["value"]["x"].update(change), tmp_path).decode(CLASSES)


def test_parts_of_another_version_are_refused(tmp_path: Path) -> None:
    point, names = {"$": "Point", "x": 1, "y": 1}, ("predict", "__class__", "__init__", "__dict__", "b_")
    trees: list[dict[str, object]] = [
        {**point, "z": 1},
        {**point, "total": 1},
        {"$": "Point", "x": 1},
        {"$": "TrainingConfig"},
    ]
    for tree in (*trees, *({"$": "Estimator", name: 1} for name in names)):
        file = replace(forge(lambda _: None, tmp_path), tree=tree)
        with pytest.raises(InputError, match=f"the stored attributes of {tree['$']} are not those"):
            file.decode(CLASSES)


def test_a_newer_format_asks_for_an_upgrade(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"has format {FORMAT + 1}, this version reads {FORMAT}; upgrade roofcast"):
        forge(lambda tree: tree.update(format=FORMAT + 1), tmp_path)


@pytest.mark.parametrize("tree", ["", "[]", "null", '{"format": 1}', '{"format": "x"}', "[" * 100_000])
def test_a_broken_tree_is_refused(tree: str, tmp_path: Path) -> None:
    content = archive(tmp_path / "f", [(TREE, tree), (ARRAYS, b"")])
    with pytest.raises(InputError, match=r"cannot be read.*retrain"):
        BundleFile.parse(content, "f")


@pytest.mark.parametrize(
    "names",
    [[], [TREE], [TREE, ARRAYS, "more"], [TREE, ARRAYS, "../../evil"], ["/etc/passwd", TREE], ["../x", ARRAYS]],
)
def test_other_members_are_refused_and_nothing_is_extracted(names: list[str], tmp_path: Path) -> None:
    content = archive(tmp_path / "f", [(name, "{}") for name in names])
    with pytest.raises(InputError, match="is no bundle"):
        BundleFile.parse(content, "f")
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_a_member_twice_is_refused(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate"):
        content = archive(tmp_path / "f", [(name, "{}") for name in (TREE, ARRAYS, TREE)])
    with pytest.raises(InputError, match="is no bundle"):
        BundleFile.parse(content, "f")


@pytest.mark.parametrize("member", [TREE, ARRAYS])
def test_a_zip_bomb_is_not_inflated(member: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(bundle_file.MAX_BYTE, member, 10**5)
    contents = [(TREE, "{}" + " " * 10**6), (ARRAYS, " " * 10**6)]
    content = archive(tmp_path / "f", contents, zipfile.ZIP_DEFLATED)
    with pytest.raises(InputError, match=r"1,000,00\d bytes of .*; at most 100,000 are read"):
        BundleFile.parse(content, "f")


@pytest.mark.parametrize("member", [TREE, ARRAYS])
def test_decompression_stops_at_the_declared_size(member: str, tmp_path: Path) -> None:
    """The directory of the archive declares 10 bytes of a member that holds 50 million."""
    n_byte = 50_000_000
    contents = {TREE: EMPTY, ARRAYS: ""} | {member: " " * n_byte}
    content = archive(tmp_path / "f", contents.items(), zipfile.ZIP_DEFLATED)
    content = content.replace(n_byte.to_bytes(4, "little"), (10).to_bytes(4, "little"))
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"cannot be read.*retrain"):
            BundleFile.parse(content, "f")
        assert tracemalloc.get_traced_memory()[1] < 2 * 10**6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_refused(compression: int, tmp_path: Path) -> None:
    content = archive(tmp_path / "f", [(TREE, EMPTY), (ARRAYS, b"")], compression)
    with pytest.raises(InputError, match=r"must be stored or deflated, got compression \d+"):
        BundleFile.parse(content, "f")

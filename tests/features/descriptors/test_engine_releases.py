from itertools import pairwise

import numpy as np
import pytest

from roofcast.features.columns import ENGINES
from roofcast.features.descriptors.engine_releases import describe_releases, engine_releases, find_release


def test_releases_are_in_order_and_no_later_one_waits_longer_for_the_host() -> None:
    for engine, releases in engine_releases().items():
        assert engine in ENGINES
        for earlier, later in pairwise(releases):
            assert earlier.version < later.version
            assert earlier.year <= later.year
            assert earlier.host_ratio >= later.host_ratio


@pytest.mark.parametrize(
    ("engine", "version", "date", "found"),
    [
        ("vllm", "0.10.2", "", (0, 10)),
        ("vllm", "v0.14.0rc3.dev30+gb026", "2024-01-01", (0, 14)),
        ("vllm", "", "2025-06", (0, 9)),
        ("vllm", "main 2025-10", "2025-10-20", (0, 11)),
        ("vllm", "0.0.1", "", (0, 1)),
        ("vllm", "", "2020", (0, 1)),
        ("sglang", "0.5.4.post2", "", (0, 5, 4)),
        ("sglang", "", "2024-12-31", (0, 4)),
        ("trtllm", "1.3.0rc1", "", (1, 2)),
        ("tgi", "2.3", "2024-10", ()),
    ],
)
def test_a_version_decides_before_a_date(engine: str, version: str, date: str, found: tuple[int, ...]) -> None:
    assert find_release(engine, version, date).version == found


def test_blanks_mean_the_newest_release_and_a_version_dates_itself() -> None:
    code = np.full(3, float(ENGINES.index("vllm")))
    version, date = (np.array(cells, dtype=object) for cells in (["", "0.8.5", ""], ["", "", "2025-03-20"]))
    columns = describe_releases(code, version, date)
    newest = engine_releases()["vllm"][-1].year
    assert columns["config.date"].round(2).tolist() == [round(newest, 2), 2025.21, 2025.22]
    assert columns["config.host_ratio"].tolist() == [0.0, 1.0, 1.0]
    assert columns["config.is_overlapped"].tolist() == [1.0, 0.0, 0.0]

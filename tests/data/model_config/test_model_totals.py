from __future__ import annotations

import re

import pytest

from tests.data.model_config.model_configs import PUBLISHED
from tests.data.model_config.model_totals import SOURCES


def test_every_total_has_a_source() -> None:
    assert SOURCES.keys() == PUBLISHED.keys()
    assert all(source.startswith(("safetensors total of ", "own count; ")) for source in SOURCES.values())


@pytest.mark.parametrize("name", [name for name, source in SOURCES.items() if re.search(r" is [\d,]+:", source)])
def test_a_counted_total_is_near_the_published_one(name: str) -> None:
    published = re.search(r" is ([\d,]+):", SOURCES[name])
    assert published is not None
    ratio = int(published[1].replace(",", "")) / PUBLISHED[name][1]
    assert ratio == pytest.approx(1.0, abs=0.11)

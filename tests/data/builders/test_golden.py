"""Every recipe rebuilds the shipped files of its campaign byte for byte."""

from pathlib import Path

import pytest

from builders.build import TOPICS, Topic, build, differences
from builders.campaigns.silicon.index import build_index
from judge.peers.silicon_peers import FOLDER

RAW = Path(__file__).parents[3].parent / "shared" / "data"


@pytest.mark.skipif(not RAW.is_dir(), reason="the published files are missing next to the checkout (shared/data)")
@pytest.mark.parametrize(
    ("topic", "name"), [pytest.param(topic, name, id=name) for topic in TOPICS for name in topic.recipes]
)
def test_recipe_rebuilds_the_shipped_files(topic: Topic, name: str) -> None:
    assert differences(build(topic, name, RAW), topic, name) == []


@pytest.mark.skipif(not RAW.is_dir(), reason="the published files are missing next to the checkout (shared/data)")
def test_silicon_index_is_rebuilt() -> None:
    text = build_index(RAW).to_csv(index=False, lineterminator="\n")
    assert text == (FOLDER / "rows_index.csv").read_text(encoding="utf-8")

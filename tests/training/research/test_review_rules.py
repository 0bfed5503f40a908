from collections import Counter
from pathlib import Path

import pytest

from codegen.docs_tables import with_tables
from judge.peers.silicon_peers import FAULTS
from research import review_rules
from research.review_rules import RULES, TABLES, Counts, Stage, counts
from roofcast.data.campaigns import CAMPAIGNS, load_campaign_info
from roofcast.data.catalog import load_catalog
from roofcast.features.validity.plausibility import RULES as PHYSICS
from roofcast.training.dataset.review import _column_rules
from tests.training.dataset.test_review import rows

pytestmark = pytest.mark.slow

DOCUMENT = Path(__file__).parents[3] / "docs" / "REVIEW_RULES.md"


@pytest.fixture(scope="module")
def row_counts() -> dict[Stage, Counts]:
    return counts()


@pytest.fixture(autouse=True)
def counted_once(row_counts: dict[Stage, Counts], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(review_rules, "counts", lambda: row_counts)


def test_document_matches_the_code() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert all(f"<!-- {name} -->" in text for name in TABLES)
    assert with_tables(text, TABLES) == text, "run `make reference`"


def test_rules_have_the_order_of_the_review() -> None:
    catalog = load_catalog()
    plain = [name for name, _, _ in _column_rules(rows({}), catalog.models, catalog.accelerators)]
    assert [rule.name for rule in RULES["learnt"]] == [*plain, "beyond_estimate", *PHYSICS]


def test_rules_are_described_once() -> None:
    for rules in RULES.values():
        names = [rule.name for rule in rules]
        assert len(names) == len(set(names))
        assert all(rule.inputs and (rule.condition or rule.name in FAULTS) for rule in rules)


def test_counts_match_campaign_info(row_counts: dict[Stage, Counts]) -> None:
    published: Counter[str] = sum(row_counts["published"].values(), Counter())
    for name in CAMPAIGNS:
        assert published[name] == load_campaign_info(name).n_rejected
    assert sum(row_counts["marked"].values(), Counter()) == row_counts["learnt"]["published_fault"]

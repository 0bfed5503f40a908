"""Generator of the table of rejection rules with their row counts by campaign.

Usage: ``python -m research.review_rules docs/REVIEW_RULES.md``.
"""

import csv
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple, get_args

from builders.build_result import load_rejected_rows
from codegen.docs_tables import plain_table, write_tables
from judge.peers.silicon_peers import FAULTS, load_silicon_index
from roofcast.data.campaigns import CAMPAIGNS, load_campaigns
from roofcast.data.catalog import load_catalog
from roofcast.data.job_campaigns import TRAINING_CAMPAIGNS
from roofcast.training.dataset.review import review

Stage = Literal["published", "marked", "learnt"]
"""Effect of a rule: rejects a published row, marks a stored row, or excludes a measurement from training."""

FILE: Final = Path(__file__).with_suffix(".csv")

Counts = dict[str, Counter[str]]
"""Row counts by rule and campaign."""


class Rule(NamedTuple):
    """Rule with its short name, its inputs, and the condition that it detects; that of `FAULTS` for a blank one."""

    name: str
    inputs: str
    condition: str


def read_rules() -> dict[Stage, tuple[Rule, ...]]:
    """Return all rules of ``review_rules.csv`` by stage, in the order of `review.review` where it applies them."""
    with FILE.open(encoding="utf-8") as file:
        rows = [(row.pop("stage"), Rule(**row)) for row in csv.DictReader(file)]
    return {name: tuple(rule for stage, rule in rows if stage == name) for name in get_args(Stage)}


RULES: Final = read_rules()


def counts() -> dict[Stage, Counts]:
    """Count the rows of each rule in each shipped campaign."""
    result: dict[Stage, Counts] = {stage: defaultdict(Counter) for stage in RULES}
    for name in (*CAMPAIGNS, *TRAINING_CAMPAIGNS):
        for rule, n in load_rejected_rows(name)["reason"].value_counts().items():
            result["published"][str(rule)][name] = n
    index = load_silicon_index()
    for rule, n in index.loc[index["set_aside"] == "", "fault"].value_counts().items():
        if rule:
            result["marked"][str(rule)]["silicon"] = n
    catalog, rows = load_catalog(), load_campaigns()
    excluded = review(rows, catalog.models, catalog.accelerators)
    for rule, subset in excluded.groupby("rule"):
        result["learnt"][str(rule)].update(rows.loc[subset.index, "campaign"])
    return result


def _table() -> str:
    lines = []
    for stage, rows_by_rule in counts().items():
        described = {rule.name: rule for rule in RULES[stage]}
        for name in rows_by_rule:
            _ = described[name]
        for rule in described.values():
            campaigns = ", ".join(f"{campaign} {n:,}" for campaign, n in sorted(rows_by_rule[rule.name].items()))
            total = f"{rows_by_rule[rule.name].total():,}"
            condition = rule.condition or FAULTS[rule.name]
            lines.append((stage, f"`{rule.name}`", rule.inputs, condition, total, campaigns or "none"))
    return plain_table(("stage", "rule", "inputs", "condition", "rows", "by campaign"), lines)


TABLES: Final = {"rules": _table}
"""Tables by marker."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Update the table of a document."""
    write_tables("research.review_rules", TABLES, arguments)


if __name__ == "__main__":
    main()

"""Every rule by which rows are set aside, and how many it finds in each campaign: the table of a document.

Written by ``python -m research.review_rules docs/REVIEW_RULES.md``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from builders.docs_tables import plain_table, write_tables
from builders.quarantine import load_quarantine
from roofcast.data.campaigns import CAMPAIGNS, load_campaigns
from roofcast.data.campaigns.silicon_index import FAULTS, load_silicon_index
from roofcast.data.catalog import load_catalog
from roofcast.data.training_campaigns import TRAINING_CAMPAIGNS
from roofcast.training.dataset.review import review

Stage = Literal["published", "marked", "learnt"]
"""Whether a rule keeps a published row out, marks a row that is kept, or keeps a measurement from being learnt."""

Counts = dict[str, Counter[str]]
"""Rows by rule and campaign."""


class Rule(NamedTuple):
    """A rule: its short name, what it looks at, and what it finds."""

    name: str
    works_from: str
    finds: str


PUBLISHED: Final = tuple(
    Rule(*fields)
    for fields in (
        ("above_capacity", "physics", "memory in use is more than the accelerator has"),
        ("above_peak", "physics", "speed, or the least work behind it, is above the accelerator's peak"),
        ("accelerator_not_stated", "names", "neither file nor row names the accelerator"),
        ("aggregated", "names", "several deployments are summed up by arithmetic"),
        ("asked_twice", "revisions", "one revision answers a question twice"),
        ("beyond_context", "configuration", "the lengths exceed what the model can hold"),
        ("blog_table", "table's kind", "rows do not name accelerator, precision and model each"),
        ("copied_baseline", "repeated digits", "the figure is another row's baseline to the last digit"),
        ("covered_by_logs", "rounds", "the logs of the same round tell more"),
        ("duplicate", "repeated digits", "the measurement of another row"),
        ("exact_repeat", "repeated digits", "the same run to the last digit"),
        ("faster_than_weights", "physics", "tokens come sooner than the weights can be read"),
        ("implausible", "physics", "two published numbers of one run contradict each other, as importers judge it"),
        ("impossible_split", "configuration", "the parallel sizes do not divide the accelerators"),
        ("inconsistent", "physics", "throughput contradicts batch and step time, or the work of a token"),
        ("invalid_result", "status", "the source itself calls the result invalid"),
        ("kv_block_size", "configuration", "cache blocks of a size that is under study, not served"),
        ("latency_undefined", "table's kind", "a latency without a definition"),
        ("malformed", "table's kind", "cells are missing or stand under a wrong heading"),
        ("no_generation", "names", "no generation of tokens of known lengths"),
        ("no_kv_cache", "configuration", "each token computes all before it again"),
        ("no_language_model", "names", "the model makes no text"),
        ("no_lengths", "table's kind", "request lengths are not published"),
        ("no_outcome", "table's kind", "the row holds no figure"),
        ("no_partner", "table's kind", "half of a pair of lines is missing"),
        ("no_sequence_length", "table's kind", "the length of the sequences is not published"),
        ("no_value", "table's kind", "the cells of a revision are empty"),
        ("not_a_run", "table's kind", "speed-ups, headings and what perfect scaling would give"),
        ("not_training", "names", "a run of another kind than training a language model"),
        ("open_division", "names", "another model, data or accuracy than the benchmark's"),
        ("placeholder", "revisions", "a draft that was replaced on its day"),
        ("prompt_chunk", "configuration", "prompts computed a few tokens at a time, as a study"),
        ("repeats_other_file", "repeated digits", "the run stands in an earlier file"),
        ("repeats_other_table", "repeated digits", "the run stands in an earlier table"),
        ("repeats_revision", "revisions", "the figure stands in an earlier revision"),
        ("repeats_test", "configuration", "the same run under another flag of its test"),
        ("same_run_twice", "ids", "one run entered for two targets of accuracy"),
        ("superseded", "revisions", "a later revision corrects the row"),
        ("unit_doubtful", "ids, units", "unit and metric do not go together"),
        ("unknown_accelerator", "names", "no accelerator of the catalogue"),
        ("unknown_model", "names", "no model of the catalogue"),
        ("worker_count_unknown", "ids, dates", "workers are neither stated nor told by a dated configuration"),
    )
)
"""Rules of builders: a published row becomes no measurement."""

_FAULTS_WORK_FROM: Final = {
    "disaggregated_total": "ids",
    "placeholder_zero": "configuration",
    "never_configured": "ids, public configurations",
    "release_candidate": "versions",
    "no_concurrency": "configuration",
}

MARKED: Final = tuple(Rule(name, _FAULTS_WORK_FROM[name], text) for name, text in FAULTS.items())
"""Faults of rows that are kept, named in their notes: a protocol may count them in."""

LEARNT: Final = tuple(
    Rule(*fields)
    for fields in (
        ("not_ok", "status", "the run failed"),
        ("unknown_model", "names", "no model that is known"),
        ("unknown_accelerator", "names", "no accelerator that is known"),
        ("published_fault", "notes", "the row is marked as faulty"),
        ("near_duplicate", "repeated digits", "the same question, and all outcomes of an earlier row to four digits"),
        ("not_monotone", "physics", "a step is much faster with more requests in flight than in its series"),
        (
            "beyond_capacity",
            "rates asked and reached",
            "less than nine tenths of the rate was reached: a queue grew",
        ),
        ("impossible_split", "configuration", "the parallel sizes do not make up the accelerators"),
        ("beyond_estimate", "physics", "the estimate takes the request rate to be more than is served"),
        ("faster_than_memory", "physics", "a token comes sooner than its weights can be read once"),
        ("faster_than_compute", "physics", "the first token comes sooner than the prompt can be computed at peak"),
        ("more_than_peak", "physics", "more tokens a second than the peak operations can make"),
        ("inconsistent_throughput", "physics", "throughput, latency and concurrency contradict each other"),
    )
)
"""Rules of `review.review`, in its order: a measurement is kept and shown, but not learnt from."""

RULES: Final[dict[Stage, tuple[Rule, ...]]] = {"published": PUBLISHED, "marked": MARKED, "learnt": LEARNT}
"""Every rule by what it does."""


def counts() -> dict[Stage, Counts]:
    """Return how many rows each rule finds in each shipped campaign."""
    found: dict[Stage, Counts] = {stage: defaultdict(Counter) for stage in RULES}
    for name in (*CAMPAIGNS, *TRAINING_CAMPAIGNS):
        for rule, n in load_quarantine(name)["reason"].value_counts().items():
            found["published"][str(rule)][name] = n
    index = load_silicon_index()
    for rule, n in index.loc[index["set_aside"] == "", "fault"].value_counts().items():
        if rule:
            found["marked"][str(rule)]["silicon"] = n
    catalog, rows = load_catalog(), load_campaigns()
    set_aside = review(rows, catalog.models, catalog.accelerators)
    for rule, some in set_aside.groupby("rule"):
        found["learnt"][str(rule)].update(rows.loc[some.index, "campaign"])
    return found


def _table() -> str:
    """Return the table; raise `KeyError` for a rule that set rows aside but has no description."""
    lines = []
    for stage, found in counts().items():
        described = {rule.name: rule for rule in RULES[stage]}
        for name in found:
            _ = described[name]
        for rule in described.values():
            where = ", ".join(f"{campaign} {n:,}" for campaign, n in sorted(found[rule.name].items()))
            total = f"{found[rule.name].total():,}"
            lines.append((stage, f"`{rule.name}`", rule.works_from, rule.finds, total, where or "none"))
    return plain_table(("stage", "rule", "works from", "finds", "rows", "of which"), lines)


TABLES: Final = {"rules": _table}
"""By the name of the marker that its table follows."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the table of a document anew."""
    write_tables("research.review_rules", TABLES, arguments)


if __name__ == "__main__":
    main()

"""Generator of the table of rejection rules with their row counts by campaign.

Usage: ``python -m research.review_rules docs/REVIEW_RULES.md``.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from builders.rejected_rows import load_rejected_rows
from codegen.docs_tables import plain_table, write_tables
from judge.peers.silicon_peers import FAULTS, load_silicon_index
from roofcast.data.campaigns import CAMPAIGNS, load_campaigns
from roofcast.data.catalog import load_catalog
from roofcast.data.job_campaigns import TRAINING_CAMPAIGNS
from roofcast.training.dataset.review import review

Stage = Literal["published", "marked", "learnt"]
"""Effect of a rule: rejects a published row, marks a stored row, or excludes a measurement from training."""

Counts = dict[str, Counter[str]]
"""Row counts by rule and campaign."""


class Rule(NamedTuple):
    """Rule with its short name, its inputs, and the condition that it detects."""

    name: str
    inputs: str
    condition: str


PUBLISHED: Final = tuple(
    Rule(*fields)
    for fields in (
        ("above_capacity", "physics", "memory in use exceeds the accelerator's"),
        ("above_peak", "physics", "speed, or the minimum work for it, exceeds the accelerator's peak"),
        ("accelerator_not_stated", "names", "neither file nor row names the accelerator"),
        ("aggregated", "names", "the figure is the sum of several deployments"),
        ("asked_twice", "revisions", "one revision holds two values for the same run"),
        ("beyond_context", "configuration", "the lengths exceed the model's context"),
        ("blog_table", "table's kind", "accelerator, precision or model is not stated per row"),
        ("cached_prompt", "physics", "the first token comes sooner than the prompt is computed"),
        ("client_bound", "physics", "the client starts its requests one by one, slower than they are answered"),
        ("comparison", "table's kind", "medians of pairs of builds, without latencies"),
        ("copied_baseline", "repeated digits", "the figure is another row's baseline to the last digit"),
        ("covered_by_logs", "rounds", "the logs of the same round hold more columns"),
        ("diagnostic", "table's kind", "no measurement of serving"),
        ("doubtful", "notes", "part of the row is inferred, or its source leaves it in doubt"),
        ("duplicate", "repeated digits", "same measurement as another row"),
        ("exact_repeat", "repeated digits", "same run as another row, to the last digit"),
        ("failed_requests", "status", "most requests failed"),
        ("faster_than_weights", "physics", "a token takes less time than one read of the weights"),
        ("first_run", "repeated digits", "its prompts are not in the cache yet, unlike those of its repeats"),
        ("implausible", "physics", "two numbers of one run contradict each other, by the rules of importers"),
        ("impossible_split", "configuration", "the parallel sizes do not divide the accelerators"),
        ("inconsistent", "physics", "throughput contradicts batch and step time, or the work of a token"),
        ("invalid_result", "status", "the source marks the result as invalid"),
        ("kv_block_size", "configuration", "cache block size of an ablation"),
        ("latency_undefined", "table's kind", "a latency without a definition"),
        ("later_run", "dates", "a later run of the same configuration is stored"),
        ("length_unknown", "table's kind", "answers end before the requested length"),
        ("malformed", "table's kind", "cells are missing or under a wrong heading"),
        ("metric_by_row", "table's kind", "one metric a row, without its run"),
        ("mixed_load", "configuration", "requests of two kinds at once"),
        ("near_peak", "physics", "the products alone would take more than 0.85 of the peak"),
        ("no_generation", "names", "no token generation with known lengths"),
        ("no_kv_cache", "configuration", "no KV cache: each token recomputes the prefix"),
        ("no_language_model", "names", "not a language model"),
        ("no_lengths", "table's kind", "request lengths are not published"),
        ("no_outcome", "table's kind", "the row has no figure"),
        ("no_partner", "table's kind", "one row of a pair is missing"),
        ("no_sequence_length", "table's kind", "the length of the sequences is not published"),
        ("no_value", "table's kind", "the cells of a revision are empty"),
        ("not_a_run", "table's kind", "speed-up, heading or perfect-scaling row"),
        ("not_training", "names", "not a training run of a language model"),
        ("open_division", "names", "another model, data or accuracy than the benchmark's"),
        ("other_machine", "configuration", "the parallel sizes exceed the stated accelerators"),
        ("other_model", "names", "the command serves another model than the page is about"),
        ("other_setting", "configuration", "another setting of the same model, engine and workload stands for it"),
        ("placeholder", "revisions", "draft, replaced on the same day"),
        ("prompt_chunk", "configuration", "small prompt chunks of an ablation"),
        ("overload", "configuration", "a burst far above the capacity"),
        ("random_weights", "configuration", "experts are chosen and drafts accepted otherwise than by the model"),
        ("repeated_run", "repeated digits", "another run of the same configuration stands for the row"),
        ("repeats_other_campaign", "repeated digits", "another campaign has the run"),
        ("repeats_other_file", "repeated digits", "the run is in an earlier file"),
        ("repeats_other_table", "repeated digits", "the run is in an earlier table"),
        ("repeats_revision", "revisions", "the figure is in an earlier revision"),
        ("repeats_test", "configuration", "same run under another flag of its test"),
        ("replicas", "configuration", "several engines behind a load balancer"),
        ("rig", "configuration", "accelerators of several kinds or an unstated rig"),
        ("same_run_twice", "ids", "one run submitted for two accuracy targets"),
        ("settings_not_stated", "configuration", "parameters or engine of the run are not stated"),
        ("shared_accelerator", "configuration", "another model is loaded on the same accelerator"),
        ("short_answer", "physics", "answers of a few tokens"),
        ("speculation", "configuration", "speculation is neither stated on nor off"),
        ("superseded", "revisions", "a later revision corrects the row"),
        ("superseded_release", "revisions", "a later release or a repaired program runs it much faster"),
        ("timed_out", "status", "no answer within the time limit"),
        ("uneven_answers", "table's kind", "the mean of requests is far from that of tokens"),
        ("uneven_load", "configuration", "a stream ended before the run"),
        ("unfinished_run", "status", "part of the requests did not succeed"),
        ("unit_doubtful", "ids, units", "unit and metric do not match"),
        ("unknown_accelerator", "names", "accelerator is not in the catalogue"),
        ("unknown_model", "names", "model is not in the catalogue"),
        ("unknown_precision", "names", "precision of the weights is not stated, or not one of the table's"),
        ("unpacked", "table's kind", "samples are padded or of unknown length, so that tokens cannot be counted"),
        ("worker_count_unknown", "ids, dates", "worker counts are neither stated nor in a dated configuration"),
    )
)
"""Rules of builders: the published row is rejected."""

_FAULT_INPUTS: Final = {
    "disaggregated_total": "ids",
    "placeholder_zero": "configuration",
    "never_configured": "ids, public configurations",
    "release_candidate": "versions",
    "no_concurrency": "configuration",
}

MARKED: Final = tuple(Rule(name, _FAULT_INPUTS[name], text) for name, text in FAULTS.items())
"""Faults of stored rows, named in their notes; a protocol may include these rows."""

LEARNT: Final = tuple(
    Rule(*fields)
    for fields in (
        ("not_ok", "status", "the run failed"),
        ("unknown_model", "names", "unknown model"),
        ("unknown_accelerator", "names", "unknown accelerator"),
        ("published_fault", "notes", "the row is marked as faulty"),
        (
            "near_duplicate",
            "repeated digits",
            "same configuration and same outcomes as an earlier row, to four digits",
        ),
        ("not_monotone", "physics", "a step is much faster than at lower concurrency in the same series"),
        (
            "beyond_capacity",
            "offered and achieved rates",
            "achieved rate below nine tenths of the offered rate: the queue grew",
        ),
        ("impossible_split", "configuration", "the product of parallel sizes is not the number of accelerators"),
        ("beyond_estimate", "physics", "the request rate exceeds the estimated capacity"),
        ("faster_than_memory", "physics", "a token takes less time than one read of its weights"),
        ("faster_than_compute", "physics", "TTFT is below the prompt's compute time at peak"),
        ("more_than_peak", "physics", "token rate exceeds the peak operations"),
        ("inconsistent_throughput", "physics", "throughput, latency and concurrency contradict each other"),
    )
)
"""Rules of `review.review`, in its order: the measurement is stored and listed, but excluded from training."""

RULES: Final[dict[Stage, tuple[Rule, ...]]] = {"published": PUBLISHED, "marked": MARKED, "learnt": LEARNT}
"""All rules by stage."""


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
            lines.append((stage, f"`{rule.name}`", rule.inputs, rule.condition, total, campaigns or "none"))
    return plain_table(("stage", "rule", "inputs", "condition", "rows", "by campaign"), lines)


TABLES: Final = {"rules": _table}
"""Tables by marker."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Update the table of a document."""
    write_tables("research.review_rules", TABLES, arguments)


if __name__ == "__main__":
    main()

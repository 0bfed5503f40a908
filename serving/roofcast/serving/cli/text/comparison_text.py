"""Tables of the comparison of a version with the champion, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from roofcast.serving.cli.console import note, show

if TYPE_CHECKING:
    from roofcast.serving.shadow.version_comparison import VersionComparison
    from roofcast.training.drift.answer_ratios import AnswerRatios
    from roofcast.training.drift.paired_errors import ChallengerErrors, PairedErrors

MAX_ROW: Final = 24
"""Lines of each table; JSON has all."""


def show_comparison(comparison: VersionComparison) -> None:
    """Print the ratios of the answers, and the errors of both versions."""
    answers = comparison.answers
    if answers.since is None:
        note(f"version {comparison.version} has answered nothing beside version {comparison.champion_version}")
    else:
        versions = f"version {comparison.version} / version {comparison.champion_version}"
        title = f"\n{versions}, {answers.n_row} rows of requests since {answers.since:%Y-%m-%d %H:%M} UTC"
        show([_ratio_row(one) for one in answers.ratios[:MAX_ROW]], as_json=False, title=title)
    for who, n in (("champion", answers.n_champion_only), ("challenger", answers.n_challenger_only)):
        if n:
            note(f"{n} rows are answered by the {who} alone")
    if comparison.measurements.errors:
        show_paired(comparison.measurements)
    else:
        note("no recent measurement is new to both versions")
    if max(len(answers.ratios), len(comparison.measurements.errors)) > MAX_ROW:
        note("more groups are in the JSON output")


def show_paired(pair: ChallengerErrors) -> None:
    """Print the errors of champion and challenger on the same rows."""
    title = f"\nthe champion beside version {pair.version}, {pair.n_compared} rows that neither has learnt"
    show([_error_row(one) for one in pair.errors[:MAX_ROW]], as_json=False, title=title)
    if pair.n_learnt:
        note(f"{pair.n_learnt} rows that version {pair.version} has learnt judge neither")


def _ratio_row(one: AnswerRatios) -> dict[str, Any]:
    return {
        "metric": one.metric,
        "group": f"{one.kind} {one.name}".strip(),
        "rows": one.n_row,
        "5 %": one.low_ratio,
        "median": one.median_ratio,
        "95 %": one.high_ratio,
    }


def _error_row(one: PairedErrors) -> dict[str, Any]:
    return {
        "metric": one.metric,
        "group": f"{one.kind} {one.name}".strip(),
        "rows": one.n_row,
        "configurations": one.n_configuration,
        "median error": f"{one.champion_median_ape:.1%}",
        "challenger's": f"{one.challenger_median_ape:.1%}",
        "nearer": f"{one.n_nearer} of {one.n_configuration}",
        "p": "" if one.p_value is None else f"{one.p_value:.2g}",
        "verdict": one.verdict,
    }

"""Whether a stack profile helps, in one sentence, from the leave-one-run-out errors of its report."""

from typing import Any

_ONE_RUN = "one run cannot say whether the profile helps, as nothing is left to predict it from; add another run"


def stack_verdict(report: dict[str, Any]) -> str:
    """Return whether the profile of a report in JSON values helps, with the median error before and after.

    Examples
    --------
    >>> errors = [{"metric": "tpot_s", "before": {"median_ape": 0.2}, "after": {"median_ape": 0.05}}]
    >>> stack_verdict({"errors": errors})
    'the profile helps: predicted from its other runs, a run has a median error of 5% instead of 20% in TPOT'
    """
    changes = [
        (one["metric"], one["before"]["median_ape"], one["after"]["median_ape"])
        for one in report["errors"]
        if one["after"]
    ]
    if not changes:
        return _ONE_RUN
    n_better = sum(after < before for _, before, after in changes)
    verdict = "helps" if n_better == len(changes) else "helps in part" if n_better else "does not help"
    texts = [f"{after:.3g}% instead of {before:.3g}% in {name}" for name, before, after in map(_percent, changes)]
    return (
        f"the profile {verdict}: predicted from its other runs, a run has a median error of "
        f"{', '.join(texts[:-1])}{' and ' if texts[1:] else ''}{texts[-1]}"
    )


def _percent(change: tuple[str, float, float]) -> tuple[str, float, float]:
    metric, before, after = change
    name = metric.removesuffix("_token_per_s").removesuffix("_s").replace("_", " ")
    return (name if " " in name else name.upper()), 100 * before, 100 * after

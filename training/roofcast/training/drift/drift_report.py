"""Report of drift: errors by group, changes between repeats, novelties, and the verdict."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import Field

from roofcast.data.specs import Spec
from roofcast.training.drift.groups import ALL, SIGNIFICANCE, TESTED, Key, group_positions
from roofcast.training.drift.paired_errors import ChallengerErrors
from roofcast.training.drift.prediction_scores import KINDS, SCORE_NUMBERS
from roofcast.training.drift.repeats import LIMIT_LEVEL, differing_settings, is_beyond_noise
from roofcast.training.drift.significance import exceedance_p_value, p_values_of_groups

MAX_CHANGE: Final = 1.5
"""Median ratio of repeats that counts as drift however few they are: judgement; see the decision record."""

MAX_LISTED: Final = 50
"""Changes that a report lists, the largest first."""

Flags = npt.NDArray[np.bool_]

ErrorRatio = Annotated[float, Field(description="Median absolute percentage error, as a fraction.")]
Bias = Annotated[float, Field(description="Median of measured / predicted.")]
Coverage = Annotated[float, Field(description="Share of the rows inside their interval.")]
PValue = Annotated[
    float | None,
    Field(description="Probability of so many observations outside their limits by chance, after Holm's correction."),
]


class GroupErrors(Spec):
    """Errors of the predictor on rows of one group and metric; the p-value is null where the group is not tested."""

    kind: str
    name: str
    metric: str
    n_row: int
    n_configuration: int
    n_outside: Annotated[int, Field(description="Configurations whose median error is outside the interval.")]
    median_ape: ErrorRatio
    bias: Bias
    coverage: Coverage
    p_value: PValue
    is_drift: bool


class GroupChange(Spec):
    """Change between repeats of one group and metric."""

    kind: str
    name: str
    metric: str
    n_run: int
    n_beyond: Annotated[int, Field(description="Runs whose change exceeds that of nine in ten repeats.")]
    median_ratio: Annotated[float, Field(description="Median of the value now / before.")]
    p_value: PValue
    is_drift: bool


Group = TypeVar("Group", GroupErrors, GroupChange)


class Change(Spec):
    """A value that differs from the earlier one of the same configuration by more than repeats do."""

    metric: str
    model: str
    accelerator: str
    n_accelerator: float
    engine: str
    stack: str
    n_input_token: float
    n_output_token: float
    concurrency: float | None
    request_rate: float | None
    statistic: str
    date_before: str
    before: float
    date_after: str
    after: float
    ratio: float
    settings: Annotated[list[str], Field(description="Recorded versions and settings in which the two runs differ.")]


class DriftReport(Spec):
    """Predicted against actual on new measurements, and new against earlier ones."""

    predictor_version: str
    level: Annotated[float, Field(description="Level of the intervals.")]
    n_row: Annotated[int, Field(description="New rows.")]
    n_learnt: Annotated[int, Field(description="Rows that the predictor was fitted to, which are not compared.")]
    n_left_out: Annotated[
        int, Field(description="Further rows without a comparison: failed runs, saturated ones, unknown names.")
    ]
    n_sampled_out: Annotated[int, Field(description="Rows in excess of the most that a report compares.")]
    n_compared: int
    n_repeat: Annotated[int, Field(description="Values whose run was measured before with equal settings.")]
    n_changed: Annotated[int, Field(description="Those that changed by more than repeats do.")]
    errors: list[GroupErrors]
    repeats: list[GroupChange]
    changes: Annotated[list[Change], Field(description=f"The {MAX_LISTED} largest.")]
    n_other_settings: Annotated[
        int,
        Field(
            description="Values measured before, but only with other settings, that changed by more than repeats do."
        ),
    ]
    setting_changes: Annotated[
        list[Change], Field(description=f"The {MAX_LISTED} largest of these, which count as no drift.")
    ]
    warnings: list[str]
    reasons: Annotated[list[str], Field(description="What counts as drift, in words; empty if nothing does.")]
    is_drift: bool
    challenger: Annotated[
        ChallengerErrors | None, Field(description="The challenger beside the champion; null if there is none.")
    ] = None


class Counts(Spec):
    """Numbers of rows that the tables of a report do not contain."""

    n_row: int
    n_learnt: int = 0
    n_sampled_out: int = 0


def build_report(
    scored: pd.DataFrame,
    pairs: pd.DataFrame,
    rows: pd.DataFrame,
    counts: Counts,
    *,
    predictor_version: str,
    level: float,
    warnings: list[str],
    max_change: float = MAX_CHANGE,
    challenger: ChallengerErrors | None = None,
) -> DriftReport:
    """Return the report of scores and repeats.

    `scored`: as of `score_predictions`, without rows that the predictor has learnt.

    Notes
    -----
    One observation is the median error of a configuration, in half-widths of its interval; of repeats, that of a run.
    All tests of a report share one correction.
    """
    is_repeat = pairs["is_repeat"].astype(bool)
    repeated, other = pairs[is_repeat], pairs[~is_repeat]
    observations, runs = _observations(scored), _run_changes(repeated)
    of_errors, of_repeats = group_positions(observations), group_positions(runs)
    members = {("error", *key): part for key, part in of_errors.items()}
    members |= {("repeat", *key): part for key, part in of_repeats.items()}
    outside = {"error": observations["is_outside"].to_numpy(), "repeat": runs["is_outside"].to_numpy()}
    expected_share = {"error": 1 - level, "repeat": 1 - LIMIT_LEVEL}
    p_values = p_values_of_groups(
        {key: (*key[:2], part.tobytes()) for key, part in members.items() if key[2] in TESTED},
        lambda key: exceedance_p_value(outside[str(key[0])][members[key]], expected_share[str(key[0])]),
    )
    errors = _group_errors(scored, {key: outside["error"][part] for key, part in of_errors.items()}, p_values)
    repeats = [_group_change(key, runs.iloc[part], p_values, max_change) for key, part in of_repeats.items()]
    changed, changed_settings = _largest_first(repeated), _largest_first(other)
    reasons = [_error_reason(one, level) for one in distinct_groups(errors) if one.is_drift]
    reasons += [_change_reason(one) for one in distinct_groups(repeats) if one.is_drift]
    n_compared = int(scored["row"].nunique())
    return DriftReport(
        predictor_version=predictor_version,
        level=level,
        **counts.model_dump(),
        n_left_out=counts.n_row - counts.n_learnt - counts.n_sampled_out - n_compared,
        n_compared=n_compared,
        n_repeat=len(repeated),
        n_changed=len(changed),
        errors=errors,
        repeats=repeats,
        changes=[_change(pair, rows) for _, pair in changed[:MAX_LISTED].iterrows()],
        n_other_settings=len(changed_settings),
        setting_changes=[_change(pair, rows) for _, pair in changed_settings[:MAX_LISTED].iterrows()],
        warnings=warnings,
        reasons=reasons,
        is_drift=bool(reasons),
        challenger=challenger,
    )


def score_groups(scored: pd.DataFrame) -> list[GroupErrors]:
    """Return the errors of each group and metric, by scores as of `score_predictions`."""
    observations = _observations(scored)
    is_outside = observations["is_outside"].to_numpy()
    return _group_errors(scored, {key: is_outside[part] for key, part in group_positions(observations).items()}, {})


def distinct_groups(groups: Sequence[Group]) -> list[Group]:
    """Return the groups of a report, except those that hold the same rows as `ALL`."""
    size = {one.metric: _size(one) for one in groups if one.kind == ALL}
    return [one for one in groups if one.kind == ALL or _size(one) < size[one.metric]]


def _size(group: GroupErrors | GroupChange) -> int:
    return group.n_row if isinstance(group, GroupErrors) else group.n_run


def _observations(scored: pd.DataFrame) -> pd.DataFrame:
    table = scored.assign(score=scored["log_error"] / scored["width"])
    keys = ["metric", "configuration", *KINDS]
    medians = table.groupby(keys, sort=False, dropna=False)["score"].median().reset_index()
    return medians.assign(is_outside=medians["score"].abs() > 1)


def _run_changes(pairs: pd.DataFrame) -> pd.DataFrame:
    if pairs.empty:
        return pd.DataFrame(columns=["metric", "is_outside"])
    table = pairs.assign(log_ratio=np.log(pairs["ratio"]), excess=is_beyond_noise(pairs).astype(float))
    keys = ["metric", "run", "accelerator", "engine_version", "stack"]
    medians = table.groupby(keys, sort=False)[["log_ratio", "excess"]].median().reset_index()
    return medians.assign(is_outside=medians["excess"] > 0.5)


def _group_errors(
    scored: pd.DataFrame, is_outside: Mapping[Key, Flags], p_values: Mapping[Key, float]
) -> list[GroupErrors]:
    numbers = {name: scored[name].to_numpy(dtype=float) for name in SCORE_NUMBERS}
    ape = np.abs(numbers["predicted"] / numbers["measured"] - 1)
    is_inside = np.abs(numbers["log_error"]) <= numbers["width"]
    errors = []
    for key, part in group_positions(scored).items():
        metric, kind, name = map(str, key)
        p_value = p_values.get(("error", *key))
        errors.append(
            GroupErrors(
                kind=kind,
                name=name,
                metric=metric,
                n_row=len(part),
                n_configuration=len(is_outside[key]),
                n_outside=int(is_outside[key].sum()),
                median_ape=float(np.median(ape[part])),
                bias=float(np.exp(np.median(numbers["log_error"][part]))),
                coverage=float(is_inside[part].mean()),
                p_value=p_value,
                is_drift=p_value is not None and p_value < SIGNIFICANCE,
            )
        )
    return errors


def _group_change(key: Key, part: pd.DataFrame, p_values: Mapping[Key, float], max_change: float) -> GroupChange:
    metric, kind, name = map(str, key)
    p_value = p_values.get(("repeat", *key))
    median = float(part["log_ratio"].median())
    is_significant = p_value is not None and p_value < SIGNIFICANCE
    return GroupChange(
        kind=kind,
        name=name,
        metric=metric,
        n_run=len(part),
        n_beyond=int(part["is_outside"].sum()),
        median_ratio=float(np.exp(median)),
        p_value=p_value,
        is_drift=is_significant or abs(median) >= np.log(max_change),
    )


def _largest_first(pairs: pd.DataFrame) -> pd.DataFrame:
    changed = pairs[is_beyond_noise(pairs)]
    order = np.log(changed["ratio"]).abs().round(6).sort_values(ascending=False, kind="stable").index
    ordered: pd.DataFrame = changed.loc[order]
    return ordered


def _change(pair: pd.Series, rows: pd.DataFrame) -> Change:
    after = rows.loc[pair["row"]]
    cells = {
        name: None if pd.isna(after[name]) else after[name]
        for name in Change.model_fields
        if name in after.index and name != "stack"
    }
    names = ("metric", "stack", "date_before", "before", "date_after", "after", "ratio")
    values = {name: pair[name] for name in names}
    settings = differing_settings(rows.loc[pair["row_before"]], after, is_repeat=pair["is_repeat"])
    return Change(**cells, **values, settings=settings)


def _place(one: GroupErrors | GroupChange) -> str:
    return f"{one.metric} of {one.kind} {one.name}" if one.kind != ALL else f"{one.metric} of all rows"


def _error_reason(one: GroupErrors, level: float) -> str:
    outside = f"{one.n_outside} of {one.n_configuration} configurations are outside their {level:.0%} intervals"
    return f"{_place(one)}: {outside}, measured is {one.bias:.3g} times the prediction (p = {one.p_value:.2g})"


def _change_reason(one: GroupChange) -> str:
    beyond = f"{one.n_beyond} of {one.n_run} repeated runs changed by more than repeats do"
    return f"{_place(one)}: {beyond}, the median is {one.median_ratio:.3g} times the earlier value"

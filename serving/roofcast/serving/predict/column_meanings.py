"""Unit and meaning of each column of an answer, for the reference and the description of the API."""

from typing import Any, Final, NamedTuple

from roofcast.serving.display_names import metric_name
from roofcast.serving.predict.row_answers import ANSWER_COLUMNS, ANSWER_METRICS, MEASURED_METRICS, STATUSES


class Meaning(NamedTuple):
    """Unit of a column, empty for a text or a truth value, and what it holds."""

    unit: str
    text: str


_UNIT: Final = {metric: "token/s" if metric.endswith("token_per_s") else "s" for metric in ANSWER_METRICS}

_ENDS: Final = {"": "median", "_lo": "lower end of the interval", "_hi": "upper end of the interval"}

_MEANINGS: Final = {
    f"{metric}{end}": Meaning(_UNIT[metric], f"{metric_name(metric)}, predicted: {text}")
    for metric in ANSWER_METRICS
    for end, text in _ENDS.items()
} | {
    "support": Meaning(
        "",
        "what the answer rests on: `measured` where a training measurement has the same configuration and statistic "
        "and lengths and load within a tenth, `near` where the model was measured with the engine on the "
        "accelerator, `extrapolated` otherwise; blank without an answer",
    ),
    **{
        f"observed_{metric}": Meaning(
            _UNIT[metric], f"{metric_name(metric)} of the newest such measurement; blank unless `measured`"
        )
        for metric in MEASURED_METRICS
    },
    "observed_stack": Meaning("", "who measured it: a name that `stack` takes; blank if unknown"),
    "observed_engine_version": Meaning("", "version of the engine there; blank if unknown"),
    "observed_date": Meaning("", "date of the measurement, as YYYY-MM-DD; blank if unknown"),
    "status": Meaning("", f"one of {', '.join(f'`{name}`' for name in STATUSES)}"),
    "reason": Meaning("", "why there is no answer, or what is doubtful about it; blank otherwise"),
    "outside": Meaning("", "whether the row is beyond the range of the measurements"),
    "assumed": Meaning("", "what is blank and assumed, as `column=value` separated by spaces"),
}

MEANINGS: Final = {name: _MEANINGS[name] for name in ANSWER_COLUMNS}
"""Meaning of each of `ANSWER_COLUMNS`, in their order."""


def describe_column(name: str) -> str:
    """Return the meaning of a column with its unit, as a sentence."""
    unit, text = MEANINGS[name]
    return f"{text[0].upper()}{text[1:]}{f'; in {unit}' if unit else ''}."


def column_schema(name: str) -> dict[str, Any]:
    """Return the JSON schema of a column in a row of answers; a number may be null."""
    number = {"anyOf": [{"type": "number"}, {"type": "null"}]}
    kind = number if MEANINGS[name].unit else {"type": "boolean" if name == "outside" else "string"}
    return {**kind, "description": describe_column(name)}

"""Probabilities that every surface assumes where none is given."""

from typing import Final, Literal

DEFAULT_LEVEL: Final = 0.9
"""Probability that an interval holds the measured value."""

Operator = Literal["competent", "any"]
DEFAULT_OPERATOR: Final[Operator] = "competent"
OPERATOR_TEXT: Final = (
    "Whose stack the predictions are about where none is named: a competent operator's, on software of the last two "
    "years under steady load, or any, whose intervals are wider."
)

DEFAULT_CONFIDENCE: Final = 0.8
"""Least probability that a recommended deployment meets all limits."""

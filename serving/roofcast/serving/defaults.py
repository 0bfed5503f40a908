"""Probabilities that every surface assumes where none is given."""

from typing import Final

DEFAULT_LEVEL: Final = 0.9
"""Probability that an interval holds the measured value."""

DEFAULT_CONFIDENCE: Final = 0.8
"""Least probability that a recommended deployment meets all limits."""

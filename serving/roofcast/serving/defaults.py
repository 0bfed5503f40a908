"""Probabilities that every surface assumes where none is given."""

from __future__ import annotations

from typing import Final

DEFAULT_LEVEL: Final = 0.9
"""Of intervals."""

DEFAULT_CONFIDENCE: Final = 0.8
"""That all limits are met."""

"""Number of Hypothesis examples by profile."""

import os
from typing import Final

PROFILE: Final = os.environ.get("ROOFCAST_HYPOTHESIS", "quick")
"""``quick`` in `make test`, ``thorough`` in `make test-slow`, both repeatable; ``wandering`` draws other examples."""


def n_example(thorough: int) -> int:
    """Return the number of examples for this profile: a tenth of the thorough number, eight at least, if quick."""
    return max(thorough // 10, min(thorough, 8)) if PROFILE == "quick" else thorough

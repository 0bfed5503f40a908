"""Errors for unknown names: a suggestion, or the list of known names."""

from collections.abc import Iterable
from typing import Final

from roofcast.data.errors import UnknownNameError

MAX_LISTED_NAMES: Final = 20
"""Longest list of known names that an error shows when no name is similar."""

PROVIDER_OF: Final = {"amazon": "aws", "google": "gcp", "microsoft": "azure", "oracle": "oci"}
"""Provider ids by common names."""


def unknown_name_error(field: str, name: str, known: Iterable[str]) -> UnknownNameError:
    """Return the error for an unknown name, which suggests similar names or lists the known ones.

    Examples
    --------
    >>> str(unknown_name_error("limits.statistic", "p42", ["p50", "p95"]))
    "limits.statistic: no 'p42' is known; there are p50, p95"
    >>> unknown_name_error("providers", "Amazon", ["aws", "lambda"]).near
    ['aws']
    """
    names = sorted(set(known))
    error = UnknownNameError(field, name, names)
    provider = PROVIDER_OF.get(name.casefold())
    if provider in names:
        error.near = [provider]
        error.problem = f"no {name!r} is known; did you mean {provider!r}?"
    elif not error.near and len(names) <= MAX_LISTED_NAMES:
        error.problem += f"; there are {', '.join(names)}"
    return error

"""What is said of names that are not known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from roofcast.data.errors import UnknownNameError

MOST_NAMED: Final = 20
"""Names that are listed where none looks like the one given; of more, the reader makes nothing."""

PROVIDER_OF: Final = {"amazon": "aws", "google": "gcp", "microsoft": "azure", "oracle": "oci"}
"""What people call a provider, to what its offers are listed under."""


def unknown(field: str, name: str, known: Iterable[str]) -> UnknownNameError:
    """Return the error for a name that is not known, which suggests what is meant or lists what there is.

    Parameters
    ----------
    field, name
        As the caller wrote them.
    known
        Names that may be given.

    Examples
    --------
    >>> str(unknown("limits.statistic", "p42", ["p50", "p95"]))
    "limits.statistic: no 'p42' is known; there are p50, p95"
    >>> unknown("providers", "Amazon", ["aws", "lambda"]).near
    ['aws']
    """
    names = sorted(set(known))
    error = UnknownNameError(field, name, names)
    meant = PROVIDER_OF.get(name.casefold())
    if meant in names:
        error.near = [meant]
        error.problem = f"no {name!r} is known; did you mean {meant!r}?"
    elif not error.near and len(names) <= MOST_NAMED:
        error.problem += f"; there are {', '.join(names)}"
    return error

"""Work whose client has left: long computations ask between their parts, and stop."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Final

IS_ABANDONED: Final[ContextVar[Callable[[], bool]]] = ContextVar("is_abandoned", default=lambda: False)
"""Whether nobody waits for the answer that this context computes; the threads of a request inherit it."""


class AbandonedError(Exception):
    """The client has left, so the computation stops; no response is sent."""


def stop_if_abandoned() -> None:
    """Raise `AbandonedError` if the client has left.

    Examples
    --------
    >>> stop_if_abandoned()
    >>> token = IS_ABANDONED.set(lambda: True)
    >>> stop_if_abandoned()
    Traceback (most recent call last):
    ...
    roofcast.serving.abandonment.AbandonedError
    >>> IS_ABANDONED.reset(token)
    """
    if IS_ABANDONED.get()():
        raise AbandonedError

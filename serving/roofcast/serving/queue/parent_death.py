"""Processes that end with their parent, also if that is killed: a server without its parent would keep the port."""

import ctypes
import multiprocessing
import os
import signal
import threading
from contextlib import suppress
from typing import Final

PR_SET_PDEATHSIG: Final = 1
"""Option of ``prctl``: the signal that a process gets when its parent ends."""


def signal_at_parent_death(number: signal.Signals) -> None:
    """Let Linux send a signal to this process when its parent ends; elsewhere nothing happens.

    References
    ----------
    prctl(2), PR_SET_PDEATHSIG.
    """
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(number), 0, 0, 0)


def end_with_parent() -> None:
    """End this process as soon as its parent has ended, unless a user started it.

    Linux kills it, in whatever code it is; elsewhere a thread waits for the end of the parent's pipe.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    signal_at_parent_death(signal.SIGKILL)

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, name="parent", daemon=True).start()

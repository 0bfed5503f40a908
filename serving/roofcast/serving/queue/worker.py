"""The worker as a program: ``python -m roofcast.serving.queue.worker [PARENT]``.

It is separate from `queue` because a module run as a program is named ``__main__``, and huey finds a task by the
name of its module.
"""

import os
import sys
from typing import Final

from roofcast.serving.app_state.settings import load_settings
from roofcast.serving.logs import configure_logs, configure_service_logs
from roofcast.serving.queue.queue import work

NICENESS: Final = 5
"""Increment of the process's niceness, so that requests take precedence over a retraining."""

if __name__ == "__main__":
    os.nice(NICENESS)
    configure_logs()
    settings = load_settings()
    configure_service_logs(settings.log_format, settings.log_level)
    work(settings, int(sys.argv[1]) if len(sys.argv) > 1 else None)

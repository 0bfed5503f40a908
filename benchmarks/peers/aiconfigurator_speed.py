"""Time of aiconfigurator's estimate of one configuration and of its default sweep; prints JSON on the last line.

    peer/bin/python benchmarks/peers/aiconfigurator_speed.py

It runs in the environment of `aiconfigurator_run.py`. The first call loads tables and is excluded.
"""

import contextlib
import io
import json
import logging
import statistics
import time
from collections.abc import Callable
from typing import Final

MODEL: Final = "meta-llama/Meta-Llama-3.1-8B"
SYSTEM: Final = "h100_sxm"
LENGTHS: Final = {"isl": 1024, "osl": 256}


def median_s(job: Callable[[], object], n_run: int) -> float:
    """Return the median wall time of `n_run` runs, after one warm-up run."""
    times = []
    for _ in range(n_run + 1):
        start = time.perf_counter()
        with contextlib.redirect_stdout(io.StringIO()):
            job()
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def main() -> None:
    """Measure both and print the figures."""
    from aiconfigurator.cli.api import cli_default, cli_estimate  # type: ignore[import-not-found]  # noqa: PLC0415

    logging.disable(logging.CRITICAL)
    figures = {
        "cli_estimate_s": median_s(
            lambda: cli_estimate(MODEL, SYSTEM, backend_name="vllm", batch_size=16, **LENGTHS), 7
        ),
        "cli_default_s": median_s(lambda: cli_default(MODEL, 8, SYSTEM, backend="vllm", **LENGTHS), 3),
    }
    print(json.dumps({name: round(value, 4) for name, value in figures.items()}))


if __name__ == "__main__":
    main()

"""Functions of roofcast that one warm recommendation enters, by room; JSON on the last line.

    python -m benchmarks.function_count [--names]

A measure of indirection, not of speed. Each function or method counts once; comprehensions, lambdas and the bodies
of classes do not.
"""

import argparse
import datetime as dt
import json
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from benchmarks.load import DEMAND
from roofcast.data.measurements.target import INFERENCE
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.composition import build_service
from roofcast.serving.recommend.api.recommendation_service import answer_recommendation
from roofcast.serving.recommend.api.request import RecommendationRequest

ROOT = Path(__file__).parents[1]


def entered_functions(job: Callable[[], Any]) -> list[tuple[str, str]]:
    """Return file and qualified name of each function of roofcast that a job enters."""
    codes: set[CodeType] = set()

    def record(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            codes.add(frame.f_code)

    threading.setprofile(record)
    sys.setprofile(record)
    try:
        job()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    functions = (code for code in codes if not code.co_name.startswith("<"))
    named = {(code.co_filename.removeprefix(f"{ROOT}/"), code.co_qualname) for code in functions}
    return sorted((file, name) for file, name in named if "roofcast/" in file and not file.startswith("/"))


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", action="store_true", help="print each function")
    options = parser.parse_args()
    request, today = RecommendationRequest.model_validate(DEMAND), dt.datetime.now(dt.UTC).date()
    with tempfile.TemporaryDirectory() as home:
        service = build_service(Settings(home=Path(home)))
        service.champions[INFERENCE].refresh()

        def recommend() -> None:
            answer_recommendation(request, service.catalog, service.active_model, service.stacks, today)

        recommend()
        functions = entered_functions(recommend)
    if options.names:
        print("\n".join(f"{file}: {name}" for file, name in functions))
    rooms = Counter(file.rpartition("/")[0].replace("roofcast/", "", 1) for file, _ in functions)
    print("\n".join(f"{n:>4} {room}" for room, n in rooms.most_common()))
    print(json.dumps({"n_function": len(functions), "n_file": len({file for file, _ in functions})}))


if __name__ == "__main__":
    main()

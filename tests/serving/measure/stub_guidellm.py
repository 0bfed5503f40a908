"""A stub of the `guidellm` command, which writes a report of the real one for the load and the path that it is given.

It fails with status 3 at the concurrencies that the environment lists in STUB_FAILS, with a report of failed requests
at those of STUB_ERRORS, hangs at those of STUB_HANGS, and notes each call in the file of STUB_CALLS.
It prints STUB_PRINTS.
"""

import json
import os
import signal
import sys
from pathlib import Path

SAMPLES = Path(__file__).parents[2] / "data" / "samples" / "guidellm"


def settings(option: str) -> dict[str, str]:
    text = sys.argv[sys.argv.index(option) + 1]
    return dict(pair.split("=", 1) for pair in text.split(","))


def listed(variable: str) -> list[str]:
    return os.environ.get(variable, "").split()


def main() -> None:
    streams = settings("--profile")["streams"]
    with Path(os.environ["STUB_CALLS"]).open("a", encoding="utf-8") as calls:
        calls.write(f"{streams}\n")
    print(os.environ.get("STUB_PRINTS", ""), flush=True)
    if streams in listed("STUB_HANGS"):
        signal.pause()
    if streams in listed("STUB_FAILS"):
        print("the server closed the connection")
        sys.exit(3)
    name = "all_failed.json" if streams in listed("STUB_ERRORS") else "concurrent.json"
    report = json.loads((SAMPLES / name).read_text(encoding="utf-8"))
    report["config"]["spec"]["backend"]["model"] = settings("--backend")["model"]
    report["benchmarks"] = report["benchmarks"][:1]
    strategy = report["benchmarks"][0]["config"]["strategy"]
    strategy |= {"type_": "concurrent", "streams": int(streams), "max_concurrency": int(streams)}
    Path(settings("--output")["path"]).write_text(json.dumps(report), encoding="utf-8")


if __name__ == "__main__":
    main()

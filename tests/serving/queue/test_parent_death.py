import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from roofcast.serving.queue import parent_death
from tests.conditions import wait_until

PARENT = """
import multiprocessing, sys, time
from tests.serving.queue.test_parent_death import child
if __name__ == "__main__":
    process = multiprocessing.get_context("spawn").Process(target=child, args=(sys.argv[1] == "thread",))
    process.start()
    print(process.pid, flush=True)
    time.sleep(3600)
"""


def child(with_thread_only: bool) -> None:
    """End with the parent; on request as on a system without ``prctl``."""
    if with_thread_only:
        parent_death.PR_SET_PDEATHSIG = -1  # type: ignore[misc]  # an option that no kernel knows
    parent_death.end_with_parent()
    print("ready", flush=True)
    wait_until(lambda: False)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("way", ["signal", "thread"])
def test_a_child_ends_with_a_parent_that_is_killed(way: str, tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, str(script), way]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as parent:  # noqa: S603
        assert parent.stdout is not None
        try:
            pid = int(parent.stdout.readline())
            assert parent.stdout.readline() == "ready\n"
            assert is_alive(pid)
        finally:
            parent.kill()
    wait_until(lambda: not is_alive(pid))


def test_a_process_that_a_user_starts_outlives_the_shell() -> None:
    before = threading.active_count()
    parent_death.end_with_parent()
    assert threading.active_count() == before

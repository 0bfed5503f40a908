"""Kills of every part at random times lose nothing; `make attack` kills a hundred times."""

from pathlib import Path

from benchmarks.kills import Plan, run
from tests.attack.conftest import EFFORT

SEED = 20260401
N_KILL = 10 * EFFORT


def test_random_kills_lose_double_or_half_promote_nothing(postgres_server: str, tmp_path: Path) -> None:
    del postgres_server  # the test is skipped where none is installed
    outcome = run(tmp_path, Plan(N_KILL, SEED))
    assert outcome.problems == []
    assert outcome.n_kill.total() == N_KILL
    assert outcome.figures["acknowledged"] > 0
    assert outcome.figures["promotions_acknowledged"] > 0

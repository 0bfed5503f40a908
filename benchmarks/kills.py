"""Random kills of service, server process, worker, MLflow server and PostgreSQL while clients change their state.

    python -m benchmarks.kills --kills 100 [--minutes 60] [--seed 1] [--mlflow mlflow/bin/python]

Clients upload, retrain, promote and predict. All processes are real; retrainings learn from few measurements and take
seconds. Each kill is a SIGKILL of a random victim at a random time, half of them before the platform has recovered
from the one before. After recoveries and at the end the store must hold each acknowledged row once and no refused
one, and the champion must be a whole, signed bundle. At the end all versions must be intact, each must have given one
answer to the question asked, all retrainings must have ended, and the service must answer. Prints JSON on the last
line.
"""

import argparse
import json
import math
import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from roofcast.client import Client
from roofcast.data.store.measurement_store import MeasurementStore
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.composition import build_service
from roofcast.serving.logs import configure_logs
from roofcast.training.lifecycle.registry.champion_changes import read_changes
from roofcast.training.lifecycle.registry.registry import Registry
from tests.attack.conftest import make_key
from tests.attack.ingest_clients import LEVEL, N_ROW, Ledger, clients
from tests.attack.platform import Platform, Victim
from tests.conditions import wait_until
from tests.postgres import server_binaries
from tests.serving.http_client import a_question

MAX_PAUSE_S: Final = 8.0
"""Longest time from a recovery, or a kill, to the next kill."""

MAX_OUTAGE_S: Final = 2.0
"""Longest time until a killed part that nobody else restarts is started again."""

MAX_RECOVERY_S: Final = 60.0
"""Longest wait for a recovery before a kill."""

HEALTHY_SHARE: Final = 0.5
"""Share of kills before which the platform recovers."""


@dataclass(frozen=True)
class Plan:
    """An attack: at most `n_kill` kills, the last of them before `minutes` have passed."""

    n_kill: int
    seed: int
    minutes: float = math.inf


@dataclass
class Outcome:
    """What is left after the kills.

    Parameters
    ----------
    problems
        In words; empty if nothing was lost, doubled or half done.
    """

    n_kill: Counter[str]
    figures: dict[str, Any]
    problems: list[str] = field(default_factory=list)


@contextmanager
def noted(problems: list[str], what: str) -> Iterator[None]:
    """Append an exception of the block, such as a condition that never holds, to the problems."""
    try:
        yield
    except Exception as error:
        problems.append(f"{what} failed: {error!r}")


def attack(platform: Platform, plan: Plan, ledger: Ledger) -> Counter[str]:
    """Kill random victims at random times; return the number of kills by victim."""
    end_s = time.monotonic() + plan.minutes * 60
    pick, kills = random.Random(plan.seed), Counter[str]()  # noqa: S311  (no secret)
    rounds = [platform.victims[i % len(platform.victims)] for i in range(plan.n_kill)]
    pick.shuffle(rounds)
    with noted(ledger.faults, "the attack"):
        for i, victim in enumerate(rounds, 1):
            if time.monotonic() > end_s:
                break
            if pick.random() < HEALTHY_SHARE and recovers(platform, MAX_RECOVERY_S):
                with noted(ledger.faults, f"checks before kill {i}"):
                    ledger.faults += [*check_rows(platform, ledger)[1], *check_champion(platform)]
            time.sleep(pick.uniform(0, MAX_PAUSE_S))
            kills[victim] += 1
            kill(platform, victim, pick)
            n_row, n_retraining = len(ledger.acknowledged), len(ledger.retrainings)
            print(f"kill {i}: {victim}; {n_row} rows, {n_retraining} retrainings", flush=True)
        wait_until(platform.is_healthy, pause_s=0.5)
    return kills


def recovers(platform: Platform, max_s: float) -> bool:
    """Wait until all parts answer, and return whether they do before the longest time."""
    try:
        wait_until(platform.is_healthy, max_s, pause_s=0.5)
    except AssertionError:
        return False
    return True


def kill(platform: Platform, victim: Victim, pick: random.Random) -> None:
    """Kill a victim, and start it again after a random time."""
    platform.kill(victim)
    time.sleep(pick.uniform(0, MAX_OUTAGE_S))
    platform.restore(victim)


def check_rows(platform: Platform, ledger: Ledger) -> tuple[dict[str, int], list[str]]:
    """Return counts of rows, and what is wrong with them."""
    acknowledged = set(ledger.acknowledged)
    with MeasurementStore(platform.database) as store:
        rows = store.load(provenance=True)
    stored = Counter(rows["note"])
    lost = acknowledged - stored.keys()
    doubled = {note for note, n in stored.items() if n > 1}
    unanswered = set(ledger.open)  # before the acknowledged ones: an answered row enters them, then leaves the open
    unknown = stored.keys() - unanswered - ledger.acknowledged
    batches = Counter(re.sub(r" row \d+$", "", note) for note in unanswered & stored.keys())
    halves = [batch for batch, n in batches.items() if n != N_ROW]
    problems = [
        f"{len(notes)} rows {what}, such as {sorted(notes)[:3]}"
        for what, notes in (("lost", lost), ("doubled", doubled), ("stored though refused or never sent", unknown))
        if notes
    ]
    problems += [f"batches stored in part: {halves[:3]}"] * bool(halves)
    counts = {"acknowledged": len(ledger.acknowledged), "stored": len(rows), "refused": len(ledger.refused)}
    return counts, problems


def registry_of(platform: Platform) -> Registry:
    """Return the registry that the service uses."""
    return build_service(Settings(home=platform.home, mlflow_tracking_uri=platform.registry_url)).registry


def check_champion(platform: Platform) -> list[str]:
    """Return what is wrong with the champion: its signature, checksum or bundle."""
    registry = registry_of(platform)
    champion = registry.champion()
    return check_version(registry, champion.version) if champion else ["there is no champion"]


def check_version(registry: Registry, version: str) -> list[str]:
    """Return what is wrong with a version."""
    try:
        registry.load(registry.find(version))
    except Exception as error:
        return [f"version {version} is not intact: {error!r}"]
    return []


def check_registry(platform: Platform, ledger: Ledger) -> tuple[dict[str, int], list[str]]:
    """Return counts of versions, and what is wrong with them, their answers, the champion or the audit trail.

    A change whose request got no answer may be done and not recorded: it is counted.
    """
    registry = registry_of(platform)
    champion, versions, changes = registry.champion(), registry.versions(), read_changes(platform.home, 10_000)
    problems = [problem for version in versions for problem in check_version(registry, version.version)]
    latest = champion.version if champion else "none"
    unrecorded = [pair[0].version_before for pair in pairwise(changes) if pair[0].version_before != pair[1].version]
    unrecorded += [latest] * bool(changes and changes[0].version != latest)
    unknown = set(unrecorded) - ledger.maybe_promoted
    problems += [f"versions {sorted(unknown)} became champions without a record or a request"] * bool(unknown)
    recorded = Counter(change.version for change in changes if change.action == "promotion")
    missing = ledger.promoted - recorded
    problems += [f"acknowledged promotions are not recorded: {dict(missing)}"] * bool(missing)
    several = sorted(version for version, answers in ledger.answers.items() if len(answers) > 1)
    strange = sorted(ledger.answers.keys() - {version.version for version in versions})
    problems += [f"versions {several} gave different answers to one question"] * bool(several)
    problems += [f"answers name unknown versions {strange}"] * bool(strange)
    with noted(problems, "the switch of the service to the champion"), Client(platform.url) as client:
        wait_until(lambda: client.predictor()["version"] == latest)
    counts = {
        "versions": len(versions),
        "promotions_acknowledged": ledger.promoted.total(),
        "versions_promoted": len(ledger.promoted),
        "changes_recorded": len(changes),
        "changes_unrecorded": len(unrecorded),
        "versions_that_answered": len(ledger.answers),
    }
    return counts, problems


def check_retrainings(platform: Platform, ledger: Ledger, key: str) -> tuple[dict[str, int], list[str]]:
    """Wait for the end of all retrainings and of a new one; return counts, and what is wrong."""
    with Client(platform.url, key, timeout_s=600.0) as client:
        last = client.wait_for_retraining(client.retrain()["id"])
        records = {record["id"]: record for record in client.retrainings(limit=1000)}
        answer = client.predict([a_question()], level=LEVEL)
    missing, states = ledger.retrainings - records.keys(), Counter(record["state"] for record in records.values())
    problems = [f"{len(missing)} acknowledged retrainings are unknown"] * bool(missing)
    problems += [f"a retraining after the attack is {last['state']}: {last['error']}"] * (last["state"] != "done")
    unfinished = states.keys() - {"done", "failed"}
    problems += [f"retrainings did not end: {dict(states)}"] * bool(unfinished)
    problems += ["no prediction after the attack"] * (answer["rows"][0]["status"] != "ok")
    return {f"retrainings_{state}": n for state, n in states.items()}, problems


def learn_second_version(platform: Platform, key: str) -> None:
    """Retrain, so that clients promote different versions.

    Raises
    ------
    RuntimeError
        If the retraining does not end as done, or leaves less than two versions.
    """
    with Client(platform.url, key, timeout_s=600.0) as client:
        record = client.wait_for_retraining(client.retrain()["id"])
        versions = [version["version"] for version in client.versions()]
    if record["state"] != "done" or len(versions) < 2:
        raise RuntimeError(
            f"the first retraining is {record['state']} ({record['error']}) and the versions are {versions}: "
            "an attack needs two versions; see service.log in --folder"
        )


def run(folder: Path, plan: Plan, mlflow: Path | None = None) -> Outcome:
    """Attack a new platform and return what is left.

    Raises
    ------
    AssertionError
        If no PostgreSQL server is installed.
    RuntimeError
        If there are no two versions to promote.
    """
    binaries = server_binaries()
    if binaries is None:
        raise AssertionError("no PostgreSQL server is installed")
    platform = Platform(folder, binaries, mlflow)
    try:
        platform.start()
        key = make_key(platform.database, "attacker")
        learn_second_version(platform, key)
        start_s = time.time()
        with clients(platform.url, key, plan.seed) as ledger:
            kills = attack(platform, plan, ledger)
        figures: dict[str, Any] = {"minutes": round((time.time() - start_s) / 60, 1)}
        problems = list(ledger.faults)
        checks: dict[str, Callable[[], tuple[dict[str, int], list[str]]]] = {
            "the check of retrainings": lambda: check_retrainings(platform, ledger, key),
            "the check of rows": lambda: check_rows(platform, ledger),
            "the check of the registry": lambda: check_registry(platform, ledger),
        }
        for name, check in checks.items():
            with noted(problems, name):
                counts, found = check()
                figures |= counts
                problems += found
        problems = list(dict.fromkeys(problems))
        errors = Counter(re.findall(r'"level": "ERROR".*?"message": "([^"]{0,80})', platform.log))
        return Outcome(kills, {**figures, "outcomes": dict(ledger.outcomes), "errors_logged": dict(errors)}, problems)
    finally:
        platform.remove()


def main() -> None:
    """Run the attack and print what is left."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=math.inf, help="time after which no further kill follows")
    parser.add_argument("--seed", type=int, default=None, help="of victims and times; by default a random one")
    parser.add_argument("--folder", type=Path, help="for state and logs; by default a temporary one")
    parser.add_argument("--mlflow", type=Path, help="Python executable of an environment with MLflow's server")
    options = parser.parse_args()
    configure_logs()
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        outcome = run(folder, Plan(options.kills, seed, options.minutes), options.mlflow)
    print(*outcome.problems, sep="\n")
    print(json.dumps({"seed": seed, "kills": outcome.n_kill, **outcome.figures, "problems": len(outcome.problems)}))


if __name__ == "__main__":
    main()

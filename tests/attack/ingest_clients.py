"""Clients of a service that is being killed: they upload, retrain, promote and predict, and keep a ledger."""

import json
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from roofcast.client import Client
from roofcast.client.errors import InputError, NotReadyError, RoofcastError, UnreachableError
from tests.serving.http_client import a_question

N_UPLOADER: Final = 3
N_ROW: Final = 3
"""Rows of a batch."""

REFUSED_SHARE: Final = 0.1
"""Share of batches with a row that contradicts itself."""

UPLOAD_PAUSE_S: Final = 1.0
PROMOTION_PAUSE_S: Final = 2.0
PREDICTION_PAUSE_S: Final = 0.2
RETRY_S: Final = 0.2

LEVEL: Final = 0.7
"""Of the intervals; predictors that learnt three lineages have none above .75."""

MODELS: Final = ("bigcode/starcoder", "huggyllama/llama-13b", "Salesforce/codegen2-16B")
MEASURED: Final[dict[str, Any]] = {
    "accelerator": "nvidia-a100-pcie-40gb", "n_accelerator": 1, "engine": "tgi", "n_output_token": 128,
    "statistic": "p50",
}  # fmt: skip


@dataclass
class Ledger:
    """What clients sent and which answers they got; rows are named by their `note`."""

    acknowledged: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    open: set[str] = field(default_factory=set)
    """Rows whose batch has no answer yet."""

    retrainings: set[str] = field(default_factory=set)
    promoted: Counter[str] = field(default_factory=Counter)
    """Acknowledged promotions of each version."""

    maybe_promoted: set[str] = field(default_factory=set)
    """Versions of which a promotion got no answer."""

    answers: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Different answers to the one question that is asked, by the version that they name."""

    outcomes: Counter[str] = field(default_factory=Counter)
    """Answers and failures of all requests, by kind."""

    faults: list[str] = field(default_factory=list)
    """Errors and wrong counts that no outage explains."""

    def attempt(self, name: str, request: Callable[[], Any]) -> Any:
        """Return the answer; None if the service does not answer or is not ready, or after a fault."""
        try:
            answer = request()
        except (UnreachableError, NotReadyError) as error:
            self.outcomes[f"{name}: {type(error).__name__} {error.status}"] += 1
            return None
        except InputError:
            raise
        except RoofcastError as error:
            self.outcomes[f"{name}: {type(error).__name__} {error.status}"] += 1
            self.faults.append(f"{name}: {error.status} {error} {error.request_id}")
            return None
        self.outcomes[f"{name}: answered"] += 1
        return answer


def a_batch(prefix: str, random_: random.Random, *, is_refused: bool) -> list[dict[str, Any]]:
    """Return distinct plausible rows, the last of which has a negative time if the batch is to be refused."""
    rows = [
        {
            **MEASURED, "model": random_.choice(MODELS), "campaign": "kills", "note": f"{prefix} row {i}",
            "n_input_token": random_.randint(64, 1024), "concurrency": random_.choice([1, 2, 4, 8, 16]),
            "ttft_s": 0.1 * random_.uniform(0.9, 1.1), "itl_s": 0.03 * random_.uniform(0.9, 1.1),
        }
        for i in range(N_ROW)
    ]  # fmt: skip
    if is_refused:
        rows[-1]["ttft_s"] = -1.0
    return rows


def upload(client: Client, ledger: Ledger, stopping: threading.Event, name: str, random_: random.Random) -> None:
    """Send batches, each until it is answered."""
    n_batch = 0
    while not stopping.wait(UPLOAD_PAUSE_S):
        n_batch += 1
        is_refused = random_.random() < REFUSED_SHARE
        rows = a_batch(f"{name} batch {n_batch}", random_, is_refused=is_refused)
        notes = {str(row["note"]) for row in rows}
        ledger.open |= notes
        while not stopping.is_set() and notes & ledger.open:
            try:
                answer = ledger.attempt("upload", partial(client.add_measurements, rows=rows))
            except InputError as error:
                if not is_refused:
                    ledger.faults.append(f"upload: {error.status} {error}")
                ledger.refused |= notes
                ledger.open -= notes
                continue
            if answer is None:
                time.sleep(RETRY_S)
                continue
            if is_refused or answer["n_new"] + answer["n_known"] != N_ROW or answer["n_new"] not in {0, N_ROW}:
                counts = f"{answer['n_new']} new, {answer['n_known']} known"
                ledger.faults.append(f"{name} batch {n_batch} of {N_ROW} rows: {counts}")
            ledger.acknowledged |= notes
            ledger.open -= notes


def retrain(client: Client, ledger: Ledger, stopping: threading.Event) -> None:
    """Request retrainings one after another."""
    while not stopping.is_set():
        answer = ledger.attempt("retraining", client.retrain)
        if answer is None:
            time.sleep(RETRY_S)
            continue
        ledger.retrainings.add(answer["id"])
        state = answer["state"]
        while state in {"queued", "running"} and not stopping.wait(0.5):
            record = ledger.attempt("poll", partial(client.retraining, answer["id"]))
            state = record["state"] if record else state


def promote(client: Client, ledger: Ledger, stopping: threading.Event, random_: random.Random) -> None:
    """Promote random versions one after another."""
    while not stopping.wait(PROMOTION_PAUSE_S):
        versions = ledger.attempt("versions", client.versions)
        if versions is None:
            continue
        version = random_.choice(versions)["version"]
        if ledger.attempt("promotion", partial(client.promote, version=version)) is None:
            ledger.maybe_promoted.add(version)
        else:
            ledger.promoted[version] += 1


def predict(client: Client, ledger: Ledger, stopping: threading.Event) -> None:
    """Ask one question again and again."""
    while not stopping.wait(PREDICTION_PAUSE_S):
        answer = ledger.attempt("prediction", lambda: client.predict([a_question()], level=LEVEL))
        if answer:
            ledger.answers[answer["predictor_version"]].add(json.dumps(answer["rows"]))


@contextmanager
def clients(url: str, key: str, seed: int) -> Iterator[Ledger]:
    """Run all clients during the block; at its end each has given up or been answered."""
    ledger, stopping = Ledger(), threading.Event()
    threads = []

    def start(work: Callable[..., None], *arguments: Any) -> None:
        def run() -> None:
            try:
                with Client(url, key, timeout_s=60.0, retries=1) as client:
                    work(client, ledger, stopping, *arguments)
            except Exception as error:
                ledger.faults.append(f"{work.__name__} ended: {error!r}")

        threads.append(threading.Thread(target=run))
        threads[-1].start()

    for i in range(N_UPLOADER):
        start(upload, f"uploader-{i}", random.Random(f"{seed}-{i}"))  # noqa: S311  (no secret)
    start(promote, random.Random(f"{seed}-promote"))  # noqa: S311  (no secret)
    start(retrain)
    start(predict)
    try:
        yield ledger
    finally:
        stopping.set()
        for thread in threads:
            thread.join()

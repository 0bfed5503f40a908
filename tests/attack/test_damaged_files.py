"""Damaged files of every format are rows or an error that names what is wrong, for importers and upload routes."""

import copy
import io
import json
import random
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from prometheus_client import generate_latest

from roofcast.data.errors import RoofcastError
from roofcast.data.importers import read_upload
from roofcast.data.importers.client_runs import table_of_runs
from roofcast.data.importers.name_check import NameCheck
from roofcast.data.importers.server_metrics import parse_scrape, run_of_scrapes
from roofcast.data.importers.sources import Source
from roofcast.data.job_campaigns import job_catalog
from roofcast.data.measurements.validation import validate_measurements
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.http.app import create_app
from roofcast.serving.jobs.imports.run_import import read_run_file, read_runs
from tests.attack.conftest import EFFORT
from tests.data.row_builders import SAMPLES
from tests.serving.http_client import Client, problem_of, running
from tests.serving.measure.exporter import SGLANG_NAMES, VLLM_NAMES, Exporter

VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 0.5, 1e308, 10**400, float("nan"), float("inf"), "", "x", "=1+1", "\ud800", "\u202e", "../x",
    "9" * 500, [], [None], [[]], {}, {"a": 1}, [1e-300], "a:b", ["x", "y"], "2025-01-01T00:00:00",
)  # fmt: skip
FRAGMENTS = (
    b"", b",", b'"', b"'", b"\n", b"\r", b"[", b"{", b"}", b":", b"nan", b"-", b".", b"None", b"1e999", b"\x00",
    b"\xff", b"9" * 30, b"9" * 5000, b"\xd9\xa1", b"\xc2\xb2", b"\\u", b"[" * 3000, b"\n" * 3000, b"['dp'], [8, 2]",
    b'["x"]', b"[8]", b"step:", b"\xed\xa0\x80",
)  # fmt: skip

HARDWARE = {"accelerator": "nvidia-h100-sxm-80gb", "n_accelerator": "2"}
NAMED = {**HARDWARE, "model": "meta-llama/Llama-3.1-8B"}

LENGTHS = {"n_input_token": "1024", "n_output_token": "16", "concurrency": "1"}


class Sample(NamedTuple):
    """A file of a format, and the values that it lacks."""

    format: str
    name: str
    given: dict[str, str]

    @property
    def content(self) -> bytes:
        return (SAMPLES / self.format / self.name).read_bytes()


FILES = [
    *(Sample("vllm_bench", name, HARDWARE) for name in ("default.json", "detailed.json", "rate.json")),
    Sample("sglang_bench", "sweep.jsonl", HARDWARE),
    Sample("sglang_bench", "detailed.jsonl", NAMED),
    *(Sample("guidellm", name, NAMED) for name in ("rate.json", "all_failed.json", "concurrent_slow.csv")),
    *(Sample("aiperf", name, NAMED) for name in ("concurrency_2.json", "rate_saturated.json")),
    *(Sample("aiperf", f"concurrency_2.{kind}", {**NAMED, "concurrency": "2"}) for kind in ("jsonl", "csv")),
    Sample("aiperf", "sweep.csv", NAMED),
    *(Sample("inferencemax", f"agg_{name}.json", {}) for name in ("disaggregated", "dsr1_1k8k", "single_node")),
    Sample("inferencemax", "agentic.json", {}),
    *(Sample("llama_bench", f"two_3090.{kind}", {"model": "Qwen3-32B"}) for kind in ("json", "jsonl", "csv", "md")),
    *(Sample(name, "printed.txt", NAMED) for name in ("vllm_bench", "sglang_bench")),
    Sample("trtllm_bench", "report.json", {}),
    Sample("trtllm_bench", "printed.log", {"accelerator": "nvidia-h100-sxm-80gb"}),
    Sample("inference_perf", "stage_0_lifecycle_metrics.json", NAMED),
    *(Sample("vllm_batch", f"{name}.json", NAMED | LENGTHS) for name in ("latency", "throughput")),
    *(
        Sample("sglang_batch", f"one_batch.{kind}", NAMED | extra)
        for kind, extra in (("jsonl", {}), ("log", LENGTHS))
    ),
    *(Sample("sglang_batch", f"offline.{kind}", NAMED) for kind in ("jsonl", "log")),
    Sample("ollama_verbose", "two_answers.txt", HARDWARE),
    *(Sample("llm_perf", f"benchmark{name}.json", {}) for name in ("", "_failed", "_repeated")),
    *(
        Sample("mlperf_summary", f"{name}_summary.txt", {**NAMED, "n_input_token": "294"})
        for name in ("offline", "server", "server_old_invalid", "single_stream")
    ),
    Sample("llm_pilot", "results_llama-7b_gpu4_t4_u8.csv", {}),
    Sample("roofcast_csv", "own.csv", {}),
]
JOBS = [Sample("job_logs", f"{name}.log", {**NAMED, "n_accelerator": "8"}) for name in ("torchtitan", "megatron")]
JOBS.append(Sample("job_logs", "torchtitan_config.log", {**NAMED, "n_accelerator": "32"}))
JOBS.append(Sample("job_logs", "jobs.csv", {}))

COUNTS = [4 * EFFORT, pytest.param(60 * EFFORT, marks=pytest.mark.slow)]


def damaged(content: bytes, rng: random.Random) -> bytes:
    """Return a content with values of another kind, keys dropped, bytes replaced, or its end cut off."""
    lines = content.splitlines(keepends=True)
    at = rng.randrange(len(lines))
    for start, end in ((0, len(lines)), (at, at + 1)):
        try:
            document = json.loads(b"".join(lines[start:end]))
        except ValueError:
            continue
        if isinstance(document, dict | list) and rng.random() < 0.6:
            for _ in range(rng.randint(1, 3)):
                _change_value(document, rng)
            return b"".join([*lines[:start], json.dumps(document).encode(), b"\n", *lines[end:]])
    if rng.random() < 0.1:
        return content[: rng.randrange(len(content))]
    changed = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(changed) + 1)
        changed[at : at + rng.choice([0, 1, 9, 400])] = rng.choice(FRAGMENTS)
    return bytes(changed)


def _change_value(node: Any, rng: random.Random) -> None:
    while node:
        key = rng.choice(list(node) if isinstance(node, dict) else range(len(node)))
        if not isinstance(node[key], dict | list) or not node[key] or rng.random() < 0.2:
            if rng.random() < 0.2:
                del node[key]
            else:
                node[key] = copy.deepcopy(rng.choice(VALUES))
            return
        node = node[key]


def name_of(sample: Sample) -> str:
    return f"{sample.format}-{sample.name}"


def check_error(error: RoofcastError) -> None:
    assert str(error).isprintable()
    assert len(str(error)) < 3000


@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize("sample", FILES, ids=name_of)
def test_damaged_benchmark_files(sample: Sample, n: int) -> None:
    assert len(read_upload(None, Source(sample.name, io.BytesIO(sample.content)), None, sample.given)[1])
    for seed in range(n):
        content = damaged(sample.content, random.Random(f"{sample.name} {seed}"))  # noqa: S311
        chosen = None if seed % 4 == 0 else sample.format
        try:
            _, table = read_upload(chosen, Source(sample.name, io.BytesIO(content)), None, sample.given)
        except RoofcastError as error:
            check_error(error)
        else:
            validate_measurements(table)


@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize("sample", JOBS, ids=name_of)
def test_damaged_files_of_jobs(sample: Sample, n: int) -> None:
    catalog = job_catalog()
    assert len(read_run_file(sample.content, sample.name, sample.given, catalog).rows)
    for seed in range(n):
        content = damaged(sample.content, random.Random(f"{sample.name} {seed}"))  # noqa: S311
        try:
            table = read_run_file(content, sample.name if seed % 4 else "upload", sample.given, catalog)
            read_runs(table.records(), catalog, None, sample.name, table.lines)
        except RoofcastError as error:
            check_error(error)


@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize("names", [VLLM_NAMES, SGLANG_NAMES])
def test_damaged_metrics(names: dict[str, str], n: int) -> None:
    exporter = Exporter(names)
    first = generate_latest(exporter.registry)
    exporter.serve(3)
    last = generate_latest(exporter.registry)
    for seed in range(n):
        rng = random.Random(f"metrics {seed}")  # noqa: S311
        texts = [damaged(first, rng) if seed % 2 else first, damaged(last, rng)]
        try:
            scrapes = [parse_scrape(text.decode(errors="replace"), 10.0 * i, "u") for i, text in enumerate(texts)]
            table_of_runs([run_of_scrapes(scrapes, NAMED, "u")], "watch", {}, NameCheck())
        except RoofcastError as error:
            check_error(error)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with running(create_app(Settings(home=tmp_path_factory.mktemp("home"), poll_s=3600))) as client:
        yield client


def upload(client: Client, sample: Sample, content: bytes, name: str) -> None:
    """Post a file for a dry run; the answer counts rows or has problem details."""
    path = "/v1/training/measurements/files" if sample in JOBS else "/v1/measurements/files"
    query = [("name", name), ("dry_run", "1"), *(("set", f"{key}={value}") for key, value in sample.given.items())]
    headers = {"content-type": "application/octet-stream"}
    response = client.send("POST", f"{path}?{urllib.parse.urlencode(query)}", content, headers)
    if response.status_code != 200:
        assert problem_of(response, response.status_code)["status"] in {404, 422}, response.text


@pytest.mark.parametrize("n", [EFFORT, pytest.param(12 * EFFORT, marks=pytest.mark.slow)])
@pytest.mark.parametrize("sample", FILES + JOBS, ids=name_of)
def test_damaged_uploads(service: Client, sample: Sample, n: int) -> None:
    for seed in range(n):
        content = damaged(sample.content, random.Random(f"upload {sample.name} {seed}"))  # noqa: S311
        upload(service, sample, content, sample.name)


@pytest.mark.parametrize("sample", [FILES[0], JOBS[0]], ids=name_of)
@pytest.mark.parametrize(
    "name",
    ["é" * 200, "\U0001f999" * 200, "..", ".", "~", "-rf", "NUL", " ", "a\u202e.json", "x" * 199 + "."],
)
def test_a_client_names_its_file_as_it_likes(service: Client, sample: Sample, name: str) -> None:
    upload(service, sample, sample.content, name)
    upload(service, sample, b"", name)


def test_no_upload_leaves_a_file(service: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    upload(service, FILES[0], FILES[0].content, "a.json")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b"\n" * 2**23),
        ("a.jsonl", b"\n" * 2**23 + b"{}"),
        ("a.csv", b"model,accelerator\n" + b"\n" * 2**23),
        ("a.csv", b"Run Info,Request Counts\n" + b"\n" * 2**23),
        ("a.csv", b"Metric,avg\n" + b"\n" * 2**23),
        ("a.log", b"x" * 2**23),
        ("a.log", b"step: 1  loss: " * 2**19),
        ("a.log", b"iteration 1/ 2 | " * 2**19),
        ("a.log", b"\n" * 2**23),
        ("a.log", b"= Serving Benchmark Result =\n" + b"a:" * 2**22),
        ("a.log", b"total duration: 1s\neval count: 1\neval duration: 1s\n" * 2**17),
        ("a.log", b"a " * 2**22),
    ],
)
@pytest.mark.parametrize("job", [False, True])
def test_the_cost_of_a_file_is_that_of_its_bytes(job: bool, name: str, content: bytes) -> None:
    """8 MiB of nothing are refused in a fraction of a second; a cost that grows faster would take minutes."""
    if job:
        with pytest.raises(RoofcastError):
            read_run_file(content, name, NAMED, job_catalog())
    else:
        with pytest.raises(RoofcastError):
            read_upload(None, Source(name, io.BytesIO(content)))

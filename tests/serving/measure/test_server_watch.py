import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from roofcast.data.errors import InputError, NotReadyError, SchemaError
from roofcast.data.importers.client_runs import Run
from roofcast.data.importers.server_metrics import parse_scrape, run_of_scrapes
from roofcast.serving.measure.server_watch import ServerWatch
from tests.serving.measure.exporter import SGLANG_NAMES, VLLM_NAMES, Exporter

Act = Callable[[Exporter], None]
CACHE = {
    "cache_dtype": "fp8_e4m3", "enable_prefix_caching": "True", "gpu_memory_utilization": "0.92", "engine": "0",
    "cpu_offload_gb": "0",
}  # fmt: skip


class Clock:
    """A clock that sleeping moves, doing the next act of a script meanwhile."""

    def __init__(self, exporter: Exporter, acts: Sequence[Act]) -> None:
        self.now_s, self.exporter, self.acts = 100.0, exporter, list(acts)

    def __call__(self) -> float:
        return self.now_s

    def sleep(self, interval_s: float) -> None:
        self.now_s += interval_s
        if self.acts:
            self.acts.pop(0)(self.exporter)


def serve(n: int, **gauges: int) -> Act:
    return lambda exporter: exporter.serve(n, **gauges)


def watched(exporter: Exporter, *acts: Act, model: str = "") -> tuple[Run, ServerWatch]:
    """Return the run of a watch of ten seconds an act."""
    clock = Clock(exporter, acts)
    with exporter.running() as url:
        watch = ServerWatch(f"{url}/metrics", model=model, clock=clock, sleep=clock.sleep)
        scrapes = watch.watch(10.0 * len(acts), 10.0, lambda _: None)
        return run_of_scrapes(scrapes, watch.settings(scrapes[0]), url), watch


def mean(run: Run, *columns: str) -> list[float]:
    return [run.statistics["mean"][column] for column in columns]


@pytest.mark.parametrize("names", [VLLM_NAMES, SGLANG_NAMES])
def test_what_was_counted_between_scrapes_is_a_run_with_its_load(names: dict[str, str]) -> None:
    exporter = Exporter(names)
    exporter.serve(1000, running=64)
    run, _ = watched(exporter, serve(40), serve(40, waiting=2))
    assert mean(run, "ttft_s", "itl_s", "e2e_s", "tpot_s") == pytest.approx([0.2, 0.01, 1.2, 0.01])
    assert [run.cells[name] for name in ("n_input_token", "n_output_token", "n_request")] == [1000, 101, 80]
    assert run.cells["concurrency"] == pytest.approx((64 + 4 + 6) / 3)
    assert run.cells["prefix_cache_ratio"] == pytest.approx(0.5)
    assert run.totals["request_throughput_per_s"] == pytest.approx(4)
    assert run.totals["output_throughput_token_per_s"] == pytest.approx(404)
    assert run.cells["engine"] == next(iter(names.values())).partition(":")[0]


@pytest.mark.parametrize(
    ("key", "name"),
    [("itl", "vllm:time_per_output_token_seconds"), ("looked_up", "vllm:gpu_prefix_cache_queries")],
)
def test_early_names_of_metrics_are_known(key: str, name: str) -> None:
    exporter = Exporter({**VLLM_NAMES, key: name, "cached": f"{name.removesuffix('queries')}hits"})
    run, _ = watched(exporter, serve(10))
    assert mean(run, "itl_s") == pytest.approx([0.01])


@pytest.mark.parametrize(
    "missing", ["itl", "queue", "looked_up", "requests", "n_output", "waiting", "running", "ttft"]
)
def test_a_metric_that_is_missing_leaves_the_others(missing: str) -> None:
    run, _ = watched(Exporter({key: name for key, name in VLLM_NAMES.items() if key != missing}), serve(10))
    assert run.cells["n_request"] == 10
    assert run.cells["n_output_token"] == 101
    assert run.cells["concurrency"] >= 1
    assert mean(run, "e2e_s") == pytest.approx([1.2])


def test_a_restart_costs_what_was_counted_since_the_scrape_before_it() -> None:
    exporter = Exporter(VLLM_NAMES)
    exporter.serve(100)

    def restart(one: Exporter) -> None:
        one.restart()
        one.serve(7)

    run, _ = watched(exporter, serve(10), restart)
    assert run.cells["n_request"] == 17
    assert mean(run, "ttft_s") == pytest.approx([0.2])
    assert "the server restarted" in run.cells["note"]


def test_a_scrape_that_fails_is_left_out() -> None:
    def go_down(exporter: Exporter) -> None:
        exporter.serve(5)
        exporter.is_down = True

    def come_up(exporter: Exporter) -> None:
        exporter.is_down = False

    run, watch = watched(Exporter(VLLM_NAMES), serve(5), go_down, come_up)
    assert (watch.n_missed, run.cells["n_request"], run.cells["duration_s"]) == (1, 10, 30)


def test_the_server_states_model_and_settings_and_only_answers() -> None:
    exporter = Exporter(VLLM_NAMES, cache=CACHE)
    exporter.answers["/version"] = {"version": "0.24.1"}
    run, _ = watched(exporter, serve(10))
    expected = {
        "model": "Qwen/Qwen3-8B", "engine": "vllm", "engine_version": "0.24.1", "kv_precision": "fp8",
        "prefix_caching": "on", "gpu_memory_utilization": 0.92, "max_context_token": 32_768,
    }  # fmt: skip
    assert {name: run.cells[name] for name in expected} == expected
    assert "cpu_offload_gib" not in run.cells
    assert set(exporter.methods) == {"GET"}


def test_sglang_states_its_arguments() -> None:
    exporter = Exporter(SGLANG_NAMES)
    exporter.answers["/server_info"] = {
        "model_path": "Qwen/Qwen3-32B", "version": "0.5.23", "tp_size": 2, "mem_fraction_static": 0.85,
        "chunked_prefill_size": 8192, "disable_radix_cache": True, "kv_cache_dtype": "auto",
    }  # fmt: skip
    cells = watched(exporter, serve(10))[0].cells
    expected = {"model": "Qwen/Qwen3-32B", "tp": 2, "gpu_memory_utilization": 0.85, "prefix_caching": "off"}
    assert {name: cells[name] for name in expected} == expected


def test_speculation_is_counted() -> None:
    names = {
        "drafts": "vllm:spec_decode_num_drafts", "drafted": "vllm:spec_decode_num_draft_tokens",
        "accepted": "vllm:spec_decode_num_accepted_tokens",
    }  # fmt: skip
    exporter = Exporter({**VLLM_NAMES, **names})

    def act(one: Exporter) -> None:
        one.serve(10)
        for key, n in {"drafts": 100, "drafted": 300, "accepted": 180}.items():
            one.at(key).inc(n)

    run, _ = watched(exporter, act)
    assert math.isnan(*mean(run, "itl_s"))
    cells = run.cells
    expected = {"n_speculative_token": 3.0, "acceptance_length": 2.8, "draft_acceptance_ratio": 0.6}
    assert {name: cells[name] for name in expected} == pytest.approx(expected)


def test_a_server_of_several_models_asks_for_one() -> None:
    exporter = Exporter(VLLM_NAMES, model="a/b")
    exporter.serve(1)
    exporter.model = "c/d"
    exporter.serve(1)
    with pytest.raises(InputError, match=r"served_model: must be one of a/b, c/d"):
        watched(exporter, serve(1))
    exporter.answers["/v1/models"] = {
        "data": [{"id": "a/b", "max_model_len": 4096}, {"id": "c/d", "max_model_len": 8192}]
    }
    cells = watched(exporter, serve(3), model="c/d")[0].cells
    assert (cells["n_request"], cells["model"], cells["max_context_token"]) == (3, "c/d", 8192)


def test_a_watch_without_a_finished_request_says_so() -> None:
    with pytest.raises(SchemaError, match="no request was finished in 10 s; watch longer"):
        watched(Exporter(VLLM_NAMES), serve(0))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("<html>", "has no metrics in the text format of Prometheus"),
        ("up 1\n", "has no metric of vllm or sglang; start vLLM"),
        ('vllm:x{le="', "has no metrics in the text format of Prometheus"),
        ("", "has no metric of vllm or sglang"),
    ],
)
def test_other_texts_are_refused(text: str, problem: str) -> None:
    with pytest.raises(SchemaError, match=problem):
        parse_scrape(text, 0.0, "u")


@pytest.mark.parametrize(
    ("url", "error", "problem"),
    [
        ("http://127.0.0.1:9", NotReadyError, "does not answer"),
        ("gopher://x", InputError, "must be a URL such as"),
        ("http://me:secret@x:8000", InputError, "has a user or password"),
    ],
)
def test_an_address_without_a_server_is_refused(url: str, error: type[Exception], problem: str) -> None:
    with pytest.raises(error, match=problem):
        ServerWatch(url).scrape()


def test_a_server_without_metrics_is_refused() -> None:
    exporter: Any = Exporter(VLLM_NAMES)
    exporter.is_down = True
    with (
        exporter.running() as url,
        pytest.raises(InputError, match="answers 503; start SGLang with --enable-metrics"),
    ):
        ServerWatch(url).scrape()

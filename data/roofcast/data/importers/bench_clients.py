"""Results of vLLM's and SGLang's ``bench_serving``, two descendants of one client.

vLLM's ``vllm bench serve`` writes one flat JSON object a run; the user chooses the percentiles, and whether E2E is
among the metrics; ``--metadata name=value`` is read if the name is a column of the measurement table. `backend` names
the request format, and the engine where no other has it. SGLang's appends a run a line; `concurrency` is measured,
`max_concurrency` is the setting; `server_info` has model, version and parallelism if the server is SGLang.

Both print a table at the end, which is read too; it has neither model nor date.

Statistics are in ms. A detailed file holds arrays over requests, in seconds, from which every statistic is computed.
"""

import math
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from roofcast.data.errors import InputError
from roofcast.data.importers.client_runs import Run, join_cells, load_cells, model_cells
from roofcast.data.importers.fact_tables import fact_table
from roofcast.data.importers.format import Format
from roofcast.data.importers.json_input import Floats, Node, iter_documents, read_document
from roofcast.data.importers.layout import layout
from roofcast.data.importers.overrides import OVERRIDABLE_COLUMNS, fill_blanks, parse_cell
from roofcast.data.importers.printed_results import documents_of
from roofcast.data.importers.request_samples import length_cells, request_samples, statistics_of
from roofcast.data.importers.sources import Source
from roofcast.data.measurements.speculation import NAMES, speculation_cells

ARRAY_KEYS: Final = ("input_lens", "output_lens", "ttfts", "itls")
"""Arrays over requests of a detailed file, in seconds and tokens."""

Mask = NDArray[np.bool_]

_ENGINES: Final[dict[str, str]] = fact_table("tool_words")["bench_clients"]["engines"]


def _has_arrays(document: Node) -> bool:
    return all(document[key].is_array for key in ARRAY_KEYS)


def _request_arrays(document: Node) -> dict[str, Floats]:
    lengths = {key: document[key].numbers() for key in ARRAY_KEYS[:3]}
    n_request = len(lengths["input_lens"])
    errors = _list(document["errors"], n_request) if not document["errors"].is_blank else [""] * n_request
    for key in ("output_lens", "ttfts"):
        _check_length(document[key], len(lengths[key]), n_request)
    is_done = ~np.array(list(map(bool, errors)), dtype=bool) & (lengths["output_lens"] > 0)
    if not is_done.any():
        raise document["output_lens"].error("no request completed, although the file counts some")
    gaps_s, decode_s = _gaps(document["itls"], is_done)
    ttft_s, n_input, n_output = (lengths[k][is_done] for k in ("ttfts", "input_lens", "output_lens"))
    e2e_s = _latencies(document, is_done, ttft_s, decode_s)
    is_long = n_output > 1
    tpot_s = (e2e_s[is_long] - ttft_s[is_long]) / (n_output[is_long] - 1)
    return request_samples(ttft_s, tpot_s, e2e_s, n_input, n_output, gap_s=gaps_s)


def _gaps(node: Node, is_done: Mask) -> tuple[Floats, Floats]:
    lists = _list(node, len(is_done))
    pooled = array("d")
    sums = array("d")
    for i in np.flatnonzero(is_done).tolist():
        gaps_s = Node(lists[i], f"{node.path}[{i}]", node.place, node.line).numbers()
        pooled.frombytes(gaps_s.tobytes())
        sums.append(float(gaps_s.sum()))
    return np.frombuffer(pooled) if len(pooled) else np.empty(0), np.frombuffer(sums)


def _latencies(document: Node, is_done: Mask, ttft_s: Floats, decode_s: Floats) -> Floats:
    node = document["latencies"]
    if node.is_blank:
        e2e_s: Floats = ttft_s + decode_s
        return e2e_s
    latencies_s = node.numbers()
    _check_length(node, len(latencies_s), len(is_done))
    e2e_s = latencies_s[is_done]
    if (e2e_s < ttft_s).any():
        at = int(np.flatnonzero(is_done)[(e2e_s < ttft_s).argmax()])
        raise document.error(f"latencies[{at}] must be at least ttfts[{at}]")
    return e2e_s


def _list(node: Node, n_request: int) -> list[Any]:
    if not node.is_array:
        raise node.error("must be an array")
    _check_length(node, len(node.value), n_request)
    return list(node.value)


def _check_length(node: Node, n_entry: int, n_request: int) -> None:
    if n_entry != n_request:
        raise node.error(f"must have {n_request} entries as input_lens has, got {n_entry}")


_OWN_KEYS: Final = {"date", "request_rate"}
_SWITCH: Final = {True: "on", False: "off"}


@dataclass(frozen=True)
class _Client:
    name: str
    cells: Callable[[Node], dict[str, Any]]
    counts: Callable[[Node], dict[str, float]]
    metadata: Callable[[Node], dict[str, object]] = lambda _: {}
    has_gaps_of_chunks: bool = False

    def run(self, document: Node) -> Run:
        tables = layout(self.name)
        cells = tables.cells(document)
        n_done = document["completed"].number()
        cells = join_cells(
            cells,
            load_cells(document["max_concurrency"].number(), _rate(document["request_rate"])),
            _engine_cells(document),
            self.cells(document),
            self.counts(document),
        )
        place, line, metadata = document.place, document.line, self.metadata(document)
        if not n_done > 0:
            return Run(place, line, fill_blanks(cells | {"status": "failed"}, metadata, place, line), {})
        if _has_arrays(document):
            arrays = _request_arrays(document)
            statistics = statistics_of(arrays)
            cells |= length_cells(*(arrays[f"n_{one}_token_at_statistic"] for one in ("input", "output")))
        else:
            statistics = tables.statistics(document)
            totals = {part: document[f"total_{part}_tokens"].number() for part in ("input", "output")}
            cells |= {f"n_{part}_token": total / n_done for part, total in totals.items()}
        if self.has_gaps_of_chunks and "n_speculative_token" in cells:
            statistics = {name: outcomes | {"itl_s": math.nan} for name, outcomes in statistics.items()}
            cells = join_cells(cells, {"note": "gaps between chunks of several tokens are left out"})
        filled = fill_blanks(cells, metadata, place, line)
        return tables.run(document, filled, statistics)


def _engine_cells(document: Node) -> dict[str, Any]:
    engine = _ENGINES.get(document["backend"].text().lower())
    return {"engine": engine} if engine else {}


def _rate(node: Node) -> float:
    if node.is_blank or node.value in ("inf", "Infinity", math.inf):
        return math.nan
    try:
        rate = float(node.value) if isinstance(node.value, str) else node.number()
    except ValueError:
        rate = math.nan
    if not 0 < rate < math.inf:
        raise node.error(f"must be a rate above 0 or inf, got {str(node.value)[:60]!r}")
    return rate


def _vllm_cells(document: Node) -> dict[str, Any]:
    n_step, n_drafted, length, percent = (
        document[f"spec_decode_{name}"].number()
        for name in ("num_drafts", "draft_tokens", "acceptance_length", "acceptance_rate")
    )
    n_draft = n_drafted / n_step if n_step > 0 else math.nan
    return join_cells(
        model_cells(document["model_id"].text()),
        {"date": document["date"].day()},
        speculation_cells("", n_draft, length, percent / 100),
    )


def _vllm_counts(document: Node) -> dict[str, float]:
    n_done, n_failed = document["completed"].number(), document["failed"].number()
    if math.isnan(n_failed):
        n_failed = max(document["num_prompts"].number() - n_done, 0.0)
    return {"n_request": n_done + n_failed, "n_failed": n_failed}


def _vllm_metadata(document: Node) -> dict[str, object]:
    metadata: dict[str, object] = {}
    for key in document.keys:
        node = document[key]
        if key in OVERRIDABLE_COLUMNS and key not in _OWN_KEYS and node.value not in (None, ""):
            try:
                metadata[key] = parse_cell(key, node.text() if isinstance(node.value, str) else node.value)
            except InputError as error:
                raise node.error(error.problem) from error
    return metadata


def _sglang_cells(document: Node) -> dict[str, Any]:
    length = document["accept_length"].number()
    n_prompt, n_cached = (document["cache_report"][f"total_{name}_tokens"].number() for name in ("prompt", "cached"))
    cache = {"prefix_cache_ratio": n_cached / n_prompt} if n_prompt > 0 and n_cached <= n_prompt else {}
    server = document["server_info"]
    if not isinstance(server.value, dict) or server["model_path"].is_blank:  # of another server
        return cache | speculation_cells(length=length)
    kind = NAMES.get(server["speculative_algorithm"].text().lower(), "")
    sizes = layout("sglang_bench").read(document, "server")
    is_uncached = server["disable_radix_cache"].value
    return join_cells(
        {"engine": "sglang", "engine_version": server["version"].text(), **sizes},
        model_cells(server["model_path"].text()),
        {"prefix_caching": _SWITCH[not is_uncached]} if isinstance(is_uncached, bool) else {},
        cache,
        speculation_cells(kind, server["speculative_num_steps"].number(), length),
    )


def _sglang_counts(document: Node) -> dict[str, float]:
    n_done = document["completed"].number()
    n_sent = len(document["input_lens"].items()) if _has_arrays(document) else 0
    if not n_done > 0:
        return {}
    return {"n_request": n_sent, "n_failed": n_sent - n_done} if n_sent >= n_done else {"n_request": n_done}


_VLLM: Final = _Client(
    "vllm_bench",
    cells=_vllm_cells,
    counts=_vllm_counts,
    metadata=_vllm_metadata,
    has_gaps_of_chunks=True,
)
_SGLANG: Final = _Client(
    "sglang_bench",
    cells=_sglang_cells,
    counts=_sglang_counts,
)


def _vllm_runs(source: Source) -> Iterator[Run]:
    first, _, rest = source.start().lstrip().partition(b"\n")
    is_line = first.rstrip().endswith(b"}") and rest.lstrip().startswith(b"{")  # as --append-result writes

    def read(one: Source) -> Iterable[Node]:
        return iter_documents(one, _without_texts) if is_line else [read_document(one, _without_texts)]

    yield from map(_VLLM.run, documents_of(source, ["vllm_bench_serve"], read))


def _sglang_runs(source: Source) -> Iterator[Run]:
    read = documents_of(source, ["sglang_bench_serving"], lambda one: iter_documents(one, _without_texts))
    yield from map(_SGLANG.run, read)


def _without_texts(members: dict[str, Any]) -> dict[str, Any]:
    members.pop("generated_texts", None)
    members.pop("internal_states", None)
    return members


VLLM: Final = Format("vllm_bench", _vllm_runs)
SGLANG: Final = Format("sglang_bench", _sglang_runs)
"""Entries of the registry."""

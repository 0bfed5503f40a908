"""Arrays over requests of a detailed result of vLLM's or SGLang's client."""

from __future__ import annotations

from array import array
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from roofcast.data.importers.json_input import Floats, Node

ARRAY_KEYS: Final = ("input_lens", "output_lens", "ttfts", "itls")
"""Arrays over requests of a detailed file, in seconds and tokens."""

Mask = NDArray[np.bool_]


def has_arrays(document: Node) -> bool:
    """Return whether the file is detailed: it holds arrays over requests."""
    return all(document[key].is_array for key in ARRAY_KEYS)


def request_arrays(document: Node) -> dict[str, Floats]:
    """Return the samples of the completed requests by column; ITL pools the gaps of all requests.

    Failed requests, which have an error or no output, are skipped. E2E is read from ``latencies``, or else is the sum
    of TTFT and gaps.

    Raises
    ------
    SchemaError
        If the arrays differ in length or hold no completed request; names the array.
    """
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
    return {
        "ttft_s": ttft_s,
        "nttft_s_per_token": ttft_s[n_input > 0] / n_input[n_input > 0],
        "itl_s": gaps_s,
        "tpot_s": (e2e_s[is_long] - ttft_s[is_long]) / (n_output[is_long] - 1),
        "e2e_s": e2e_s,
        "n_input_token_at_statistic": n_input,
        "n_output_token_at_statistic": n_output,
    }


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

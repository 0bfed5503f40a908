"""Rigs, engines, precisions and speculation in the texts of Club 3090's table, and its two speeds a row."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from builders.published import Cells, Record
from builders.recipe import Row

MODELS: Final = (
    ("qwen3.6-35b-a3b|qwen-agentworld-35b", "Qwen/Qwen3.6-35B-A3B"),
    ("gemma-4-26b-a4b", "google/gemma-4-26B-A4B-it"),
    ("nemotron-75b", "nvidia/NVIDIA-Nemotron-Labs-3-Puzzle-75B-A9B"),
    ("/qwen3.6-27b-nvfp4|^qwen3.6-27b", "Qwen/Qwen3.6-27B"),
    ("^qwen3.8-27b", "Qwen/Qwen3.8-27B"),
    ("^gemma 4 31b", "google/gemma-4-31B-it"),
)
"""Model by the row's first cell, else by a heading."""

ENGINES: Final = (
    ("ik-llama", "ik_llama.cpp"), ("beellama", "beellama.cpp"), ("llama.?cpp|llama-cpp", "llama.cpp"), ("", "vllm"),
)  # fmt: skip
PRECISIONS: Final = (
    (r"q[56]_?k|q[56]kp|q5_k_s|q5_k_xl", ""), ("nvfp4", "fp4"), (r"fp8 wts|fp8 weights|dual-max|multi-max", "fp8"),
    ("w8a8|q8_0|q8kxl", "int8"), ("int4|awq|w4a16|w4a8|q4_k|iq4|apex-compact", "int4"),
)  # fmt: skip
"""Weight precision by the first cell and the quantisation; five and six bits are none of the table's."""

INT4_HEADINGS: Final = ("Qwen3.6-27B", "Gemma 4 31B")
"""Headings whose vLLM composes have INT4 weights of AutoRound unless they say otherwise."""

LENGTHS: Final = {"narr": 1000, "code": 800}
"""Largest number of output tokens by prompt, which the answers fill."""

N_NOTE: Final = 700
"""Characters of the notes that are of the row itself; comparisons with others follow."""

_OFF: Final = r"no[- ]?mtp|no[- ]spec|mtp[- ]off|spec[- ]off|no drafter"
_MTP: Final = r"\bmtp (?:n=\d|al\b|accept|live|active)|mtp accept-len"


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield the rows with speeds, and malformed ones."""
    for record in published:
        columns = record.columns
        speeds = next((text for name, text in columns.items() if re.search("Narr.*TPS", name)), "")
        if not columns:
            yield record.having(is_malformed=True)
        elif speeds:
            yield record.having(**_described(record.cells, next(iter(columns.values())), _plain(speeds), speeds))


def rows(cells: Cells, _common: Row) -> list[Row]:
    """Return two rows, of an essay and of a program."""
    runs = zip(LENGTHS.values(), cells["speeds"], strict=True)
    return [{"n_output_token": n, "tpot_s": 1 / speed, **cells["speculation"]} for n, speed in runs]


def _described(cells: Cells, first: str, plain: str, speeds: str) -> dict[str, Any]:
    compose, rig, headings = _plain(first), _plain(cells.get("Rig", "")), cells["@headings"]
    notes = _plain(cells.get("Notes", ""))[:N_NOTE]
    quant = cells.get("Quant", "")
    gpus = set(re.findall(r"(\d)\u00d7 (?:RTX )?(\d{4})\b", rig))
    handle = re.search(r"@([\w.-]+)", rig)
    is_one = len(gpus) == 1 and handle is not None and not _is_mixed(rig)
    n_rig, gpu = gpus.pop() if is_one else ("1", "")
    engine = _engine(compose, headings)
    n = min(int(n_rig), _n_accelerator(compose, headings, int(n_rig)))
    return {
        "compose": compose, "rig": rig, "gpu": gpu, "n": n, "engine": engine,
        "owner": handle[1].lower() if is_one and handle else "", "speeds": stream_speeds(plain),
        "model": _model(compose, headings), "precision": _precision(f"{compose} {_plain(quant)}", engine, headings),
        "speculation": speculation_of(f"{compose} {quant}", notes), "power_limit": _power_limit(rig),
        "peer_to_peer": peer_to_peer_of(f"{rig} {compose}".lower()) if n > 1 else "",
        "KV": cells.get("KV", "").strip("* `"),
        "Date": cells.get("Date", ""), "speed_text": speeds[:40], "rig_text": rig[:60], "compose_text": compose[:60],
        "heading_text": " / ".join(headings[1:])[:60],
    }  # fmt: skip


def _plain(text: str) -> str:
    return text.replace("*", "").replace("`", "").strip()


def _model(compose: str, headings: Sequence[str]) -> str:
    texts = (compose, *headings[1:2])
    return next((name for pattern, name in MODELS for text in texts if re.search(pattern, text.lower())), "")


def _is_mixed(rig: str) -> bool:
    return bool(re.search(r"mixed(?! x\d)|A5000|5070|3090 Ti|V100|heterogeneous", rig, re.IGNORECASE))


def stream_speeds(text: str) -> tuple[float, float] | None:
    """Return the speeds of decoding, else those of the whole answer; None if there is no exact pair of one stream.

    Examples
    --------
    >>> stream_speeds("67.81 / 90.48 wall (decode 68.50 / 92.09, n=5)"), stream_speeds("~32 / ~33")
    ((68.5, 92.09), None)
    """
    pair = r"([\d.]+) / ([\d.]+)"
    match = re.search(rf"\(decode {pair}", text) or re.match(rf"{pair}(?! per-stream)", text)
    return (float(match[1]), float(match[2])) if match else None


def _precision(text: str, engine: str, headings: Sequence[str]) -> str:
    default = "int4" if engine == "vllm" and headings[1].startswith(INT4_HEADINGS) else ""
    return next((precision for pattern, precision in PRECISIONS if re.search(pattern, text.lower())), default)


def _engine(compose: str, headings: Sequence[str]) -> str:
    text = f"{compose} {'llama.cpp' if 'llama.cpp' in headings[-1] else ''}".lower()
    return next(engine for pattern, engine in ENGINES if re.search(pattern, text))


def speculation_of(compose: str, notes: str) -> Row | None:
    """Return the speculation that compose or notes state, of zero tokens if it is off; None if they state neither.

    Examples
    --------
    >>> speculation_of("dual.yml", "MTP n=3 accept-len 2.86"), speculation_of("dual.yml", "tested baseline")
    ({'speculation': 'mtp', 'n_speculative_token': 3.0}, None)
    """
    first, rest = compose.lower(), notes.lower()
    count = re.search(r"(?:mtp|dflash)[^.;|]{0,20}?\bn(?:_max)? ?= ?(\d+)", f"{first} | {rest}")
    n = {"n_speculative_token": float(count[1])} if count else {}
    if re.search("two-stage|ngram", first):
        return None
    if re.search(_OFF, first):
        return {"n_speculative_token": 0.0}
    if "dflash" in first:
        return {"speculation": "draft", **n}
    if "mtp" in first:
        return {"speculation": "mtp", **n}
    is_on = re.search(_MTP, rest) and not re.search(_OFF, rest)
    return {"speculation": "mtp", **n} if is_on else None


def _power_limit(rig: str) -> str:
    limits = set(re.findall(r"(\d{3}) ?W\b", rig))
    is_capped = len(limits) == 1 and not re.search(r"no power cap|uncapped|\d{3}/\d{3} ?W", rig)
    return limits.pop() if is_capped else ""


def _n_accelerator(compose: str, headings: Sequence[str], n_rig: int) -> int:
    match = re.search(r"TP=(\d)", compose)
    if match:
        return int(match[1])
    counts = {"multi4": 4, "quad": 4, "dual": 2, "single": 1}
    texts = (compose.lower(), headings[-1].lower())
    return next((n for text in texts for mark, n in counts.items() if mark in text), n_rig)


def peer_to_peer_of(text: str) -> str:
    """Return whether cards read each other's memory: over NVLink, or by a patched driver; blank if not stated.

    Examples
    --------
    >>> peer_to_peer_of("2x 3090 pcie, no nvlink"), peer_to_peer_of("2x 3090 nvlink"), peer_to_peer_of("2x 3090")
    ('off', 'on', '')
    """
    if re.search(r"nccl_p2p_disable=1|no-p2p|no nvlink/p2p", text):
        return "off"
    if re.search(r"patched p2p|pcie_p2p|p2p engaged|p2p transfer-verified|bar1-p2p", text):
        return "on"
    if re.search(r"no nvlink|pcie(?!.*(?:p2p|nvlink))", text):
        return "off"
    return "on" if "nvlink" in text else ""

"""Club 3090's benchmarks: one stream on community rigs of RTX 3090, 4090 and 5090, with speculation or without."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.campaign_builder import CampaignBuilder, Row
from builders.campaigns.markdown import MarkdownRow, read_markdown_rows

FILE: Final = Path("campaigns_2026_11") / "raw" / "club_3090" / "BENCHMARKS.md"

MODELS: Final = (
    ("qwen3.6-35b-a3b|qwen-agentworld-35b", "Qwen/Qwen3.6-35B-A3B"),
    ("gemma-4-26b-a4b", "google/gemma-4-26B-A4B-it"),
    ("nemotron-75b", "nvidia/NVIDIA-Nemotron-Labs-3-Puzzle-75B-A9B"),
    ("/qwen3.6-27b-nvfp4|^qwen3.6-27b", "Qwen/Qwen3.6-27B"),
    ("^qwen3.8-27b", "Qwen/Qwen3.8-27B"),
    ("^gemma 4 31b", "google/gemma-4-31B-it"),
)
"""Model by the row's first cell, else by a heading."""

ACCELERATORS: Final = {
    "3090": "nvidia-rtx-3090-24gb", "4090": "nvidia-rtx-4090-24gb", "5090": "nvidia-rtx-5090-32gb",
}  # fmt: skip
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

CACHES: Final = (
    ("fp8", "fp8"), ("int8", "int8"), ("bf16", "bf16"), ("fp16", "fp16"), ("q8_0", "int8"), ("q4_0", "int4"),
)  # fmt: skip
LENGTHS: Final = {"narr": 1000, "code": 800}
"""Largest number of output tokens by prompt, which the answers fill."""

N_INPUT_TOKEN: Final = 30
"""Tokens of a prompt of one sentence in a chat template, about."""

N_NOTE: Final = 700
"""Characters of the notes that are of the row itself; comparisons with others follow."""

_OFF: Final = r"no[- ]?mtp|no[- ]spec|mtp[- ]off|spec[- ]off|no drafter"
_MTP: Final = r"\bmtp (?:n=\d|al\b|accept|live|active)|mtp accept-len"


def build_club_3090(root: Path) -> BuildResult:
    """Build the campaign from its page under `root`: two rows a published row, an essay and a program.

    Raises
    ------
    SchemaError
        If the page is missing.
    """
    builder = CampaignBuilder("club_3090", accelerators=ACCELERATORS)
    for row in read_markdown_rows(root / FILE, is_strict=False):
        speeds = next((text for name, text in row.cells.items() if re.search("Narr.*TPS", name)), "")
        if not row.cells:
            builder.reject(row.reference, "malformed", "another number of cells than the header has")
        elif speeds:
            _add(builder, row, speeds)
    return builder.build()


def _add(builder: CampaignBuilder, row: MarkdownRow, speeds: str) -> None:
    compose, rig = _plain(next(iter(row.cells.values()))), _plain(row.cells.get("Rig", ""))
    notes = _plain(row.cells.get("Notes", ""))[:N_NOTE]
    gpus = set(re.findall(r"(\d)\u00d7 (?:RTX )?(\d{4})\b", rig))
    handle = re.search(r"@([\w.-]+)", rig)
    model = _model(row, compose)
    tokens_per_s = _tokens_per_s(_plain(speeds))
    precision = _precision(row, compose)
    speculation = _speculation(compose + " " + row.cells.get("Quant", ""), notes)
    problem = next(
        (
            (rule, detail)
            for rule, detail, is_wrong in (
                ("no_outcome", speeds[:40], tokens_per_s is None),
                ("unknown_model", " / ".join(row.headings[1:])[:60], not model),
                ("rig", rig[:60], len(gpus) != 1 or handle is None or _is_mixed(rig)),
                ("unknown_precision", compose[:60], not precision),
                ("speculation", "neither on nor off is stated", speculation is None),
            )
            if is_wrong
        ),
        None,
    )
    if problem is not None:
        builder.reject(row.reference, *problem)
        return
    assert tokens_per_s is not None and speculation is not None and handle is not None  # noqa: S101, PT018 (rules above)
    n_rig, gpu = gpus.pop()
    common = _deployment(row, compose, rig, int(n_rig)) | speculation | {
        "model": model, "accelerator": gpu, "weight_precision": precision,
        "stack": f"club_3090/{handle[1].lower()}",
    }  # fmt: skip
    runs = zip(LENGTHS.values(), tokens_per_s, strict=True)
    builder.add(row.reference, [{**common, "n_output_token": n, "tpot_s": 1 / speed} for n, speed in runs])


def _plain(text: str) -> str:
    return text.replace("*", "").replace("`", "").strip()


def _model(row: MarkdownRow, compose: str) -> str:
    texts = (compose, *row.headings[1:2])
    return next((name for pattern, name in MODELS for text in texts if re.search(pattern, text.lower())), "")


def _is_mixed(rig: str) -> bool:
    return bool(re.search(r"mixed(?! x\d)|A5000|5070|3090 Ti|V100|heterogeneous", rig, re.IGNORECASE))


def _tokens_per_s(text: str) -> tuple[float, float] | None:
    """Return the speeds of decoding, else those of the whole answer; None if there is no exact pair of one stream.

    Examples
    --------
    >>> _tokens_per_s("67.81 / 90.48 wall (decode 68.50 / 92.09, n=5)"), _tokens_per_s("~32 / ~33")
    ((68.5, 92.09), None)
    """
    pair = r"([\d.]+) / ([\d.]+)"
    match = re.search(rf"\(decode {pair}", text) or re.match(rf"{pair}(?! per-stream)", text)
    return (float(match[1]), float(match[2])) if match else None


def _precision(row: MarkdownRow, compose: str) -> str:
    text = f"{compose} {_plain(row.cells.get('Quant', ''))}".lower()
    default = "int4" if _engine(row, compose) == "vllm" and row.headings[1].startswith(INT4_HEADINGS) else ""
    return next((precision for pattern, precision in PRECISIONS if re.search(pattern, text)), default)


def _engine(row: MarkdownRow, compose: str) -> str:
    text = f"{compose} {'llama.cpp' if 'llama.cpp' in row.headings[-1] else ''}".lower()
    return next(engine for pattern, engine in ENGINES if re.search(pattern, text))


def _speculation(compose: str, notes: str) -> Row | None:
    """Return the speculation that compose or notes state, of zero tokens if it is off; None if they state neither.

    Examples
    --------
    >>> _speculation("dual.yml", "MTP n=3 accept-len 2.86"), _speculation("dual.yml", "tested baseline")
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


def _deployment(row: MarkdownRow, compose: str, rig: str, n_rig: int) -> Row:
    engine = _engine(row, compose)
    n = min(n_rig, _n_accelerator(row, compose, n_rig))
    limits = set(re.findall(r"(\d{3}) ?W\b", rig))
    version = re.search(r"v(0\.\d+\.\d+)", f"{compose} {rig}")
    sequences = re.search(r"max[-_]num[-_]seqs ?= ?(\d+)", compose, re.IGNORECASE)
    context = re.search(r"MAX_MODEL_LEN=(\d+)", compose)
    date = re.match(r"\d{4}-\d\d-\d\d", row.cells.get("Date", ""))
    cache = row.cells.get("KV", "").strip("* `").lower()
    is_capped = len(limits) == 1 and not re.search(r"no power cap|uncapped|\d{3}/\d{3} ?W", rig)
    return {
        "n_accelerator": n, "n_node": 1, "tp": n if engine == "vllm" else math.nan, "engine": engine,
        "engine_version": version[1] if version else "",
        "kv_precision": next((precision for start, precision in CACHES if cache.startswith(start)), ""),
        "max_num_seqs": float(sequences[1]) if sequences else math.nan,
        "max_context_token": float(context[1]) if context else math.nan,
        "power_limit_w": float(limits.pop()) if is_capped else math.nan,
        "peer_to_peer": _peer_to_peer(f"{rig} {compose}".lower()) if n > 1 else "",
        "n_input_token": N_INPUT_TOKEN, "load": "closed_loop", "concurrency": 1, "statistic": "mean",
        "date": date[0] if date else "",
    }  # fmt: skip


def _n_accelerator(row: MarkdownRow, compose: str, n_rig: int) -> int:
    match = re.search(r"TP=(\d)", compose)
    if match:
        return int(match[1])
    counts = {"multi4": 4, "quad": 4, "dual": 2, "single": 1}
    texts = (compose.lower(), row.headings[-1].lower())
    return next((n for text in texts for mark, n in counts.items() if mark in text), n_rig)


def _peer_to_peer(text: str) -> str:
    """Return whether cards read each other's memory: over NVLink, or by a patched driver; blank if not stated.

    Examples
    --------
    >>> _peer_to_peer("2x 3090 pcie, no nvlink"), _peer_to_peer("2x 3090 nvlink"), _peer_to_peer("2x 3090")
    ('off', 'on', '')
    """
    if re.search(r"nccl_p2p_disable=1|no-p2p|no nvlink/p2p", text):
        return "off"
    if re.search(r"patched p2p|pcie_p2p|p2p engaged|p2p transfer-verified|bar1-p2p", text):
        return "on"
    if re.search(r"no nvlink|pcie(?!.*(?:p2p|nvlink))", text):
        return "off"
    return "on" if "nvlink" in text else ""

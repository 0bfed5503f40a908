"""Conversion of a collected row to a catalogue row, with sourced repairs and reasons to skip a row."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from roofcast.data.prices.offer_file import usual_market
from roofcast.data.specs import Attention

Row = dict[str, str]


class SkippedRow(Exception):  # noqa: N818
    """Raised when a row is skipped; the message is the reason."""


FACTS: Final[Mapping[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "collected.toml").read_text(encoding="utf-8")
)
"""Columns of the collected tables, and corrections with their sources."""

MODEL_COLUMNS: Final[Mapping[str, str]] = FACTS["columns"]["models"]

OWN_COLUMNS: Final = ("n_param_lookup", "n_sparse_layer", "sparse_top_k", "kv_compression")
"""Columns of ``models.csv`` that are missing in the collected table."""

_NEEDED: Final = (
    "n_layer", "hidden_size", "n_head", "n_kv_head", "head_dim", "vocab_size", "n_param", "n_param_active",
)  # fmt: skip

_SAME: Final = 1e-3


def convert_model(raw: Row) -> Row:
    """Return the row of ``models.csv``. Raises `SkippedRow` if a width or a count is not known."""
    raw = raw | FACTS["models"].get(raw["id"], {})
    row = {column: raw[name].strip() for column, name in MODEL_COLUMNS.items()}
    missing = next((name for name in _NEEDED if not row[name]), "")
    if missing or not (row["intermediate_size"] or row["moe_intermediate_size"]):
        raise SkippedRow(f"{missing or 'intermediate_size'} not known")
    row["n_param_difference"] = _difference(raw)
    row |= {column: raw.get(column, "") for column in OWN_COLUMNS}
    row["attention"] = _attention(raw)
    row["weight_precision"] = _checkpoint_precision(raw)
    if len(row["released"]) != len("2025-12-31"):
        row["released"] = ""
    if row["sliding_window"] and not row["n_sliding_layer"]:
        row["n_sliding_layer"] = row["n_layer"]
    if row["n_sliding_layer"] in {"", "0"}:
        row["n_sliding_layer"] = row["sliding_window"] = ""
    if row["n_expert"]:
        _complete_experts(raw, row)
    elif raw["attention"] == "mamba-hybrid":
        _make_blocks(raw, row)
    return row


def _difference(raw: Row) -> str:
    published = int(raw["n_params_published"] or 0)
    if not published or abs(int(raw["n_params_total"]) / published - 1) <= _SAME:
        return ""
    said = " ".join([raw["n_params_published_source"], raw.get("explained_extra_what", ""), raw.get("status", "")])
    return next((reason for words, reason in FACTS["differences"].items() if words in said), "")


def _attention(raw: Row) -> str:
    known: tuple[Attention, ...] = ("mha", "gqa", "mqa", "mla")
    if raw["attention"] in known:
        return raw["attention"]
    return "mla" if raw["kv_lora_rank"] else "gqa"


def _checkpoint_precision(raw: Row) -> str:
    if raw["lineage"] == "deepseek-v3-671b":
        return "fp8"
    stored = FACTS["precisions"]
    noted = (p for text, p in stored["note"].items() if text in raw["note"])
    return str(next(noted, stored["dtype"][raw["torch_dtype"]]))


def _complete_experts(raw: Row, row: Row) -> None:
    n_shared = int(row["n_shared_expert"] or 0)
    if n_shared and not row["shared_expert_intermediate_size"]:
        row["shared_expert_intermediate_size"] = str(n_shared * int(row["moe_intermediate_size"]))
    if raw["attention"] == "mamba-hybrid":
        n_moe = int(raw["n_linear_attention_layers"])
        row["n_dense_layer"] = str(int(row["n_layer"]) - n_moe)
        _make_blocks(raw, row)
    if latent := FACTS["latent"].get(row["lineage"]):
        row["moe_intermediate_size"] = latent["width"]
        width = raw["moe_intermediate_size"]
        note = f"experts of width {width} on a latent of {latent['input']}, given as equal weights"
        row["note"] = "; ".join(filter(None, [row["note"], note]))


def _make_blocks(raw: Row, row: Row) -> None:
    row["n_linear_layer"] = str(int(row["n_layer"]) - int(raw["n_full_attention_layers"]))


def convert_offer(raw: Row) -> Row:
    """Return the row of ``offers.csv``.

    Raises `SkippedRow` if it has no date, no licence or no accelerator, is an ask or a benchmark's price, or its term
    is a guess.
    """
    row = {column: raw[name].strip() for column, name in FACTS["columns"]["offers"].items()}
    reasons = {
        "processor only": row["n_accelerator"] == "0",
        "no date": not row["as_of"],
        "no licence": not row["licence"] or "no LICENSE" in row["licence"] or row["licence"].startswith("none"),
        "price list of a benchmark": "llm-pilot" in row["provider"].casefold(),
        "ask on a market": row["provider"].startswith("vast ("),
        "term of the reservation inferred": "aws-neuron-sdk" in row["source"],
    }
    reason = next((name for name, holds in reasons.items() if holds), "")
    if reason:
        raise SkippedRow(reason)
    row["provider"] = row["provider"].partition(" (")[0]
    row["region"] = row["region"] or "global"
    row["market"] = usual_market(row["provider"])
    return row


def name_key(name: str) -> str:
    """Return the name as the catalogue compares it: without case, with blanks and underscores as hyphens."""
    return re.sub(r"[\s_]+", "-", name.casefold())


def offer_key(row: Row) -> tuple[str, ...]:
    """Return the cells that an offer has a price for."""
    return tuple(row[c] for c in ("provider", "region", "instance_type", "pricing"))


def newest(rows: Sequence[Row]) -> list[Row]:
    """Return one offer of each key, in their order: the newest; of one date, the cheapest."""
    ordered = sorted(rows, key=lambda r: (r["as_of"], -float(r["price_usd_per_h"])))
    best = {offer_key(row): row for row in ordered}
    return [best[k] for k in sorted(best)]

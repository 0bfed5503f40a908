"""trtllm-bench of Llama 3.1 70B in FP8 on eight H100: 63 pairs of input and output lengths."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.campaign_builder import CampaignBuilder, Row
from roofcast.data.errors import SchemaError
from roofcast.data.units import s_from_ms

RAW: Final = Path("campaigns_2026_11") / "raw" / "etched_trtllm_llama70b" / "results"
_FIELD: Final = re.compile(r"^([A-Z][\w /()-]+):\s+(.+?)%?\s*$", re.MULTILINE)
_DAY: Final = re.compile(r"\[(\d\d)/(\d\d)/(\d{4})-")


def build_etched_trtllm_llama70b(root: Path) -> BuildResult:
    """Build the campaign from its logs under `root`.

    Raises
    ------
    SchemaError
        If there are none.
    """
    files = sorted((root / RAW).glob("result_*.txt"))
    if not files:
        raise SchemaError("", "no log", RAW.name)
    builder = CampaignBuilder("etched_trtllm_llama70b", stack="etched")
    for file in files:
        builder.add(file.name, _rows(file.read_text(encoding="utf-8")))
    return builder.build()


def _rows(log: str) -> list[Row]:
    """Return the row of a log; none if it ended without a report."""
    fields = dict(_FIELD.findall(log))
    day = _DAY.search(log)
    if "Request Throughput (req/sec)" not in fields or day is None:
        return []
    n_request = float(fields["Number of requests"])
    request_per_s = float(fields["Request Throughput (req/sec)"])
    n_input, n_output = (float(fields[f"Average {name} Length (tokens)"]) for name in ("Input", "Output"))
    return [
        {
            "model": fields["Model"], "accelerator": "nvidia-h100-sxm-80gb", "n_accelerator": 8, "n_node": 1,
            "tp": int(fields["TP Size"]), "pp": int(fields["PP Size"]), "dp": 1,
            "engine": "trtllm", "engine_version": fields["TensorRT-LLM Version"],
            "weight_precision": fields["Quantization"].lower(), "kv_precision": fields["KV Cache Dtype"].lower(),
            "max_num_seqs": float(fields["Max Runtime Batch Size"]),
            "chunk_size_token": float(fields["Max Runtime Tokens"]),
            "max_context_token": float(fields["Max Sequence Length"]),
            "n_input_token": n_input, "n_output_token": n_output, "length_variation": 0,
            "load": "offline", "concurrency": n_request, "n_request": n_request, "statistic": "mean",
            "duration_s": s_from_ms(float(fields["Total Latency (ms)"])),
            "output_throughput_token_per_s": float(fields["Token Throughput (tokens/sec)"]),
            "request_throughput_per_s": request_per_s,
            "date": f"{day[3]}-{day[1]}-{day[2]}", "software": "trtllm-bench throughput",
        }
    ]  # fmt: skip

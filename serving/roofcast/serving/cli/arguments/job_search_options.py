"""Options of a recommendation for a training job, a field of its request each."""

from __future__ import annotations

from typing import Final

from roofcast.data.measurements.target import TRAINING
from roofcast.serving.cli.arguments.completion import (
    complete_column,
    complete_names,
)
from roofcast.serving.cli.arguments.offer_options import MODEL_OPTION, OFFER_OPTIONS
from roofcast.serving.cli.arguments.options import Option
from roofcast.serving.cli.text.amounts import parse_amount

Number = float | None
Names = list[str] | None

SEARCH_OPTIONS: Final = {
    "model": MODEL_OPTION,
    "n_token": Option(
        "Tokens of the data set, such as 20000000, 2e7 or 20m.",
        float,
        metavar="NUMBER",
        names=("--n-token", "--tokens"),
        parse=parse_amount,
    ),
    "n_epoch": Option("Passes over the data set; 1 by default.", float | None, None, names=("--n-epoch", "--epochs")),
    "method": Option(
        "pretrain, full, lora, qlora or adapter.",
        str,
        "full",
        show_default=True,
        complete=complete_column("method", TRAINING),
    ),
    "n_token_per_sequence": Option(
        "Tokens of a packed sequence; 2048 by default.",
        int | None,
        None,
        names=("--n-token-per-sequence", "--seq-len"),
    ),
    "n_global_batch_sequence": Option(
        "Sequences of an optimizer step; 128 by default, of pretraining 4 million tokens.",
        int | None,
        None,
        names=("--n-global-batch-sequence", "--batch"),
    ),
    "deadline_h": Option("Most hours of the run.", Number, None, names=("--deadline-h", "--deadline")),
    "budget_usd": Option("Most US dollars of the run.", Number, None, names=("--budget-usd", "--budget")),
    "adapter": Option(
        "lora-fa, bottleneck or prompt-tuning.",
        str | None,
        None,
        complete=complete_names("lora-fa", "bottleneck", "prompt-tuning"),
    ),
    "adapter_rank": Option(
        "Rank of LoRA, 16 by default; width or virtual tokens of other adapters.",
        int | None,
        None,
        names=("--adapter-rank", "--rank"),
    ),
    "adapter_targets": Option(
        "A projection that adapters change: q, k, v, o, gate, up or down; repeatable.", Names, None
    ),
    "compute_precision": Option(
        "Precision of the products, such as bf16 or fp8.",
        str | None,
        None,
        complete=complete_column("compute_precision", TRAINING),
    ),
    "framework": Option(
        "torchtitan, megatron-lm or transformers; repeatable.",
        Names,
        None,
        complete=complete_names("torchtitan", "megatron-lm", "transformers"),
    ),
    **OFFER_OPTIONS,
    "max_usd_per_h": Option("Maximum USD per hour.", Number, None),
    "max_nodes": Option("Maximum number of nodes.", int, 8, show_default=True, names=("--max-nodes", "--nodes")),
    "confidence": Option("Minimum probability that the run fits its limits.", float, 0.8, show_default=True),
    "level": Option("Probability of the intervals.", float, 0.8, show_default=True),
    "n_entry": Option("Maximum number of entries.", int, 10, show_default=True, names=("--n-entry", "--top")),
}
"""Options of the request; `OPTION_FIELDS` of the request model names the field of each."""

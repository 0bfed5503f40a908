"""Models of the training campaigns outside the collected tables, with source and shape of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from roofcast.data.model_config.parameters.parameters import count_parameters, shape_from_spec
from roofcast.data.specs import ModelSpec

_PAPER: Final = "https://arxiv.org/abs/"
_HUB: Final = "https://huggingface.co/{}/blob/main/config.json"
_NEURON: Final = "https://github.com/aws-neuron/neuronx-nemo-megatron: nemo/examples/nlp/language_modeling/{}.sh"
_LAUNCHER: Final = "https://github.com/NVIDIA/NeMo-Framework-Launcher: launcher_scripts/conf/training/{}.yaml"
_MAXTEXT: Final = "https://github.com/AI-Hypercomputer/maxtext: MaxText/configs/{}.sh"
_NO_CHECKPOINT: Final = "plain shape of a benchmark, no checkpoint"
_ENCODER: Final = "encoder only: its layers, which see both ways, count as n_layer"
_SCALE: Final = (
    "synthetic benchmark model, no checkpoint; heads of 256, plain MLP and tied embedding, as its size says"
)
_SENTINELS: Final = "learned positions, tied embedding; vocabulary with 100 sentinels, padded to a multiple of 128"

OTHERS: Final[tuple[dict[str, object], ...]] = (
    {
        "id": "google-bert/bert-large-uncased", "lineage": "bert-large", "family": "BERT",
        "model_type": "bert", "n_layer": 24, "hidden_size": 1024, "intermediate_size": 4096, "n_head": 16,
        "vocab_size": 30522, "tie_word_embeddings": True, "max_context_token": 512, "weight_precision": "fp32",
        "n_param": 335_141_888,
        "source": f"{_PAPER}1810.04805, section 3, and the vocabulary of its release", "note": _ENCODER,
    },
    {
        "id": "FacebookAI/roberta-large", "family": "RoBERTa", "model_type": "roberta", "n_layer": 24,
        "hidden_size": 1024, "intermediate_size": 4096, "n_head": 16, "vocab_size": 50265,
        "tie_word_embeddings": True, "max_context_token": 514, "weight_precision": "fp32", "n_param": 355_359_744,
        "source": f"{_PAPER}1907.11692, table 9, and {_HUB.format('FacebookAI/roberta-large')}", "note": _ENCODER,
    },
    {
        "id": "nvidia/bert-4b", "family": "BERT", "model_type": "bert", "n_layer": 48, "hidden_size": 2560,
        "intermediate_size": 10240, "n_head": 32, "vocab_size": 30592, "tie_word_embeddings": True,
        "max_context_token": 512, "source": _LAUNCHER.format("bert/4b"),
        "note": f"{_ENCODER}; vocabulary of 30,522 padded to a multiple of 128",
    },
    {
        "id": "nvidia/gpt3-126m", "family": "GPT-3", "model_type": "gpt", "n_layer": 12, "hidden_size": 768,
        "intermediate_size": 3072, "n_head": 12, "vocab_size": 50257, "tie_word_embeddings": True,
        "max_context_token": 2048, "n_param": 125_226_240,
        "source": f"{_PAPER}2005.14165, table 2.1, GPT-3 Small; NVIDIA counts it as 126M", "note": _NO_CHECKPOINT,
    },
    *(
        {
            "id": f"aws-neuron/gpt3-{size}", "family": "GPT-3", "model_type": "gpt", "n_layer": n_layer,
            "hidden_size": width, "intermediate_size": 4 * width, "n_head": n_head, "vocab_size": 50304,
            "tie_word_embeddings": True, "max_context_token": 2048, "source": _NEURON.format(f"gpt_{size}"),
            "note": f"{_NO_CHECKPOINT}; GPT-2's vocabulary padded to a multiple of 128",
        }
        for size, n_layer, width, n_head in (("6.7b", 32, 4096, 32), ("23b", 28, 8192, 64), ("46b", 56, 8192, 64))
    ),
    *(
        {
            "id": f"nvidia/{kind}-{size}", "family": "T5", "model_type": "t5", "n_layer": n_layer,
            "n_encoder_layer": n_layer, "hidden_size": width, "intermediate_size": mlp, "mlp_gated": True,
            "n_head": n_head, "head_dim": 64, "vocab_size": {"t5": 29_184, "mt5": 250_112}[kind],
            "tie_word_embeddings": True, "max_context_token": 512, "source": _LAUNCHER.format(f"{kind}/{size}"),
            "note": _SENTINELS,
        }
        for kind, size, n_layer, width, mlp, n_head in (
            ("t5", "220m", 12, 768, 2048, 12), ("t5", "3b", 24, 2048, 5120, 32), ("mt5", "170m", 8, 512, 1024, 6),
            ("mt5", "390m", 12, 768, 2048, 12), ("mt5", "3b", 24, 2048, 5120, 32),
        )
    ),
    *(
        {
            "id": f"google/t5-v1_1-{size}", "family": "T5", "model_type": "t5", "n_layer": n_layer,
            "n_encoder_layer": n_layer, "hidden_size": width, "intermediate_size": mlp, "mlp_gated": True,
            "n_head": n_head, "head_dim": 64, "vocab_size": 32128, "max_context_token": 512,
            "weight_precision": "fp32", "source": _HUB.format(f"google/t5-v1_1-{size}"),
        }
        for size, n_layer, width, mlp, n_head in (("small", 8, 512, 1024, 6), ("large", 24, 1024, 2816, 16))
    ),
    {
        "id": "maxtext/default-16b", "lineage": "maxtext-default-16b", "family": "MaxText",
        "model_type": "maxtext-default", "n_layer": 32, "hidden_size": 4096, "intermediate_size": 28672,
        "mlp_gated": True, "n_head": 64, "head_dim": 128,
        "vocab_size": 32000, "n_param": 15_831_937_024,
        "source": _MAXTEXT.format("v5e/16b") + ", parameter scale 16",
        "note": "synthetic benchmark model, no checkpoint; widths by the same rule as its larger relatives",
    },
    *(
        {
            "id": f"maxtext/default-{size}", "lineage": f"maxtext-default-{size}", "family": "MaxText",
            "model_type": "maxtext-default", "n_layer": n_layer,
            "hidden_size": width, "intermediate_size": 4 * width, "n_head": n_head, "head_dim": 256,
            "vocab_size": 32000, "tie_word_embeddings": True, "max_context_token": 2048,
            "source": _MAXTEXT.format(f"v4/{size}"), "note": _SCALE,
        }
        for size, n_layer, width, n_head in (("22b", 48, 6144, 24), ("52b", 32, 12288, 32))
    ),
    {
        "id": "openai-community/gpt2-xl", "family": "GPT-2", "model_type": "gpt2", "n_layer": 48, "hidden_size": 1600,
        "intermediate_size": 6400, "n_head": 25, "vocab_size": 50257, "tie_word_embeddings": True,
        "max_context_token": 1024, "n_param": 1_557_611_200, "source": _HUB.format("openai-community/gpt2-xl"),
    },
    {
        "id": "zai-org/chatglm3-6b", "family": "ChatGLM3", "model_type": "chatglm", "n_layer": 28,
        "hidden_size": 4096, "intermediate_size": 13696, "mlp_gated": True, "n_head": 32, "n_kv_head": 2,
        "head_dim": 128, "attention": "gqa", "vocab_size": 65024, "max_context_token": 8192,
        "weight_precision": "fp16", "source": _HUB.format("zai-org/chatglm3-6b"),
    },
    {
        "id": "tiiuae/falcon-40b", "family": "Falcon", "model_type": "falcon", "n_layer": 60, "hidden_size": 8192,
        "intermediate_size": 32768, "n_head": 128, "n_kv_head": 8, "head_dim": 64, "attention": "gqa",
        "vocab_size": 65024, "tie_word_embeddings": True, "max_context_token": 2048,
        "source": _HUB.format("tiiuae/falcon-40b"),
    },
    {
        "id": "01-ai/Yi-34B-200K", "family": "Yi", "model_type": "llama", "n_layer": 60, "hidden_size": 7168,
        "intermediate_size": 20480, "mlp_gated": True, "n_head": 56, "n_kv_head": 8, "head_dim": 128,
        "attention": "gqa", "vocab_size": 64000, "max_context_token": 200_000,
        "source": _HUB.format("01-ai/Yi-34B-200K"),
    },
)  # fmt: skip
"""Defaults: head width from the hidden size, as many KV heads as heads, ungated MLP, parameters counted by shape."""


def other_spec(fields: dict[str, object]) -> ModelSpec:
    """Return the spec of a model in `OTHERS`; the parameter count defaults to that of its shape.

    Examples
    --------
    >>> other_spec(next(fields for fields in OTHERS if fields["id"] == "01-ai/Yi-34B-200K")).n_param
    34388917248
    """
    lineage = str(fields.get("lineage") or str(fields["id"]).rpartition("/")[2].casefold())
    n_head = int(str(fields["n_head"]))
    defaults: dict[str, object] = {
        "lineage": lineage, "fold_group": lineage, "mlp_gated": False, "n_kv_head": n_head,
        "head_dim": int(str(fields["hidden_size"])) // n_head, "n_param": 1, "n_param_active": 1,
    }  # fmt: skip
    spec = ModelSpec.parse(defaults | fields)
    n_param, n_param_active = count_parameters(shape_from_spec(spec))
    if "n_param" in fields:
        n_param = n_param_active = spec.n_param
    return spec.model_copy(update={"n_param": n_param, "n_param_active": n_param_active})


def with_kin(specs: Iterable[ModelSpec], known: Iterable[ModelSpec]) -> Iterator[ModelSpec]:
    """Yield the specs; a spec with the shape of a known or earlier model gets that model's fold group."""
    groups = {_shape(spec): spec.fold_group for spec in known}
    for spec in specs:
        yield spec.model_copy(update={"fold_group": groups.setdefault(_shape(spec), spec.fold_group)})


def _shape(spec: ModelSpec) -> tuple[int, ...]:
    widths = (spec.hidden_size, spec.intermediate_size, spec.n_head, spec.n_kv_head, spec.n_expert)
    return (spec.n_layer, spec.n_encoder_layer, *widths)

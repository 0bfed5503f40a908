"""Models of the sweeps and fine-tuning tables of 2024 to 2026, with source and shape of each."""

from __future__ import annotations

from typing import Final

_HUB: Final = "https://huggingface.co/{}/blob/main/config.json"
_NO_CHECKPOINT: Final = "plain shape of a benchmark, no checkpoint"
_RAPID: Final = "https://github.com/eyao600/Rapid-LLM: validation_scripts/huggingface_data/bench_final2_mod_add.csv"
_VTRAIN: Final = "https://github.com/VIA-Research/vTrain: data/ground_truth_{}.csv"
_NARAYANAN: Final = "https://arxiv.org/abs/2104.04473, table 1"
_ALPA: Final = "https://github.com/alpa-projects/alpa: osdi22_artifact"
_DLPERF: Final = "https://github.com/Oneflow-Inc/DLPerf: OneFlow/LanguageModeling/GPT/README.md"
_LIBAI: Final = "https://github.com/Oneflow-Inc/libai: docs/source/tutorials/get_started/Benchmark.md"
_KEMPNER: Final = "https://github.com/KempnerInstitute/KempnerForge: benchmarks"

Fields = dict[str, object]


def _llama(name: str, sizes: tuple[int, ...], *, is_tied: bool = False) -> Fields:
    n_layer, width, mlp, n_head, n_kv_head = sizes
    return {
        "id": f"nanotron/llama-{name}", "family": "Llama", "model_type": "llama", "n_layer": n_layer,
        "hidden_size": width, "intermediate_size": mlp, "mlp_gated": True, "n_head": n_head, "n_kv_head": n_kv_head,
        "attention": "mha" if n_head == n_kv_head else "gqa", "vocab_size": 131_072, "tie_word_embeddings": is_tied,
        "max_context_token": 4096, "source": _RAPID, "note": _NO_CHECKPOINT,
    }  # fmt: skip


def _gpt(name: str, sizes: tuple[int, int, int], vocab_size: int, source: str, **more: object) -> Fields:
    n_layer, width, n_head = sizes
    return {
        "id": name, "family": "GPT-3", "model_type": "gpt", "n_layer": n_layer, "hidden_size": width,
        "intermediate_size": 4 * width, "n_head": n_head, "vocab_size": vocab_size, "tie_word_embeddings": True,
        "max_context_token": 2048, "source": source, "note": _NO_CHECKPOINT,
    } | more  # fmt: skip


def _hub(name: str, family: str, sizes: tuple[int, ...], vocab_size: int, **more: object) -> Fields:
    n_layer, width, mlp, n_head, n_kv_head = sizes
    return {
        "id": name, "family": family, "model_type": "llama", "n_layer": n_layer, "hidden_size": width,
        "intermediate_size": mlp, "mlp_gated": True, "n_head": n_head, "n_kv_head": n_kv_head,
        "attention": "mha" if n_head == n_kv_head else "gqa", "vocab_size": vocab_size, "source": _HUB.format(name),
    } | more  # fmt: skip


def _kempner_moe(n_expert: int) -> Fields:
    return {
        "id": f"kempner/llama3-moe-{n_expert}x-2048", "lineage": "kempner-moe", "family": "Llama",
        "model_type": "mixtral", "n_layer": 24, "hidden_size": 2048, "intermediate_size": 0,
        "moe_intermediate_size": 7168, "mlp_gated": True, "n_head": 16, "n_kv_head": 4, "attention": "gqa",
        "vocab_size": 128_256, "max_context_token": 4096, "n_expert": n_expert, "n_expert_per_token": 2,
        "source": f"{_KEMPNER}/moe_packed/moe_packed_benchmark.md", "note": _NO_CHECKPOINT,
    }  # fmt: skip


_ASSUMED: Final = f"{_NO_CHECKPOINT}; vocabulary of Megatron-LM assumed"

SWEEP_MODELS: Final[tuple[Fields, ...]] = (
    _llama("1.34b", (16, 2048, 8192, 32, 32), is_tied=True), _llama("3.57b", (28, 3072, 8192, 32, 32), is_tied=True),
    _llama("8.86b", (32, 4096, 14336, 32, 32)), _llama("80b", (80, 8192, 28672, 64, 64)),
    _llama("469b", (126, 16384, 53248, 128, 128)), _llama("70.6b-gqa", (80, 8192, 28672, 64, 8)),
    *(
        _gpt(
            f"vtrain/gpt-{n_layer}l-h{width}", (n_layer, width, 16), 51_200, _VTRAIN.format("single"),
            lineage="vtrain-sweep", note=_ASSUMED,
        )
        for n_layer in (12, 16, 20, 24) for width in (1024, 2048)
    ),
    _gpt("nvidia/gpt-3.6b", (30, 3072, 32), 51_200, f"{_NARAYANAN}; {_VTRAIN.format('multi')}"),
    _gpt("nvidia/gpt-18.4b", (40, 6144, 48), 51_200, f"{_NARAYANAN}; {_VTRAIN.format('multi')}"),
    _gpt("nvidia/gpt-39.1b", (48, 8192, 64), 51_200, f"{_NARAYANAN}; {_VTRAIN.format('multi')}"),
    _gpt("nvidia/gpt-1.7b", (24, 2304, 24), 51_200, _NARAYANAN, lineage="dlperf-sweep"),
    *(
        _gpt(f"nvidia/gpt-{size}", shape, 51_200, _NARAYANAN)
        for size, shape in (
            ("7.5b", (36, 4096, 32)), ("76.1b", (60, 10240, 80)), ("145.6b", (80, 12288, 96)),
            ("310b", (96, 16384, 128)), ("1t", (128, 25600, 160)),
        )
    ),
    _gpt("nvidia/gpt3-22b", (48, 6144, 64), 51_200, "https://arxiv.org/abs/2205.05198, table 3"),
    _gpt("nvidia/mt-nlg-530b", (105, 20480, 128), 51_200, "https://arxiv.org/abs/2205.05198, table 3"),
    *(
        _gpt(f"alpa/gpt-{size}", sizes, 51_200, f"{_ALPA}; benchmark/alpa/suite_paper_manual_gpt.py")
        for size, sizes in (
            ("350M", (24, 1024, 16)), ("760M", (24, 1536, 16)), ("1.3B", (24, 2048, 32)), ("2.6B", (32, 2560, 32)),
            ("6.7B", (32, 4096, 32)), ("15B", (48, 5120, 40)), ("39B", (48, 8192, 64)),
        )
    ),
    *(
        _gpt(f"alpa/gpt-8l-h{width}", (8, width, n_head), 25_600, f"{_ALPA}/exp_intra_ablation.py", lineage="alpa-8l")
        for width, n_head in ((2048, 16), (3072, 24), (4096, 32), (5760, 40))
    ),
    *(
        _gpt(f"oneflow/gpt-{n_layer}l-h{width}", (n_layer, width, n_head), 50_688, _DLPERF, lineage="dlperf-sweep")
        for n_layer, width, n_head in ((16, 1536, 16), (12, 768, 12), (16, 3072, 32), (32, 3072, 32), (24, 2304, 24))
    ),
    *(
        _gpt(f"oneflow/gpt2-{n_layer}l-h1024", (n_layer, 1024, 16), 50_304, _LIBAI, lineage="libai-gpt2",
             note=_ASSUMED)
        for n_layer in (24, 48)
    ),
    *(
        _gpt(f"oneflow/bert-{n_layer}l-h1024", (n_layer, 1024, 16), 30_592, _LIBAI, lineage="bert-large",
             family="BERT", model_type="bert", max_context_token=512,
             note=f"{_ASSUMED}; encoder only: its layers, which see both ways, count as n_layer")
        for n_layer in (24, 48)
    ),
    _gpt("tinygpt/117m", (12, 768, 12), 50_257,
         "https://github.com/deepaksatna/Distributed-LLM-Training-Benchmark-Framework: README.md",
         note=f"{_NO_CHECKPOINT}; heads and vocabulary of GPT-2 assumed"),
    {
        "id": "kempner/llama3-14.8b", "family": "Llama", "model_type": "llama", "n_layer": 40, "hidden_size": 5120,
        "intermediate_size": 17920, "mlp_gated": True, "n_head": 40, "n_kv_head": 8, "attention": "gqa",
        "vocab_size": 128_256, "max_context_token": 4096, "source": f"{_KEMPNER}/mfu_scaling/mfu_scaling.md",
        "note": f"{_NO_CHECKPOINT}; width of the MLP by the rule of Llama 3 (1.3 x 8/3, multiple of 256)",
    },
    *(_kempner_moe(n_expert) for n_expert in (8, 16, 64)),
    _hub("01-ai/Yi-34B", "Yi", (60, 7168, 20480, 56, 8), 64_000, max_context_token=4096),
    _hub("01-ai/Yi-6B", "Yi", (32, 4096, 11008, 32, 4), 64_000, max_context_token=4096),
    _hub("Qwen/Qwen-1_8B", "Qwen", (24, 2048, 5504, 16, 16), 151_936, model_type="qwen", max_context_token=8192),
    _hub("Qwen/Qwen-7B", "Qwen", (32, 4096, 11008, 32, 32), 151_936, model_type="qwen", max_context_token=8192),
    _hub("Qwen/Qwen-14B", "Qwen", (40, 5120, 13696, 40, 40), 152_064, model_type="qwen", max_context_token=8192),
    _hub("Qwen/Qwen-72B", "Qwen", (80, 8192, 24576, 64, 64), 152_064, model_type="qwen", max_context_token=32_768),
    _hub("baichuan-inc/Baichuan2-7B-Base", "Baichuan2", (32, 4096, 11008, 32, 32), 125_696, max_context_token=4096),
    _hub("baichuan-inc/Baichuan2-13B-Base", "Baichuan2", (40, 5120, 13696, 40, 40), 125_696,
         max_context_token=4096),
    _hub("internlm/internlm-7b", "InternLM", (32, 4096, 11008, 32, 32), 103_168, max_context_token=2048),
    {
        "id": "EleutherAI/gpt-neo-2.7B", "family": "GPT-Neo", "model_type": "gpt_neo", "n_layer": 32,
        "hidden_size": 2560, "intermediate_size": 10240, "n_head": 20, "vocab_size": 50_257,
        "tie_word_embeddings": True, "max_context_token": 2048, "source": _HUB.format("EleutherAI/gpt-neo-2.7B"),
    },
)  # fmt: skip
"""Defaults as in `other_models.OTHERS`."""

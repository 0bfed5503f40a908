"""Sources of the totals of `model_configs.PUBLISHED`.

Where the published total holds more than the model's own weights, or none was found, the total is our own count: the
source says so, and what the published one is.
"""

from __future__ import annotations


def _total(name: str) -> str:
    return f"safetensors total of {name}, by llmfit 1.1.17 (PyPI)"


def _own(name: str, total: int, extra: str) -> str:
    return f"own count; the safetensors total of {name}, by llmfit 1.1.17 (PyPI), is {total:,}: {extra}"


SOURCES: dict[str, str] = {
    "llama-3.1-8b": _total("meta-llama/Llama-3.1-8B"),
    "llama-3.2-1b": _total("meta-llama/Llama-3.2-1B"),
    "llama-3.1-405b": _total("meta-llama/Llama-3.1-405B-Instruct"),
    "qwen2.5-7b": _total("Qwen/Qwen2.5-7B-Instruct"),
    "qwen2-0.5b": _total("Qwen/Qwen2-0.5B-Instruct"),
    "qwen3-8b": _total("Qwen/Qwen3-8B"),
    "qwen3-30b-a3b": _total("Qwen/Qwen3-30B-A3B"),
    "qwen2-57b-a14b": _total("Qwen/Qwen2-57B-A14B-Instruct"),
    "qwen3-next-80b-a3b": _total("Qwen/Qwen3-Coder-Next"),
    "mistral-7b-v0.1": _total("mistralai/Mistral-7B-v0.1"),
    "mixtral-8x7b": _total("mistralai/Mixtral-8x7B-Instruct-v0.1"),
    "phi-3-mini-4k": _total("microsoft/Phi-3-mini-4k-instruct"),
    "phi-2": _total("microsoft/phi-2"),
    "gemma-2b": _total("google/gemma-2b"),
    "gemma-2-9b": _total("google/gemma-2-9b"),
    "gpt-oss-20b": _total("openai/gpt-oss-20b"),
    "deepseek-v2-lite": _total("deepseek-ai/DeepSeek-V2-Lite"),
    "starcoder2-7b": _total("bigcode/starcoder2-7b"),
    "mpt-7b": _total("gl198976/mpt-7b-instruct"),
    "opt-125m": _total("peft-internal-testing/opt-125m"),
    "opt-350m": _total("MayaPH/FinOPT-Lincoln"),
    "bloom-7b1": _total("bigscience/bloom-7b1"),
    "stablelm-2-1.6b": _total("stabilityai/stablelm-2-1_6b"),
    "olmo-7b": _total("allenai/OLMo-7B-hf"),
    "c4ai-command-r-v01": _total("CohereForAI/c4ai-command-r-v01"),
    "seed-oss-36b": _total("ByteDance-Seed/Seed-OSS-36B-Instruct"),
    "granite-4.1-8b": _total("ibm-granite/granite-4.1-8b"),
    "jamba-v0.1": _total("ai21labs/Jamba-v0.1"),
    "granite-4.0-h-tiny": _total("ibm-granite/granite-4.0-h-tiny"),
    "kimi-linear-48b-a3b": _total("moonshotai/Kimi-Linear-48B-A3B-Instruct"),
    "lfm2.5-2.6b": _total("LiquidAI/LFM2.5-2.6B"),
    "lfm2-1.2b": _total("LiquidAI/LFM2-1.2B"),
    "minimax-text-01": _total("MiniMaxAI/MiniMax-Text-01"),
    "llama-2-7b": _own("meta-llama/Llama-2-7b-hf", 6_738_417_664, "buffers of rotary positions"),
    "gemma-3-27b": _own("google/gemma-3-27b-it", 27_432_406_640, "the vision tower"),
    "deepseek-v3": _own("deepseek-ai/DeepSeek-V3", 684_531_386_000, "the multi-token-prediction layer"),
    "glm-4.5-air": _own("zai-org/GLM-4.5-Air", 110_468_824_832, "the multi-token-prediction layer"),
    "llama-4-maverick": _own("meta-llama/Llama-4-Maverick-17B-128E-Instruct", 401_583_781_376, "the vision tower"),
    "nemotron-3-nano-30b": _own("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 31_577_937_344, "2,944 weights less"),
    "gpt2": _own("openai-community/gpt2", 137_022_720, "buffers of the causal mask, 12 x 1024 x 1024"),
    "gpt-j-6b": _own("NbAiLab/nb-gpt-j-6B", 6_055_077_088, "one buffer of the causal mask, 2048 x 2048"),
    "gpt-neox-20b": _own("EleutherAI/gpt-neox-20b", 20_739_117_584, "buffers of the causal mask, 44 x 2048 x 2048"),
    "starcoder": _own("bigcode/starcoder", 15_819_446_272, "the tied embedding twice"),
    "falcon-7b": _own("tiiuae/falcon-7b", 7_217_189_760, "the tied embedding twice"),
    "falcon-180b": _own("tiiuae/falcon-180B", 179_522_565_120, "the tied embedding twice"),
    "deepseek-v3.2": _own("deepseek-ai/DeepSeek-V3.2", 685_355_329_792, "the multi-token-prediction layer"),
    "glm-5": _own("zai-org/GLM-5", 753_864_139_008, "the multi-token-prediction layer"),
    "nemotron-3-ultra": _own(
        "nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16", 560_524_578_816, "the multi-token-prediction module"
    ),
    "bamba-9b": _own("ibm-ai-platform/Bamba-9B-v1", 9_780_235_392, "6,272 weights more"),
    "falcon-h1-7b": _own("tiiuae/Falcon-H1-7B-Instruct", 7_585_654_880, "96 weights more"),
    "deepseek-v4-flash": _own("deepseek-ai/DeepSeek-V4-Flash", 290_944_616_402, "the multi-token-prediction layer"),
    "deepseek-v4-pro": _own("deepseek-ai/DeepSeek-V4-Pro", 1_598_839_674_782, "the multi-token-prediction layer"),
    "laguna-xs.2": _own("poolside/Laguna-XS.2", 33_442_617_088, "9,984 router biases"),
    "mimo-v2-flash": _own("mlx-community/MiMo-V2-Flash-4bit", 308_778_778_368, "12,032 router biases"),
    "nemotron-super-49b": _own(
        "nvidia/Llama-3_3-Nemotron-Super-49B-v1", 49_867_145_216, "no norm before attention that is left out"
    ),
    "step-3.7-flash": _own("stepfun-ai/Step-3.5-Flash", 199_384_301_376, "the multi-token-prediction layers"),
    "flan-t5-xxl": "own count; the maker's card rounds to 11B",
    "nemotron-4-15b": "own count; the maker's report (arXiv 2402.16819) rounds to 15.6B",
    "dbrx": "own count; the maker's card rounds to 132B",
}
"""Source of the total of each model of `PUBLISHED`."""

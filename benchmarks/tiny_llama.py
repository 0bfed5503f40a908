"""A Llama with random weights, to try `roofcast measure` on one machine.

``python benchmarks/tiny_llama.py make FOLDER`` writes `model.gguf`, `config.json` and a tokenizer (needs `gguf` and
`tokenizers`); ``python benchmarks/tiny_llama.py serve FOLDER PORT`` serves it on loopback by llama.cpp's server
(needs `xllamacpp`), on one thread, until it is interrupted.
"""

import json
import signal
import sys
from pathlib import Path
from typing import Final

import numpy as np

N_HIDDEN: Final = 384
N_LAYER: Final = 8
N_INTERMEDIATE: Final = 1024
N_HEAD_CHANNEL: Final = 64
N_VOCAB: Final = 2000
N_CONTEXT: Final = 4096
N_SLOT: Final = 8
N_CONTEXT_SLOT: Final = 1024
SPECIAL: Final = ("<|begin|>", "<|end|>")
CONFIG: Final = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": N_HIDDEN,
    "intermediate_size": N_INTERMEDIATE,
    "num_hidden_layers": N_LAYER,
    "num_attention_heads": N_HIDDEN // N_HEAD_CHANNEL,
    "num_key_value_heads": N_HIDDEN // N_HEAD_CHANNEL,
    "head_dim": N_HEAD_CHANNEL,
    "vocab_size": N_VOCAB,
    "max_position_embeddings": N_CONTEXT,
    "tie_word_embeddings": False,
    "torch_dtype": "float16",
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "bos_token_id": 0,
    "eos_token_id": 1,
}


def make(folder: Path) -> None:
    """Write the model's files."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG, indent=1), encoding="utf-8")
    tokens, merges = _make_tokenizer(folder)
    _write_weights(folder / "model.gguf", tokens, merges)


def _make_tokenizer(folder: Path) -> tuple[list[str], list[str]]:
    """Write a byte-level tokenizer fitted to Python's own library; return its tokens and merges."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers  # noqa: PLC0415

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    files = sorted(Path(json.__file__).parent.parent.glob("*.py"))[:60]
    trainer = trainers.BpeTrainer(
        vocab_size=N_VOCAB, special_tokens=[*SPECIAL], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator((file.read_text(encoding="utf-8", errors="ignore") for file in files), trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": SPECIAL[0], "eos_token": SPECIAL[1]}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    numbers = tokenizer.get_vocab()
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    return sorted(numbers, key=numbers.__getitem__), [" ".join(pair) for pair in merges]


def _write_weights(path: Path, tokens: list[str], merges: list[str]) -> None:
    import gguf  # noqa: PLC0415

    writer = gguf.GGUFWriter(path, "llama")
    for add, value in (
        (writer.add_name, path.parent.name),
        (writer.add_context_length, N_CONTEXT),
        (writer.add_embedding_length, N_HIDDEN),
        (writer.add_block_count, N_LAYER),
        (writer.add_feed_forward_length, N_INTERMEDIATE),
        (writer.add_head_count, N_HIDDEN // N_HEAD_CHANNEL),
        (writer.add_head_count_kv, N_HIDDEN // N_HEAD_CHANNEL),
        (writer.add_layer_norm_rms_eps, 1e-5),
        (writer.add_rope_dimension_count, N_HEAD_CHANNEL),
        (writer.add_vocab_size, N_VOCAB),
        (writer.add_file_type, gguf.LlamaFileType.MOSTLY_F16),
        (writer.add_tokenizer_model, "gpt2"),
        (writer.add_tokenizer_pre, "gpt-2"),
        (writer.add_token_list, tokens),
        (writer.add_token_types, [gguf.TokenType.CONTROL if t in SPECIAL else gguf.TokenType.NORMAL for t in tokens]),
        (writer.add_token_merges, merges),
        (writer.add_bos_token_id, 0),
        (writer.add_eos_token_id, 1),
        (writer.add_chat_template, "{% for message in messages %}{{ message['content'] }}{% endfor %}"),
    ):
        add(value)
    rng = np.random.default_rng(0)
    shapes = {"token_embd": (N_VOCAB, N_HIDDEN), "output": (N_VOCAB, N_HIDDEN), "output_norm": (N_HIDDEN,)}
    for i in range(N_LAYER):
        attention = dict.fromkeys(("attn_q", "attn_k", "attn_v", "attn_output"), (N_HIDDEN, N_HIDDEN))
        feed_forward = dict.fromkeys(("ffn_gate", "ffn_up"), (N_INTERMEDIATE, N_HIDDEN))
        norms = dict.fromkeys(("attn_norm", "ffn_norm"), (N_HIDDEN,))
        block = {**attention, **feed_forward, "ffn_down": (N_HIDDEN, N_INTERMEDIATE), **norms}
        shapes |= {f"blk.{i}.{name}": shape for name, shape in block.items()}
    for name, shape in shapes.items():
        is_norm = len(shape) == 1
        values = np.ones(shape, np.float32) if is_norm else (0.02 * rng.standard_normal(shape)).astype(np.float16)
        writer.add_tensor(f"{name}.weight", values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def serve(folder: Path, port: int) -> None:
    """Serve the model under the folder's name until the process is interrupted."""
    import xllamacpp  # noqa: PLC0415

    params = xllamacpp.CommonParams()
    params.model.path, params.model_alias = str(folder / "model.gguf"), {folder.resolve().name}
    params.hostnames, params.port = ["127.0.0.1"], port
    params.n_parallel, params.n_ctx = N_SLOT, N_SLOT * N_CONTEXT_SLOT
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.cache_prompt = False
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(Path(sys.argv[2]))
    else:
        serve(Path(sys.argv[2]), int(sys.argv[3]))

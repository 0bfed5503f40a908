"""Throughput of Argonne's batches, without runs that cannot have generated all their tokens."""

from builders.published import Cells, RejectionError
from builders.recipe import Row
from roofcast.data.catalog import load_catalog
from roofcast.data.errors import UnknownNameError
from roofcast.data.specs import BYTE_PER_WEIGHT, AcceleratorSpec, ModelSpec


def rows(cells: Cells, common: Row) -> list[Row]:
    """Return the throughputs of the batch.

    Raises `RejectionError` if the run is longer than the model's context, or faster than the weights can be read.
    """
    latency_s, n_output = common["e2e_s"], common["n_output_token"]
    _check(cells, common)
    return [
        {
            "output_throughput_token_per_s": common["concurrency"] * n_output / latency_s,
            "total_throughput_token_per_s": common["concurrency"] * (common["n_input_token"] + n_output) / latency_s,
        }
    ]


def _check(cells: Cells, common: Row) -> None:
    catalog = load_catalog()
    try:
        model, accelerator = catalog.model(cells["model_id"]), catalog.accelerator(cells["accelerator_id"])
    except UnknownNameError:
        return
    n_token = common["n_input_token"] + common["n_output_token"]
    if model.max_context_token and n_token > model.max_context_token:
        raise RejectionError("beyond_context", f"{n_token:g} tokens, the model holds {model.max_context_token}")
    read_s = weight_read_s(model, accelerator, int(common["n_accelerator"]), common["weight_precision"])
    least_s, latency_s = common["n_output_token"] * read_s, common["e2e_s"]
    if latency_s < least_s and "speculation" not in common:
        detail = f"{latency_s:.3g} s; reading the weights for each token takes {least_s:.3g} s"
        raise RejectionError("faster_than_weights", detail)


def weight_read_s(model: ModelSpec, accelerator: AcceleratorSpec, n_accelerator: int, precision: str) -> float:
    """Return the lower bound of a decode step: the active weights read once at full memory bandwidth.

    Untied input embeddings are excluded, because a step reads one row of them.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> catalog = load_catalog()
    >>> llama, h100 = catalog.model("Llama-2-7b-hf"), catalog.accelerator("nvidia-h100-sxm-80gb")
    >>> round(1000 * weight_read_s(llama, h100, 1, "fp16"), 2)
    3.94
    """
    n_lookup = 0 if model.tie_word_embeddings else model.vocab_size * model.hidden_size
    n_byte = (model.n_param_active - n_lookup) * BYTE_PER_WEIGHT[precision]
    return n_byte / (accelerator.bandwidth_byte_per_s * n_accelerator)

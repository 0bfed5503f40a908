"""Builders of specs and queries with valid defaults."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.data.specs import AcceleratorSpec, ModelSpec
from roofcast.features.columns import DESCRIPTOR_NAMES
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.features.examples import example_descriptors

FloatArray = npt.NDArray[np.float64]


def a_model(**changes: Any) -> ModelSpec:
    """Return a dense model in the shape of Llama-2-7B."""
    fields = {
        "id": "ours/dense-7b", "lineage": "dense-7b", "fold_group": "dense-7b", "n_layer": 32, "hidden_size": 4096,
        "intermediate_size": 11008, "n_head": 32, "n_kv_head": 32, "head_dim": 128, "vocab_size": 32000,
        "n_param": 6_738_415_616, "n_param_active": 6_738_415_616, "source": "a test",
    }  # fmt: skip
    return ModelSpec.parse(fields | changes)


def an_accelerator(**changes: Any) -> AcceleratorSpec:
    """Return an accelerator of 80 GB, 2 TB/s and 300 TFLOP/s."""
    fields = {
        "id": "ours-80gb", "vendor": "ours", "name": "Ours 80 GB", "memory_byte": 80e9, "bandwidth_byte_per_s": 2e12,
        "peak_flop_per_s": {"fp16": 300e12, "bf16": 300e12}, "link_bandwidth_byte_per_s": 600e9,
        "link_domain_size": 8, "source": "a test",
    }  # fmt: skip
    return AcceleratorSpec.parse(fields | changes)


def a_question(**changes: Any) -> dict[str, Any]:
    """Return the cells of one query about `a_model` on `an_accelerator`."""
    return {
        "model": "ours/dense-7b",
        "accelerator": "ours-80gb",
        "n_accelerator": 1,
        "n_input_token": 1000,
        "n_output_token": 200,
        "concurrency": 8,
        "statistic": "mean",
    } | changes


def describe_questions(
    *questions: dict[str, Any], model: ModelSpec | None = None, accelerator: AcceleratorSpec | None = None
) -> pd.DataFrame:
    """Return the descriptors of questions, or of one, about one model and one accelerator."""
    spec, part = model or a_model(), accelerator or an_accelerator()
    table = pd.DataFrame(list(questions) or [a_question()]).assign(model=spec.id, accelerator=part.id)
    return describe(table, {spec.id: spec}, {part.id: part})


def an_example(**changes: float) -> dict[str, FloatArray]:
    """Return the round-numbered question; ``an_example(config__tp=2)`` changes its ``config.tp``."""
    given = {name.replace("__", "."): np.array([float(value)]) for name, value in changes.items()}
    assert set(given) <= set(DESCRIPTOR_NAMES)
    return example_descriptors() | given

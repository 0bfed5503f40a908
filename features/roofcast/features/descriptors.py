"""From questions and specs to descriptors: one numeric row per question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.data.errors import InputError
from roofcast.data.specs import BYTE_PER_WEIGHT, AcceleratorSpec, ModelSpec
from roofcast.features.architecture import describe_model
from roofcast.features.columns import DESCRIPTOR_NAMES, DESCRIPTORS

FloatArray = npt.NDArray[np.float64]

QUANTILE: Final = {"mean": 0.5, "p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}

COMPUTE_PRECISIONS: Final[dict[str, tuple[str, ...]]] = {
    "fp32": ("tf32", "fp32", "bf16", "fp16"),
    "tf32": ("tf32", "bf16", "fp16", "fp32"),
    "bf16": ("bf16", "fp16", "fp32"),
    "fp16": ("fp16", "bf16", "fp32"),
    "fp8": ("fp8", "bf16", "fp16", "fp32"),
    "int8": ("int8", "bf16", "fp16", "fp32"),
    "fp4": ("fp4", "fp8", "bf16", "fp16", "fp32"),
    "int4": ("bf16", "fp16", "fp32"),
}
"""Precision computed in, by precision of the weights: the first that the accelerator has. Four-bit integer
weights are unpacked to sixteen bits before they are multiplied."""


def describe(
    questions: pd.DataFrame, models: Mapping[str, ModelSpec], accelerators: Mapping[str, AcceleratorSpec]
) -> pd.DataFrame:
    """Return the descriptors of each question.

    Blanks are filled: precision from the model's checkpoint (see `served_precision`), `kv_precision` with 16 bits,
    `tp` with the accelerators that `pp` and `dp` leave, `pp` and `dp` with 1, `flash_attention` with true.

    Parameters
    ----------
    questions
        The columns of `roofcast.data.measurements.QUESTION_COLUMNS`, and `flash_attention` where known.
    models, accelerators
        Specs by the ids that the questions name.

    Returns
    -------
    shape (n_question, n_descriptor), columns `DESCRIPTOR_NAMES`, index of `questions`

    Raises
    ------
    InputError
        If a split does not multiply up to the number of accelerators, or leaves a broken one to `tp`.
    """
    model_codes, model_ids = pd.factorize(questions["model"])
    accelerator_codes, accelerator_ids = pd.factorize(questions["accelerator"])
    specs = [models[name] for name in model_ids]
    parts = [accelerators[name] for name in accelerator_ids]
    columns: dict[str, FloatArray] = {}
    rows = [describe_model(spec) for spec in specs]
    for name in (column.name for column in DESCRIPTORS if column.group == "model"):
        columns[name] = np.array([row[name] for row in rows], dtype=float)[model_codes]
    own = np.array([served_precision(spec.weight_precision) for spec in specs], dtype=object)[model_codes]
    precision = _filled(questions, "weight_precision", own)
    columns |= _hardware(parts, accelerator_codes, precision)
    columns |= _config(questions, precision)
    columns |= _workload(questions)
    return pd.DataFrame(columns, index=questions.index)[list(DESCRIPTOR_NAMES)]


def _filled(questions: pd.DataFrame, name: str, default: object) -> npt.NDArray[np.object_]:
    fallback: npt.NDArray[np.object_] = np.empty(len(questions), dtype=object)
    fallback[:] = default
    if name not in questions:
        return fallback
    given = questions[name].astype(object)
    is_given = (given.notna() & (given != "")).to_numpy(dtype=bool)
    fallback[is_given] = given.to_numpy(dtype=object)[is_given]
    return fallback


def _number(questions: pd.DataFrame, name: str, default: float | FloatArray) -> FloatArray:
    if name not in questions:
        return np.broadcast_to(np.asarray(default, dtype=float), len(questions)).copy()
    given = questions[name].to_numpy(dtype=float, na_value=np.nan)
    return np.where(np.isnan(given), default, given)


def served_precision(checkpoint: str) -> str:
    """Return the precision in which an engine serves a checkpoint unless told otherwise.

    References
    ----------
    vLLM, option ``--dtype auto``: FP32 checkpoints are served in FP16, the others as they are.

    Examples
    --------
    >>> served_precision("fp32"), served_precision("bf16")
    ('fp16', 'bf16')
    """
    return "fp16" if checkpoint == "fp32" else checkpoint


def peak_flop_per_s(part: AcceleratorSpec, precision: str) -> float:
    """Return the dense peak at which weights of `precision` are multiplied on `part`."""
    peaks: dict[str, float] = {str(name): peak for name, peak in part.peak_flop_per_s.items()}
    return next(peaks[name] for name in COMPUTE_PRECISIONS[precision] if name in peaks)


def _hardware(
    parts: list[AcceleratorSpec], codes: npt.NDArray[np.intp], precision: npt.NDArray[np.object_]
) -> dict[str, FloatArray]:
    precision_codes, precisions = pd.factorize(precision)
    peaks = np.array([[peak_flop_per_s(part, p) for p in precisions] for part in parts], dtype=float)
    values = {
        "hardware.memory_byte": [part.memory_byte for part in parts],
        "hardware.bandwidth_byte_per_s": [part.bandwidth_byte_per_s for part in parts],
        "hardware.link_byte_per_s": [part.link_bandwidth_byte_per_s for part in parts],
    }
    gathered = {name: np.array(column, dtype=float)[codes] for name, column in values.items()}
    gathered["hardware.flop_per_s"] = peaks[codes, precision_codes] if parts else np.empty(0)
    return gathered


def _config(questions: pd.DataFrame, precision: npt.NDArray[np.object_]) -> dict[str, FloatArray]:
    n_accelerator = _number(questions, "n_accelerator", 1.0)
    pp, dp = _number(questions, "pp", 1.0), _number(questions, "dp", 1.0)
    tp = _number(questions, "tp", n_accelerator / (pp * dp))
    wrong = ~np.isclose(tp * pp * dp, n_accelerator) | (tp % 1 != 0)
    if wrong.any():
        i = int(wrong.argmax())
        raise InputError(
            "tp",
            "tp x pp x dp must equal n_accelerator in whole numbers, got "
            f"{tp[i]:g} x {pp[i]:g} x {dp[i]:g} and {n_accelerator[i]:g}",
        )
    kv_precision = _filled(questions, "kv_precision", "fp16")
    return {
        "config.n_accelerator": n_accelerator,
        "config.tp": tp,
        "config.pp": pp,
        "config.dp": dp,
        "config.weight_byte_per_element": np.array([BYTE_PER_WEIGHT[p] for p in precision], dtype=float),
        "config.kv_byte_per_element": np.array([BYTE_PER_WEIGHT[p] for p in kv_precision], dtype=float),
        "config.flash_attention": _number(questions, "flash_attention", 1.0),
    }


def _workload(questions: pd.DataFrame) -> dict[str, FloatArray]:
    statistic = _filled(questions, "statistic", "mean")
    return {
        "workload.n_input_token": _number(questions, "n_input_token", np.nan),
        "workload.n_output_token": _number(questions, "n_output_token", np.nan),
        "workload.concurrency": _number(questions, "concurrency", np.nan),
        "workload.request_rate_per_s": _number(questions, "request_rate", np.nan),
        "workload.is_mean": (statistic == "mean").astype(float),
        "workload.quantile": np.array([QUANTILE[s] for s in statistic], dtype=float),
    }

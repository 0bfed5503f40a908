"""Physical coefficients of the training estimate: prior, unit and source of each."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib import resources
from typing import Final

import numpy as np

from roofcast.features.engine.coefficients import Prior
from roofcast.features.queries import FloatArray


def _priors(kind: str) -> dict[str, Prior]:
    text = (resources.files(__package__) / "job_coefficients.csv").read_text(encoding="utf-8")
    return {
        row["name"]: Prior(
            float(row["median"]), float(row["log_sd"]), 0.0, row["unit"], row["meaning"], row["source"],
            is_share=row["bound"] == "share",
        )
        for row in csv.DictReader(text.splitlines())
        if row["kind"] == kind
    }  # fmt: skip


TRAINING_PRIORS: Final = _priors("step")

FAMILY_PRIORS: Final = _priors("family")
"""Ratios by family of accelerators, see `family_code`."""

FRAMEWORK_PRIORS: Final = _priors("framework")
"""Ratios by family of frameworks, in the order of `roofcast.features.jobs.frameworks.FRAMEWORKS`."""

TRAINING_NAMES: Final = (*TRAINING_PRIORS, *FAMILY_PRIORS, *FRAMEWORK_PRIORS)
MEMORY_NAMES: Final = (
    "activation_ratio", "selective_ratio", "module_ratio", "logit_byte", "fragment_ratio", "workspace_byte",
    "context_byte",
)  # fmt: skip
"""Coefficients of memory; the others are of time."""

_PRIORS: Final = {**TRAINING_PRIORS, **FAMILY_PRIORS, **FRAMEWORK_PRIORS}
_INDEX: Final = {name: i for i, name in enumerate(TRAINING_NAMES)}


@dataclass(frozen=True, slots=True, eq=False)
class StepCoefficients:
    """Natural logarithms of the coefficients: shape (n_coefficient,), in the order of `TRAINING_NAMES`.

    A learner fits ``(logs - log(median)) / log_sd`` under a standard normal prior, see `from_standard`.
    """

    logs: FloatArray

    def value(self, name: str) -> float:
        """Return a coefficient in its unit.

        Examples
        --------
        >>> DEFAULT_TRAINING_COEFFICIENTS.value("attention_backward_ratio")
        3.0
        """
        prior = _PRIORS[name]
        value = float(np.exp(self.logs[_INDEX[name]]).round(12))
        return min(value, 1.0) if prior.is_share else value

    def family_ratio(self, code: FloatArray) -> FloatArray:
        """Return the ratio of each row's family of accelerators, by `family_code`."""
        return np.asarray(np.exp(self.logs[len(TRAINING_PRIORS) + code.astype(np.intp)]))

    def framework_ratio(self, code: FloatArray) -> FloatArray:
        """Return the ratio of each row's family of frameworks, by its index in `FRAMEWORK_PRIORS`."""
        return np.asarray(np.exp(self.logs[len(TRAINING_PRIORS) + len(FAMILY_PRIORS) + code.astype(np.intp)]))

    def __eq__(self, other: object) -> bool:
        """Return whether all values are equal."""
        if not isinstance(other, StepCoefficients):
            return NotImplemented
        return np.array_equal(self.logs, other.logs)

    __hash__ = None  # type: ignore[assignment]

    def with_values(self, **values: float) -> StepCoefficients:
        """Return a copy with these values, in their units.

        Examples
        --------
        >>> DEFAULT_TRAINING_COEFFICIENTS.with_values(tp_exposed=0.25).value("tp_exposed")
        0.25
        """
        logs = self.logs.copy()
        for name, value in values.items():
            logs[_INDEX[name]] = np.log(value)
        return StepCoefficients(logs)


def family_code(architecture: str) -> float:
    """Return the index in `FAMILY_PRIORS` of an accelerator's architecture.

    Examples
    --------
    >>> list(FAMILY_PRIORS)[int(family_code("Blackwell Ultra"))], list(FAMILY_PRIORS)[int(family_code("Gaudi 2"))]
    ('Blackwell', 'Gaudi')
    """
    names = list(FAMILY_PRIORS)
    return float(next((i for i, name in enumerate(names) if architecture.startswith(name)), len(names) - 1))


NEW_ATTENTION: Final = tuple(family_code(name) for name in ("Hopper", "Blackwell"))
"""Codes of families with attention kernels that older libraries do not use."""


def from_standard(x: FloatArray) -> StepCoefficients:
    """Return the coefficients at `x` prior standard deviations from the prior medians: shape (n_coefficient,).

    Examples
    --------
    >>> from_standard(np.zeros(len(TRAINING_NAMES))) == DEFAULT_TRAINING_COEFFICIENTS
    True
    """
    priors = _PRIORS.values()
    return StepCoefficients(np.log([p.median for p in priors]) + x * np.array([p.log_sd for p in priors]))


DEFAULT_TRAINING_COEFFICIENTS: Final = from_standard(np.zeros(len(TRAINING_NAMES)))

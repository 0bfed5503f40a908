"""Base of the estimators: scikit-learn's interface without importing scikit-learn, which serving does not need."""

# ruff: noqa: PLC0415  (scikit-learn takes longer to import than a prediction does)

from __future__ import annotations

import inspect
from typing import Any, Self


class Estimator:
    """Settings are the parameters of ``__init__``, stored under their names; what is fitted ends in an underscore."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002  (of scikit-learn's interface)
        """Return the settings."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        """Change settings and return the estimator.

        Raises
        ------
        ValueError
            If there is no such setting.
        """
        for name, value in params.items():
            if name not in self.get_params():
                raise ValueError(f"Invalid parameter {name!r} for estimator {self!r}.")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        """Return the call that makes an estimator of these settings."""
        settings = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({settings})"

    def __sklearn_tags__(self) -> Any:
        """Return the tags of an estimator that is neither a classifier nor a regressor."""
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False))


def check_is_fitted(estimator: Estimator) -> None:
    """Raise scikit-learn's `NotFittedError` if an estimator has no fitted attribute."""
    if not any(name.endswith("_") and not name.startswith("__") for name in vars(estimator)):
        from sklearn.exceptions import NotFittedError

        raise NotFittedError(f"This {type(estimator).__name__} instance is not fitted yet.")

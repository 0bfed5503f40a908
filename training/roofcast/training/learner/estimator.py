"""Base of the estimators: scikit-learn's interface without importing scikit-learn, which serving does not need."""

# ruff: noqa: PLC0415  (scikit-learn takes longer to import than a prediction does)

import inspect
from typing import Any, Self


class Estimator:
    """Settings are the parameters of ``__init__``; names of fitted attributes end in an underscore."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002  (of scikit-learn's interface)
        """Return the settings."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        """Change settings and return the estimator; raise `ValueError` for an unknown name."""
        if unknown := params.keys() - self.get_params().keys():
            raise ValueError(f"Invalid parameters {sorted(unknown)} for estimator {self!r}.")
        vars(self).update(params)
        return self

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({settings})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False))


def check_is_fitted(estimator: Estimator) -> None:
    """Raise scikit-learn's `NotFittedError` if an estimator has no fitted attribute."""
    if not any(name.endswith("_") and not name.startswith("__") for name in vars(estimator)):
        from sklearn.exceptions import NotFittedError

        raise NotFittedError(f"This {type(estimator).__name__} instance is not fitted yet.")

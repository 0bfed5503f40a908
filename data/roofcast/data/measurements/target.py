"""What measurements are about, and predictors predict: inference, or training jobs."""

from typing import Final, Literal, get_args

Target = Literal["inference", "training"]

INFERENCE: Final = "inference"
TRAINING: Final = "training"
TARGETS: Final[tuple[Target, ...]] = get_args(Target)

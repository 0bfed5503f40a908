"""Configuration of a replica, and reasons to reject one."""

from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from roofcast.serving.recommend.demand.constraints import Speculation

Reason = Literal[
    "same_cost", "dearer", "over_budget", "too_few_nodes", "misses_limit", "no_offer", "does_not_fit", "no_engine"
]
"""Reason of a rejection."""

REASONS: Final[tuple[Reason, ...]] = get_args(Reason)
"""Reasons, the nearest miss first."""


@dataclass(frozen=True, slots=True)
class Replica:
    """Configuration of a replica.

    - `accelerator`: Catalogue id.
    - `tp`, `pp`, `dp`, `ep`: Degrees of parallelism; `dp` is of attention, with the experts spread over `ep`
      accelerators.
    - `weight_precision`, `weight_bit`: As served; bits are None for the usual ones of the precision.
    - `checkpoint`: Repository that is published in that precision; blank for the model's own or a copy to be made.
    """

    accelerator: str
    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1
    engine: str = ""
    weight_precision: str = ""
    weight_bit: float | None = None
    speculation: Speculation | None = None
    checkpoint: str = field(default="", compare=False)
    n_accelerator: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_accelerator", self.tp * self.pp * self.dp)

    @property
    def split(self) -> str:
        """Short form of the split.

        Examples
        --------
        >>> Replica("nvidia-l4-24gb", tp=2, pp=2).split, Replica("nvidia-l4-24gb").split
        ('tp2 pp2', 'tp1')
        """
        degrees = {"tp": self.tp, "pp": self.pp, "dp": self.dp, "ep": self.ep}
        return " ".join(f"{name}{n}" for name, n in degrees.items() if n > 1 or name == "tp")

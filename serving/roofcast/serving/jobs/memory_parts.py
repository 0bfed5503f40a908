"""Peak memory of an accelerator by part."""

from typing import Final

import numpy as np

from roofcast.features.jobs.step.job_memory import JobMemory
from roofcast.features.queries import FloatArray

STAGE_PARTS: Final = ("weights", "gradients", "optimizer", "activations", "logits", "buffers")
MEMORY_PARTS: Final = (*STAGE_PARTS, "reserve")
"""Parts of allocated memory, and what the allocator and the driver hold beyond."""


def memory_parts(memory: JobMemory) -> dict[str, FloatArray]:
    """Return the estimated memory in use on the device by part, of the pipeline stage that needs most.

    The parts add up to `JobMemory.device`.
    """
    is_first = memory.first.allocated >= memory.last.allocated
    parts = {
        name: np.where(is_first, getattr(memory.first, name), getattr(memory.last, name)) for name in STAGE_PARTS
    }
    return parts | {"reserve": memory.device - memory.allocated}

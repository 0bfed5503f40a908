from __future__ import annotations

from collections.abc import Iterator

import pytest

from roofcast.training.evaluation.protocols import fold_lines


@pytest.fixture(autouse=True, scope="session")
def in_this_process() -> Iterator[None]:
    """Fit folds in this process, where replaced predictors are known."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fold_lines, "N_PROCESS", 1)
        yield

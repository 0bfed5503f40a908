from __future__ import annotations

import hashlib

import numpy as np
import pytest

from roofcast.data.errors import InputError
from roofcast.data.job_campaigns import load_job_campaigns
from roofcast.training.jobs import JobPredictor, load_shipped_job_predictor, shipped

STALE = f"the shipped predictor of training jobs is stale; run `{shipped.COMMAND}` and commit what it writes"


def test_the_shipped_predictor_was_fitted_to_the_data_and_by_the_code_of_the_package() -> None:
    assert shipped.read_manifest() == shipped.current_manifest(shipped.FILE.read_bytes()), STALE


def test_another_file_than_that_of_the_manifest_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = shipped.read_manifest().model_copy(update={"sha256": hashlib.sha256(b"").hexdigest()})
    monkeypatch.setattr(shipped, "read_manifest", lambda: manifest)
    with pytest.raises(InputError, match="is not the file of its manifest"):
        load_shipped_job_predictor.__wrapped__()


@pytest.mark.slow
def test_a_new_fit_predicts_like_the_shipped_predictor() -> None:
    """Fits to all campaigns: no smaller fit tells whether the file is that of the data."""
    rows = load_job_campaigns()
    jobs = rows.iloc[::50]
    one, other = (p.predict(jobs) for p in (load_shipped_job_predictor(), JobPredictor().fit(rows)))
    for name in ("token_per_s_per_accelerator", "peak_memory_byte_high", "p_fits"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-3, err_msg=STALE)

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from builders.job_campaigns.build import TRAINING_BUILDERS, main
from builders.rejected_rows import TRAINING_REJECTED

BESIDE = Path(__file__).parents[4].parent / "shared" / "data"
FOLDER = Path(__file__).parents[4] / "data" / "roofcast" / "data" / "job_campaigns"


@pytest.mark.skipif(not (BESIDE / "raw").is_dir(), reason="the published files are missing next to the checkout")
@pytest.mark.parametrize("name", TRAINING_BUILDERS)
def test_the_published_files_give_the_shipped_bytes(name: str, tmp_path: Path) -> None:
    shutil.copytree(FOLDER / name, tmp_path / name, ignore=shutil.ignore_patterns("rows.csv"))
    main([name, "--raw", str(BESIDE), "--out", str(tmp_path), "--rejected", str(tmp_path / "rejected")])
    rejected = f"{name}.csv"
    built = {file.name: file.read_bytes() for file in (tmp_path / name).iterdir()}
    shipped = {file.name: file.read_bytes() for file in (FOLDER / name).iterdir() if file.is_file()}
    assert built == shipped
    assert (tmp_path / "rejected" / rejected).is_file() == (TRAINING_REJECTED / rejected).is_file()
    if (TRAINING_REJECTED / rejected).is_file():
        assert (tmp_path / "rejected" / rejected).read_bytes() == (TRAINING_REJECTED / rejected).read_bytes()

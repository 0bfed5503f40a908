import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from roofcast.data.errors import NotReadyError
from roofcast.serving.http.telemetry.prometheus_multiproc import (
    FILE_BYTE,
    FOLDER_VARIABLE,
    METRIC_KINDS,
    reserve_files,
)


def test_the_files_of_metrics_have_their_space_before_they_are_mapped(tmp_path: Path) -> None:
    code = """
import os
from pathlib import Path
from roofcast.serving.http.telemetry.prometheus import REQUEST_SECONDS
for i in range(100):
    REQUEST_SECONDS.labels("GET", f"/route/{i}", "200").observe(0.1)
"""
    environment = {**os.environ, FOLDER_VARIABLE: str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)  # noqa: S603  (our own)
    files = sorted(tmp_path.iterdir())
    assert [file.name.partition("_")[0] for file in files] == [*METRIC_KINDS]
    for file in files:
        assert file.stat().st_size == FILE_BYTE
        assert file.stat().st_blocks * 512 >= FILE_BYTE


def test_a_full_disk_at_the_start_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", fail)
    with pytest.raises(NotReadyError, match="no space for metrics in"):
        reserve_files(tmp_path)

import sys

import pytest

from tests.serving.http_client import Run


@pytest.mark.skipif(sys.platform != "linux", reason="needs a folder that nobody may write in, the super-user neither")
def test_a_service_does_not_start_in_a_state_folder_that_cannot_be_written(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROOFCAST_HOME", "/proc/self/task")
    err = run.error("serve", "--port", "0", status=1)
    assert "error: the state folder /proc/self/task cannot be written: " in err
    assert "set ROOFCAST_HOME to another folder" in err

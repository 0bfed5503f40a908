"""`requirements/install.sh`: uv gets pip's configuration, and pip installs if uv fails."""

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "requirements" / "install.sh"
CONFIG = r"""
:env:.cert='/etc/own.pem'
global.cert='/etc/other.pem'
global.extra-index-url='\nhttps://one.example/simple\nhttps://two.example/simple'
global.index-url='https://mirror.example/simple'
"""


def executable(path: Path, body: str) -> None:
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)


@pytest.fixture
def bin_folder(tmp_path: Path) -> Path:
    """Return a folder with a `python` that has a configured pip and reports what it installs."""
    (tmp_path / "config").write_text(CONFIG, encoding="utf-8")
    executable(tmp_path / "python", f'[ "$4" = list ] && cat {tmp_path}/config || echo "pip: $*"')
    return tmp_path


def install(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603
        [SCRIPT, folder / "python", *arguments],
        env={"PATH": f"{folder}:/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
        check=True,
    )


def test_uv_gets_the_index_and_certificate_of_pip(bin_folder: Path) -> None:
    executable(bin_folder / "uv", 'echo "$*"; echo "$UV_DEFAULT_INDEX|$UV_INDEX|$SSL_CERT_FILE"')
    arguments, settings = install(bin_folder, "-r", "lock.txt").stdout.splitlines()
    assert arguments.endswith("-r lock.txt")
    urls = "https://mirror.example/simple|https://one.example/simple https://two.example/simple"
    assert settings == f"{urls}|/etc/own.pem"
    settings = install(bin_folder, "x", UV_DEFAULT_INDEX="https://mine.example").stdout.splitlines()[1]
    assert settings.startswith("https://mine.example|")


def test_pip_installs_if_uv_fails(bin_folder: Path) -> None:
    executable(bin_folder / "uv", "exit 1")
    result = install(bin_folder, "-r", "lock.txt")
    assert "pip takes over" in result.stderr
    assert result.stdout.strip().endswith("-r lock.txt")

"""The files that run roofcast, read for the tests."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
KUBERNETES = ROOT / "deploy" / "kubernetes"
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")

Manifest = dict[str, Any]


def read_yaml(path: Path) -> Manifest:
    found: Manifest = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


def compose() -> Manifest:
    return read_yaml(ROOT / "compose.yaml")


def manifests() -> dict[str, Manifest]:
    """Return the Kubernetes objects by file name; the kustomization is none of them."""
    return {path.name: read_yaml(path) for path in sorted(KUBERNETES.glob("*.yaml")) if path.stem != "kustomization"}


def container() -> Manifest:
    found: Manifest = manifests()["deployment.yaml"]["spec"]["template"]["spec"]["containers"][0]
    return found


def instructions(word: str) -> list[str]:
    """Return what follows an instruction of the Dockerfile, each in one line."""
    joined = DOCKERFILE.replace("\\\n", " ")
    return re.findall(rf"^\s*{word}\s+(.+)$", joined, re.MULTILINE)


def image_variables() -> dict[str, str]:
    return dict(pair.split("=", 1) for line in instructions("ENV") for pair in line.split())


def server_commands() -> dict[str, list[str]]:
    """Return what each file gives `roofcast` to do."""
    command = next(line for line in instructions("CMD") if "serve" in line and "import" not in line)
    return {
        "Dockerfile": re.findall(r'"([^"]+)"', command),
        "compose.yaml": compose()["services"]["roofcast"]["command"],
        "deployment.yaml": container()["args"],
    }

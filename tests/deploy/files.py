"""Readers of the deployment files."""

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
KUBERNETES = ROOT / "deploy" / "kubernetes"
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")

Manifest = dict[str, Any]


def read_yaml(path: Path) -> Manifest:
    content: Manifest = yaml.safe_load(path.read_text(encoding="utf-8"))
    return content


def compose() -> Manifest:
    return read_yaml(ROOT / "compose.yaml")


def manifests() -> dict[str, Manifest]:
    """Return the Kubernetes objects by file name, without the kustomization."""
    return {path.name: read_yaml(path) for path in sorted(KUBERNETES.glob("*.yaml")) if path.stem != "kustomization"}


def container() -> Manifest:
    content: Manifest = manifests()["deployment.yaml"]["spec"]["template"]["spec"]["containers"][0]
    return content


def instructions(word: str) -> list[str]:
    """Return the arguments of each instruction of a kind in the Dockerfile, one line each."""
    joined = DOCKERFILE.replace("\\\n", " ")
    return re.findall(rf"^\s*{word}\s+(.+)$", joined, re.MULTILINE)


def image_variables() -> dict[str, str]:
    return dict(pair.split("=", 1) for line in instructions("ENV") for pair in line.split())


def server_commands() -> dict[str, list[str]]:
    """Return the arguments of `roofcast` in each file."""
    command = next(line for line in instructions("CMD") if "serve" in line and "import" not in line)
    return {
        "Dockerfile": re.findall(r'"([^"]+)"', command),
        "compose.yaml": compose()["services"]["roofcast"]["command"],
        "deployment.yaml": container()["args"],
    }

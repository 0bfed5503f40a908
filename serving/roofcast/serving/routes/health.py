"""``/healthz`` and ``/readyz``."""

from __future__ import annotations

from fastapi import APIRouter

from roofcast.serving.dependencies import Loaded

router = APIRouter(tags=["health"])


@router.get("/healthz")
def healthz() -> dict[str, str]:
    """Say that the process answers."""
    return {"status": "ok"}


@router.get("/readyz")
def readyz(loaded: Loaded) -> dict[str, str]:
    """Say which predictor is loaded; 503 if none is."""
    return {"status": "ready", "predictor_version": loaded.champion.version}

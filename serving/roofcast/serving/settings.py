"""Settings of the service, from the environment."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from roofcast.data.home import roofcast_home


class Settings(BaseSettings):
    """What the environment may set; each field is the variable ``ROOFCAST_<FIELD>`` unless it says otherwise.

    Parameters
    ----------
    home
        State folder: measurements, registry, bundles, job queue.
    database_url
        Where measurements are kept; blank for an SQLite file under `home`.
    mlflow_tracking_uri
        ``MLFLOW_TRACKING_URI``: an MLflow server; blank for the embedded store under `home`.
    poll_s
        How often a running service looks for a new champion, in seconds.
    max_body_byte
        Largest request body.
    max_row
        Most rows of one prediction request.
    """

    model_config = SettingsConfigDict(env_prefix="ROOFCAST_", frozen=True, extra="ignore")

    home: Path = Field(default_factory=roofcast_home)
    database_url: str = ""
    mlflow_tracking_uri: str = Field(default="", validation_alias="MLFLOW_TRACKING_URI")
    poll_s: float = Field(default=2.0, gt=0, le=3600)
    max_body_byte: int = Field(default=1_000_000, ge=1000)
    max_row: int = Field(default=5_000, ge=1)

    @property
    def store_url(self) -> str:
        """Database URL with the default filled in."""
        return self.database_url or f"sqlite:///{self.home / 'roofcast.sqlite'}"

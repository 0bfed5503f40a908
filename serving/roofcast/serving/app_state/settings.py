"""Settings of the service, from the environment."""

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, ValidationError
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, SettingsConfigDict

from roofcast.data.errors import InputError
from roofcast.data.home import home_path
from roofcast.data.model_config.huggingface import MAX_CONFIG_BYTE
from roofcast.training.config import TrainingConfig

NO_RATE_LIMIT: Final = "off"


def _check_rate(text: str) -> str:
    if text == NO_RATE_LIMIT:
        return ""
    if text:
        from limits import parse_many  # noqa: PLC0415  (needed only with a rate limit)

        parse_many(text)
    return text


def _check_schedule(text: str) -> str:
    if text:
        from roofcast.serving.app_state.retraining_schedule import RetrainingSchedule  # noqa: PLC0415  (needs the queue)

        try:
            RetrainingSchedule(text)
        except ValueError as error:
            raise PydanticCustomError("schedule", "{problem}", {"problem": str(error)}) from error
    return text


Folder = Annotated[Path, AfterValidator(lambda path: path.expanduser().absolute())]
Rate = Annotated[str, AfterValidator(_check_rate)]
Schedule = Annotated[str, AfterValidator(_check_schedule)]


class Settings(BaseSettings):
    """Settings from the environment; each field is the variable ``ROOFCAST_<FIELD>`` unless it has an alias."""

    model_config = SettingsConfigDict(
        env_prefix="ROOFCAST_",
        env_ignore_empty=True,
        frozen=True,
        extra="ignore",
        populate_by_name=True,
        use_attribute_docstrings=True,
    )

    home: Folder = Field(default_factory=home_path)
    """State folder: measurements, registry, bundles, job queue."""
    database_url: str = ""
    """Database of measurements; blank for an SQLite file under `home`."""
    mlflow_tracking_uri: str = Field(default="", validation_alias="MLFLOW_TRACKING_URI")
    """An MLflow server; blank for the embedded store under `home`."""
    bundle_key: Folder | None = None
    """File of the key that signs versions of the predictor, and must have signed those that are served; by default
    ``bundle.key`` under `home`. Services that share an MLflow server have copies of one key."""
    poll_s: float = Field(default=2.0, gt=0, le=3600)
    """Interval at which a running service checks for a new champion, in seconds."""
    max_body_byte: int = Field(default=1_000_000, ge=1000, le=MAX_CONFIG_BYTE)
    """Largest request body."""
    max_body_s: float = Field(default=30.0, gt=0, le=3600)
    """Time limit for the body of a request, in seconds."""
    max_row: int = Field(default=5_000, ge=1)
    """Largest number of rows of a JSON prediction request."""
    max_bulk_byte: int = Field(default=64_000_000, ge=1000)
    """Largest body of a bulk prediction request, in NDJSON or Parquet, and largest uploaded benchmark file."""
    max_bulk_row: int = Field(default=200_000, ge=1)
    """Largest number of rows of a bulk request."""
    max_bulk_request: int = Field(default=4, ge=1)
    """Largest number of concurrent bulk requests of a server process, each with its body on disk; one less for a
    single key or address. Further ones are refused with ``Retry-After``."""
    max_registered_model: int = Field(default=500, ge=0)
    """Most models that are registered with their ``config.json``, by imports and over HTTP; a key of the scope
    ``write`` registers at most half of them."""
    require_key: Literal["write", "all"] = "write"
    """``write``: only writing needs an API key; ``all``: reading, predicting and metrics do too."""
    share_rows: bool = False
    """Whether every caller sees the measurements and models of all API keys. Otherwise a key sees its own and those
    of operators, a caller without a key those of operators, and a key of the scope ``admin`` all."""
    rate_limit: Rate = "1000/second"
    """Largest rate of requests of one key or address, such as ``600/minute`` or ``20/second; 10000/day``, counted by
    each server process; ``off`` for no limit."""
    forwarded_allow_ips: str = Field(default="127.0.0.1", validation_alias="FORWARDED_ALLOW_IPS")
    """Addresses of proxies whose ``X-Forwarded-For`` names the caller, separated by commas; ``*`` for any, where only
    a proxy reaches the service."""
    max_running: int = Field(default=1, ge=1, le=32)
    """Predictions that a server process computes at once; of other requests that are not dear, four times as many."""
    max_dear: int = Field(default=2, ge=1, le=32)
    """Recommendations, explanations and predictions of many rows that a server process computes at once."""
    max_waiting: int = Field(default=64, ge=0)
    """Most requests that wait for a slot, for each of these three kinds."""
    max_wait_s: float = Field(default=0.7, gt=0, le=60)
    """Longest time that a request waits for a slot, in seconds; then it is answered 503."""
    drift_days: float = Field(default=30.0, gt=0, le=36_500)
    """Rows imported in so many latest days are compared with the predictor, in `/metrics` and `/v1/drift`."""
    drain_s: float = Field(default=1.0, ge=0, le=600)
    """Time between a stop signal and the stop, in which `/readyz` reports it, in seconds."""
    log_format: Literal["auto", "json", "text"] = "auto"
    """``json`` lines or ``text``; ``auto`` is text on a terminal and JSON elsewhere."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Lowest level that is logged. ``warning`` omits the line per request; the audit log is always written."""
    retrain_at: Schedule = ""
    """When the worker retrains if measurements were accepted or withdrawn since the last retraining: minute, hour,
    day, month and weekday of cron, in UTC, such as ``30 2 * * *`` for 02:30 each day; blank for never."""
    auto_promote: bool = True
    """Whether a retraining promotes a candidate that is not worse than the champion; otherwise the candidate becomes
    the challenger, or is only registered if it is of training jobs, and an operator promotes it."""
    dask: str = ""
    """Scheduler of a Dask cluster that fits the folds of inference retrainings, such as ``tcp://scheduler:8786``;
    blank for this machine."""
    shadow_ratio: float = Field(default=0.1, ge=0, le=1)
    """Share of the JSON prediction requests that the challenger answers too, unseen; 0 to load no challenger."""
    training: TrainingConfig = TrainingConfig()
    """Settings of retrainings, as JSON; absent fields keep their defaults."""

    @property
    def store_url(self) -> str:
        """Database URL with the default filled in."""
        return self.database_url or f"sqlite:///{self.home / 'roofcast.sqlite'}"

    @property
    def store_file(self) -> Path | None:
        """SQLite file of the store; None with another database."""
        return None if self.database_url else self.home / "roofcast.sqlite"


def load_settings() -> Settings:
    """Return the settings from the environment of this process.

    Raises `InputError` if a variable has an invalid value; names the variable.
    """
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        variable = name if name.isupper() else f"{Settings.model_config['env_prefix']}{name}".upper()
        message = first["msg"]
        raise InputError(variable, f"{message[:1].lower()}{message[1:]}, got {str(first['input'])!r}") from error

"""Folds on a Dask cluster: joblib's backend, and a check that the workers compute what this process would."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib.metadata import version
from typing import Final

from roofcast.data.errors import InputError, NotReadyError
from roofcast.training.lifecycle.fingerprints import code_fingerprint
from roofcast.training.lifecycle.learned_targets import INFERENCE_TARGET

CONNECT_S: Final = 10.0
"""Time limit for the scheduler's answer."""

LIBRARIES: Final = ("roofcast", "numpy", "pandas", "scikit-learn", "scipy", "xgboost-cpu")


def environment() -> dict[str, str]:
    """Return what has to agree for equal fits: versions of libraries, the layout of bundles, and the code."""
    code = code_fingerprint(INFERENCE_TARGET.predictor_file.code)
    return {name: version(name) for name in LIBRARIES} | {"layout": INFERENCE_TARGET.bundles.layout(), "code": code}


@contextmanager
def folds_on(address: str) -> Iterator[None]:
    """Fit the folds of trainings in the block on the workers of a Dask scheduler; in this process if it is blank.

    `address`: such as ``tcp://scheduler:8786``. Raises `InputError` if Dask is not installed, or a worker has other
    versions or other code; `NotReadyError` if the scheduler does not answer, or has no worker.
    """
    if not address:
        with nullcontext():
            yield
        return
    try:
        from distributed import Client  # noqa: PLC0415  (an optional dependency)
    except ModuleNotFoundError as error:
        raise InputError("dask", "needs Dask here and on the workers: pip install 'roofcast[dask]'") from error
    from joblib import parallel_config  # noqa: PLC0415

    try:
        client = Client(address, timeout=CONNECT_S, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise NotReadyError(f"no Dask scheduler answers at {address}: {error}") from error
    with client:
        check_workers(client.run(environment), address)
        with parallel_config(backend="dask", n_jobs=-1, client=client):
            yield


def check_workers(environments: dict[str, dict[str, str]], address: str) -> None:
    """Check that workers fit as this process does.

    `environments`: `environment` of each worker, by its address. Raises `InputError` if a worker differs;
    `NotReadyError` if there is no worker.
    """
    if not environments:
        raise NotReadyError(f"the Dask scheduler at {address} has no worker; start one: dask worker {address}")
    own = environment()
    for worker, other in environments.items():
        different = [f"{name} {other.get(name)}, not {own[name]}" for name in own if other.get(name) != own[name]]
        if different:
            cure = "install the same roofcast and locked dependencies there"
            raise InputError("dask", f"the worker {worker} has {'; '.join(different)}: {cure}")

"""Client of a roofcast service: `Client`, `AsyncClient` and their errors.

It needs httpx and httpx-retries, and nothing of the rest of roofcast. Requests and responses are the typed
dictionaries of `roofcast.client.requests` and `roofcast.client.answers`.
"""

from roofcast.client.asynchronous import AsyncClient
from roofcast.client.blocking import Client
from roofcast.client.errors import (
    InputError,
    NoAnswerError,
    NotAllowedError,
    NotReadyError,
    RoofcastError,
    ServiceError,
    TooManyRequestsError,
    UnknownNameError,
    UnreachableError,
)

__all__ = [
    "AsyncClient",
    "Client",
    "InputError",
    "NoAnswerError",
    "NotAllowedError",
    "NotReadyError",
    "RoofcastError",
    "ServiceError",
    "TooManyRequestsError",
    "UnknownNameError",
    "UnreachableError",
]

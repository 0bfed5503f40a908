"""What routes share: they admit the caller, read body and query within limits, compute in a slot; dependencies."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from http import HTTPStatus
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Final, get_args, get_origin

from fastapi import Depends, Query, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import Receive, Scope, Send

from roofcast.data.errors import MAX_PROBLEM, InputError, NotAllowedError, join_errors, limit_suggestions, near_misses
from roofcast.data.measurements.target import Target
from roofcast.serving.app_state.champion_loader import LoadedModel
from roofcast.serving.composition import Service
from roofcast.serving.http.access import CALLER, KEY, declared_scope
from roofcast.serving.http.body import JSON_TYPE, Kind, accepted_kind, bulk_kind, is_json, read_object
from roofcast.serving.http.problem_details import RefusedError
from roofcast.serving.http.telemetry.health_monitor import HealthMonitor
from roofcast.serving.queue.queue import JobQueue
from roofcast.serving.shadow.shadow import Shadow

if TYPE_CHECKING:
    from roofcast.data.store.api_keys import ApiKey
    from roofcast.data.store.provenance import Origin

BODY: Final = "roofcast.body"
"""Key in the ASGI scope of the file with a bulk body."""

MAX_SUGGESTION: Final = 60
"""Names of a request for which similar ones are looked up, which takes up to milliseconds for each."""

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class GuardedRoute(APIRoute):
    """Route that admits callers of the scope that it declares, and reads JSON within limits."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Admit the caller, then answer."""
        await scope["app"].state.gate.admit(scope, self._scope)
        with limit_suggestions(MAX_SUGGESTION):
            await self.handle_admitted(scope, receive, send)

    async def handle_admitted(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer an admitted caller."""
        await super().handle(scope, receive, send)

    def get_route_handler(self) -> Handler:
        """Return the handler that reads the body first."""
        self._scope = declared_scope(self.dependant)
        return partial(self.respond, super().get_route_handler())

    async def respond(self, handler: Handler, request: Request) -> Response:
        """Return the response to an admitted request, computed in a slot.

        Its body, if any, is a JSON object that every parser reads alike. Refused with 415 are other content types,
        also of an empty body (a form on another site's page sends these); with 422 duplicate fields, NaN and
        infinities, numbers of excessive length, deep nesting, NUL and lone surrogates.
        """
        body = await request.app.state.bodies.read(request)
        async with request.app.state.lanes.slot(request, body):
            kind = request.headers.get("content-type", "")
            if (body or (kind and request.method not in {"GET", "HEAD"})) and not is_json(kind):
                raise RefusedError("unsupported-media-type", f"send the body as {JSON_TYPE}")
            request._body = body
            if body:
                request._json = read_object(body)
            return await handler(request)


class FileRoute(GuardedRoute):
    """Route whose body is a file, which it finds in the scope until the response is sent."""

    async def handle_admitted(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer an admitted caller while the file is open."""
        with scope["app"].state.bodies.bulk_file(scope[CALLER]) as scope[BODY]:
            await super().handle_admitted(scope, receive, send)

    async def respond(self, handler: Handler, request: Request) -> Response:
        """Return the response, computed in a slot once the file is complete."""
        await request.app.state.bodies.store(request, request.scope[BODY])
        async with request.app.state.lanes.slot(request):
            return await handler(request)


class BulkRoute(FileRoute):
    """Route for rows in a file; the JSON route has the same path and documents both."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether a request has a bulk body."""
        return super().matches(scope) if bulk_kind(scope) else (Match.NONE, {})


def response_kind(request: Request, default: Kind) -> Kind:
    """Return the media type of the response by the request's ``Accept``. Raises `RefusedError` if it admits none."""
    kind = accepted_kind(request.headers.get("accept", ""), default)
    if kind is None:
        raise RefusedError("not-acceptable", f"accept one of {', '.join(Kind)}")
    return kind


async def refuse_unknown_parameters(request: Request) -> None:
    """Check the names of the query parameters against those that the route declares.

    Pages for browsers take any: they are no part of the OpenAPI document.

    Raises `InputError` if a parameter is unknown, or given more than once where the route takes one value; names
    each, up to `MAX_PROBLEM`, and of unknown ones the similar ones and those that the route has.
    """
    route = request.scope.get("route")
    if not (request.url.query and isinstance(route, APIRoute) and route.include_in_schema):
        return
    is_list = dict(_parameters(route.dependant))
    counts = Counter(name for name, _ in request.query_params.multi_items())
    errors = (
        InputError(name, f"is given {n} times; give it once") if name in is_list else _unknown(name, [*is_list])
        for name, n in counts.items()
        if name not in is_list or (n > 1 and not is_list[name])
    )
    if first := [*islice(errors, MAX_PROBLEM)]:
        raise join_errors(first)


def _parameters(dependant: Dependant) -> Iterator[tuple[str, bool]]:
    for parameter in dependant.query_params:
        annotation = parameter.field_info.annotation
        yield parameter.alias, list in {get_origin(part) for part in (annotation, *get_args(annotation))}
    for inner in dependant.dependencies:
        yield from _parameters(inner)


_MAX_NAME: Final = 60


def _unknown(name: str, known: list[str]) -> InputError:
    near = near_misses(name, known)
    guess = f"did you mean {' or '.join(near)}? " if near else ""
    takes = f"the route takes {', '.join(known)}" if known else "the route takes none"
    error = InputError(name[:_MAX_NAME], f"is not a query parameter here; {guess}{takes}")
    error.near = near
    return error


def _state(name: str) -> Any:
    async def part(request: Request) -> Any:
        return getattr(request.app.state, name)

    return Depends(part)


Parts = Annotated[Service, _state("service")]
ShadowQueue = Annotated[Shadow, _state("shadow")]
Jobs = Annotated[JobQueue, _state("jobs")]
Health = Annotated[HealthMonitor, _state("health_monitor")]
"""Parts of this process: see `roofcast.serving.http.app`."""


async def active_model(service: Parts) -> LoadedModel:
    """Return the champion; `NotReadyError` becomes 503."""
    return service.active_model


async def today() -> dt.date:
    """Return the date by which prices are stale or not."""
    return dt.datetime.now(dt.UTC).date()


async def owner(request: Request) -> str:
    """Return the name of the caller's API key, which owns its stack profiles; empty without a valid key."""
    kind, _, name = str(request.scope.get(CALLER, "")).partition(":")
    return name if kind == "key" else ""


async def viewer(request: Request, service: Parts) -> str | None:
    """Return the key that reads stored rows, `seen_by` of `roofcast.data.store.claims`: None sees the rows of all."""
    key: ApiKey | None = request.scope[KEY]
    if service.settings.share_rows or (key is not None and key.may("admin")):
        return None
    return key.name if key else ""


def origin_of(request: Request) -> Origin:
    """Return the origin of measurements that a request stores, by its API key."""
    from roofcast.data.store.provenance import Origin  # noqa: PLC0415  (needs SQLAlchemy)

    key: ApiKey = request.scope[KEY]
    return Origin(key.name, key.may("admin"))


async def dry_run(
    response: Response,
    *,
    is_wanted: Annotated[
        bool, Query(alias="dry_run", description="Validate and count the rows, store nothing, and answer 200.")
    ] = False,
) -> bool:
    """Return whether an import only counts; it creates nothing then, so the status is not 201."""
    if is_wanted:
        response.status_code = HTTPStatus.OK
    return is_wanted


ActiveModel = Annotated[LoadedModel, Depends(active_model)]
Today = Annotated[dt.date, Depends(today)]
Owner = Annotated[str, Depends(owner)]
Viewer = Annotated[str | None, Depends(viewer)]


async def claim_of_keys(
    request: Request,
    *,
    is_wanted: Annotated[
        bool,
        Query(
            alias="claim",
            description="Make rows that API keys own the operator's: they then teach as measurements of the "
            "service's own stack. For keys of the scope admin.",
        ),
    ] = False,
) -> bool:
    """Return whether an operator's import claims the rows of keys.

    Raises `NotAllowedError` if the caller is no operator.
    """
    key: ApiKey = request.scope[KEY]
    if is_wanted and not key.may("admin"):
        cure = "leave it out, or send a key of the scope admin"
        raise NotAllowedError(
            "claim", f"the key {key.name!r} has the scope {key.scope}, which claims nothing; {cure}"
        )
    return is_wanted


ClaimOfKeys = Annotated[bool, Depends(claim_of_keys)]
DryRun = Annotated[bool, Depends(dry_run)]
Compare = Annotated[bool, Query(description="Compare the new rows with the predictor before the answer.")]
TargetQuery = Annotated[Target, Query(description="What the predictor is about: inference, or training jobs.")]

"""Routes that admit the caller, read the body and the query within limits, and compute in a slot."""

from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from itertools import islice
from typing import Any, Final, get_args, get_origin

from fastapi import Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import Receive, Scope, Send

from roofcast.data.errors import MAX_PROBLEM, InputError, join_errors, limit_suggestions, near_misses
from roofcast.serving.http.access import CALLER, declared_scope
from roofcast.serving.http.body import JSON_TYPE, Kind, accepted_kind, bulk_kind, is_json, read_object
from roofcast.serving.http.problem_details import RefusedError

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

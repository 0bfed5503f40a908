"""Refusal of query parameters that a route does not have: a misspelt `dry_run` must not store a file."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from roofcast.data.errors import MAX_PROBLEM, InputError, join_errors, near_misses


async def refuse_unknown_parameters(request: Request) -> None:
    """Check the names of the query parameters against those that the route declares.

    Pages for browsers take any: they are no part of the OpenAPI document.

    Raises
    ------
    InputError
        If a parameter is unknown; names each, up to `MAX_PROBLEM`, the similar ones and those that the route has.
    """
    route = request.scope.get("route")
    if not (request.url.query and isinstance(route, APIRoute) and route.include_in_schema):
        return
    known = dict.fromkeys(_names(route.dependant))
    unknown = islice((name for name in request.query_params if name not in known), MAX_PROBLEM)
    if errors := [_unknown(name, [*known]) for name in unknown]:
        raise join_errors(errors)


def _names(dependant: Dependant) -> Iterator[str]:
    yield from (parameter.alias for parameter in dependant.query_params)
    for inner in dependant.dependencies:
        yield from _names(inner)


_MAX_NAME: Final = 60


def _unknown(name: str, known: list[str]) -> InputError:
    near = near_misses(name, known)
    guess = f"did you mean {' or '.join(near)}? " if near else ""
    takes = f"the route takes {', '.join(known)}" if known else "the route takes none"
    error = InputError(name[:_MAX_NAME], f"is not a query parameter here; {guess}{takes}")
    error.near = near
    return error

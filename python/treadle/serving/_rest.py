"""POST /v2/models/NAME/infer: as the SDK's route, and binary data never become lists of numbers."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from . import _v2
from ._sdk import starlette
from ._service import Service
from ._steps import BadStep, StepError, Unavailable

JSON_SIZE = "inference-header-content-length"


class _TooLarge(BadStep):
    """413."""


def infer_route(service: Service, max_bytes: int) -> Callable[[Any], Awaitable[Any]]:
    """What answers a POST; a body of more than `max_bytes` is refused before it has come."""

    async def infer(request: Any) -> Any:
        try:
            size = request.headers.get(JSON_SIZE)
            if size is not None and not size.isdecimal():
                raise BadStep(f"the header Inference-Header-Content-Length is '{size}'")
            body = await _body(request, max_bytes)
            response = await service.infer(_v2.from_rest(body, int(size) if size is not None else None))
            body, json_size = _v2.to_rest(response, service.streams.name)
        except StepError as e:
            status = 503 if isinstance(e, Unavailable) else 413 if isinstance(e, _TooLarge) else 400
            return _response(json.dumps({"error": str(e)}).encode(), status)
        if json_size is None:
            return _response(body, 200)
        return _response(body, 200, {JSON_SIZE: str(json_size)}, "application/octet-stream")

    return infer


def _response(
    body: bytes, status: int, headers: dict[str, str] | None = None, media_type: str = "application/json"
) -> Any:
    return starlette.responses.Response(body, status, headers, media_type)


async def _body(request: Any, max_bytes: int) -> bytes:
    """The body of a request."""
    parts, size = [], 0
    said = request.headers.get("content-length", "0")
    if said.isdecimal() and int(said) > max_bytes:
        raise _TooLarge(f"the request has {said} bytes, and {max_bytes} are allowed")
    async for part in request.stream():
        parts.append(part)
        size += len(part)
        if size > max_bytes:
            raise _TooLarge(f"the request has more than the {max_bytes} bytes that are allowed")
    return b"".join(parts)

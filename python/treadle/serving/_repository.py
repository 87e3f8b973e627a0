"""Who may load and unload models over the network."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from ._sdk import starlette

PATH = "/v2/repository/"
OFF = "loading and unloading models is off; a server with --repository_token_file lets callers that have its token"
MISSING = "loading and unloading models needs the header 'Authorization: Bearer TOKEN' with the server's token"


class Permission:
    """Permits callers that send the token to load and unload models; without a token, no caller."""

    def __init__(self, token: str | None) -> None:
        """Raises ValueError for a token that is empty or cannot stand in a header."""
        if token is not None and not (token.isascii() and token.isprintable() and token.strip() == token != ""):
            raise ValueError("the token for loading and unloading models has to be printable ASCII, not empty")
        self._expected = None if token is None else f"Bearer {token}".encode()

    @property
    def is_off(self) -> bool:
        """Whether no caller is permitted."""
        return self._expected is None

    def refusal(self, authorization: bytes) -> str | None:
        """Why a caller with this header may not; None where it may. The time it takes tells nothing of the token."""
        if self._expected is None:
            return OFF
        return None if hmac.compare_digest(authorization, self._expected) else MISSING


class Guard:
    """An application whose routes for loading and unloading ask for the token."""

    def __init__(self, app: Callable[..., Awaitable[None]], permission: Permission) -> None:
        self._app, self._permission = app, permission

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        """Answers a request that is refused, and hands on all others."""
        if scope["type"] == "http" and scope["path"].startswith(PATH):
            refusal = self._permission.refusal(dict(scope["headers"]).get(b"authorization", b""))
            if refusal is not None:
                status = 403 if self._permission.is_off else 401
                headers = {} if self._permission.is_off else {"WWW-Authenticate": "Bearer"}
                await starlette.responses.JSONResponse({"error": refusal}, status, headers)(scope, receive, send)
                return
        await self._app(scope, receive, send)

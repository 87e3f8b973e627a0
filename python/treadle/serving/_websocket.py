"""One stream per WebSocket: binary frames of samples in, binary frames of results out.

The route is a plain ASGI application, so that a frame costs little, and needs no import of a third party.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import json
import math
import re
import uuid
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from . import _v2
from ._service import STATE, Service, flag
from ._steps import Answer, BadStep, Step, StepError, Unavailable, UnknownSequence

SEND_S = 30.0  # a peer that takes in nothing for so long has gone
ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#\s]+")
DONE, BAD, RESTART, LATER = 1000, 1008, 1012, 1013  # codes of closing

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class _Closed(Exception):
    """The connection has come to its end."""


class Sockets:
    """The WebSocket route of a model; an ASGI application."""

    def __init__(self, service: Service, allow_origins: Collection[str] = ()) -> None:
        """`service`: the service that also answers REST and gRPC, so that all streams share one pool.

        `allow_origins`: other origins whose pages may connect, such as "https://example.org"; "*": all. ValueError for a
        text that is no origin.
        """
        for origin in allow_origins:
            if origin != "*" and not ORIGIN.fullmatch(origin):
                raise ValueError(f"{origin!r} is no origin: expected SCHEME://HOST or SCHEME://HOST:PORT, or *")
        self.service = service
        self._origins = frozenset(allow_origins)
        self.open: set[Socket] = set()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serves one connection until its end; a page of another site is refused (403)."""
        if not self._lets_in(scope):
            await receive()
            await send({"type": "websocket.close", "code": BAD})
            return
        socket = Socket(self.service, receive, send)
        self.open.add(socket)
        try:
            await socket.serve()
        except (_Closed, TimeoutError, OSError):
            pass
        finally:
            self.open.discard(socket)
            await self.service.batcher.submit(lambda: self.service.streams.leave(socket.id))

    def _lets_in(self, scope: Message) -> bool:
        """Whether no page asks, as programs that are no browsers have no origin, or one of this server or an allowed one.

        Browsers let any page open a WebSocket anywhere, and tell the server whose page it is.
        """
        headers: dict[bytes, str] = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if (origin := headers.get(b"origin")) is None or "*" in self._origins or origin in self._origins:
            return True
        return origin.partition("://")[2] == headers.get(b"host")

    async def retire(self) -> None:
        """Every connection that waits for samples gets its snapshot and is closed; the others with their next answer."""
        await asyncio.gather(*(socket.hand_out() for socket in list(self.open)), return_exceptions=True)


class Socket:
    """One connection, and its stream."""

    def __init__(self, service: Service, receive: Receive, send: Send) -> None:
        """Nothing has been received."""
        self._service, self._receive, self._send = service, receive, send
        self.id = f"websocket {uuid.uuid4().hex}"
        self._specs: list[tuple[str, np.dtype[Any], list[int]]] = []
        self._outputs: list[int] = []
        self._frames: list[bytes] = []
        self._last: dict[str, NDArray[Any]] = {}
        self._start, self._state = True, b""
        self._busy = True

    async def serve(self) -> None:
        """From the handshake on."""
        await self._receive()
        await self._send({"type": "websocket.accept"})
        if self._service.streams.retiring:
            await self._close(RESTART, f"model '{self._service.streams.name}' is about to end here")
        try:
            await self._open(await self._next())
            while True:
                message = await self._next()
                if (data := message.get("bytes")) is not None:
                    await self._frame(data)
                else:
                    await self._text(message["text"])
        except UnknownSequence as e:
            await self._close(BAD, str(e))
        except Unavailable as e:
            await self._close(LATER, str(e))
        except StepError as e:
            await self._close(BAD, str(e))

    async def _next(self) -> Message:
        """The next message; one that does not come within the time that streams may be idle ends the connection."""
        self._busy = False
        try:
            async with asyncio.timeout(self._service.streams.idle_s):
                message = await self._receive()
        except TimeoutError:
            await self._close(BAD, f"nothing came for {self._service.streams.idle_s} seconds")
        self._busy = True
        if message["type"] == "websocket.disconnect":
            raise _Closed
        return message

    async def _open(self, message: Message) -> None:
        """The text in front: a v2 request without data."""
        if message.get("text") is None:
            raise BadStep("a stream begins with a text frame: a v2 request without data")
        found = _v2.as_object(message["text"], "the text frame")
        self._take_inputs(found.get("inputs"))
        names = self._service.streams.output_names
        asked = [_member(entry, "name") for entry in _listed(found.get("outputs", []), "outputs")] or names
        if unknown := [name for name in asked if name not in names]:
            raise BadStep(
                f"model '{self._service.streams.name}' has no output {unknown[0]!r}: it has {', '.join(names)}"
            )
        self._outputs = [names.index(name) for name in asked]
        parameters = found.get("parameters", {})
        if not isinstance(parameters, dict):
            raise BadStep("'parameters' is no object")
        for name in parameters:
            if name not in (STATE, "sequence_start"):
                raise BadStep(f"the parameter {name!r} is none of a stream: the connection is the sequence")
        self._state = decoded(parameters.get(STATE, ""))
        metadata = {entry["name"]: entry for entry in self._service.outputs()}
        said = {"model_name": self._service.streams.name, "outputs": [metadata[name] for name in asked]}
        await self._say({"type": "websocket.send", "text": json.dumps(said)})

    def _take_inputs(self, given: Any) -> None:
        """What the binary frames of a step are; by default the inputs that the model's metadata has."""
        entries = _listed(given if given is not None else self._service.inputs(), "inputs")
        for entry in entries:
            name, shape = _member(entry, "name"), entry.get("shape")
            if not isinstance(shape, list) or not all(type(n) is int and n >= -1 for n in shape):
                raise BadStep(
                    f"input '{name}' has the shape {shape!r}, expected sizes, and -1 for what the frame decides"
                )
            if given is None:
                shape = self._own_shape(name, shape)
            if shape.count(-1) > 1:
                raise BadStep(f"input '{name}' has the shape {shape}: a frame decides one size")
            self._specs.append((name, _v2.dtype_of(name, _member(entry, "datatype")), shape))
            if self._specs[-1][1].kind == "O":
                raise BadStep(f"input '{name}' holds texts, which frames do not")

    def _own_shape(self, name: str, shape: list[int]) -> list[int]:
        """One entry of the batch."""
        signature = self._service.streams.signature
        batch = signature.batch_axis(name)
        return [1 if axis == batch and size == -1 else size for axis, size in enumerate(shape)]

    async def _frame(self, data: bytes) -> None:
        """A binary frame: the next input of a step, which is made when all of its inputs are there."""
        self._frames.append(data)
        if len(self._frames) < len(self._specs):
            return
        frames, self._frames = self._frames, []
        try:
            inputs = {spec[0]: _array(data, spec) for data, spec in zip(frames, self._specs, strict=True)}
            await self._step(inputs)
            self._last = inputs
        except BadStep as e:
            if self._start:  # there is no stream yet, and none will be
                raise
            await self._say({"type": "websocket.send", "text": json.dumps({"error": str(e)})})

    async def _step(self, inputs: dict[str, NDArray[Any]], end: bool = False) -> None:
        step = Step(self.id, inputs, self._start, end, state=self._state)
        answer: Answer = await self._service.batcher.submit(step)
        self._start, self._state = False, b""
        arrays = self._service.arrays(answer.outputs)
        for k in self._outputs:
            await self._say({"type": "websocket.send", "bytes": _v2.raw(arrays[k])})
        if answer.moved:
            await self._give(answer.state, moved=True)
            await self._close(RESTART, "the server is about to end; go on from the snapshot")

    async def _text(self, text: str) -> None:
        """A text frame behind the first one: a snapshot, or the end."""
        parameters = _v2.as_object(text, "the text frame").get("parameters")
        if not isinstance(parameters, dict) or parameters.keys() - {"snapshot", "sequence_end"} or not parameters:
            raise BadStep('a text frame asks for a snapshot or the end: {"parameters": {"snapshot": true}}')
        if flag(parameters, "snapshot"):
            await self._give(b"" if self._start else await self._snapshot())
        if flag(parameters, "sequence_end"):
            if not self._service.streams.signature.steps_only:
                await self._step(self._nothing(), end=True)
            await self._close(DONE, "")

    async def _snapshot(self) -> bytes:
        state: bytes = await self._service.batcher.submit(lambda: self._service.streams.snapshot(self.id))
        return state

    def _nothing(self) -> dict[str, NDArray[Any]]:
        """Inputs of a step without samples; inputs that have no time axis are those of the last step."""
        timed = self._service.streams.signature.timed
        inputs = {}
        for name, dtype, shape in self._specs:
            empty = np.zeros([0 if axis == timed.get(name) else max(n, 0) for axis, n in enumerate(shape)], dtype)
            inputs[name] = empty if name in timed else self._last.get(name, empty)
        return inputs

    async def _give(self, state: bytes, moved: bool = False) -> None:
        parameters: dict[str, Any] = {STATE: base64.b64encode(state).decode()}
        if moved:
            parameters["treadle_moved"] = True
        await self._say({"type": "websocket.send", "text": json.dumps({"parameters": parameters})})

    async def hand_out(self) -> None:
        """The server is about to end: the snapshot, and the end of the connection, where no answer is on its way."""
        if self._busy:
            return
        self._busy = True
        if not self._start:
            await self._give(await self._service.batcher.submit(self._moved), moved=True)
        with contextlib.suppress(_Closed):
            await self._close(RESTART, "the server is about to end; go on from the snapshot")

    def _moved(self) -> bytes:
        """The snapshot of a stream that leaves."""
        return self._service.streams.hand_out(self.id)

    async def _close(self, code: int, reason: str) -> NoReturn:
        """Says why, and ends the connection."""
        if code != DONE:
            await self._say({"type": "websocket.send", "text": json.dumps({"error": reason})})
        await self._say(
            {"type": "websocket.close", "code": code, "reason": reason.encode()[:120].decode(errors="ignore")}
        )
        raise _Closed

    async def _say(self, message: Message) -> None:
        async with asyncio.timeout(SEND_S):
            await self._send(message)


def _array(data: bytes, spec: tuple[str, np.dtype[Any], list[int]]) -> NDArray[Any]:
    name, dtype, shape = spec
    known = math.prod(n for n in shape if n >= 0) * dtype.itemsize
    free = -1 in shape
    if free and known and len(data) % known == 0:
        shape = [len(data) // known if n == -1 else n for n in shape]
    elif free or len(data) != known:
        raise BadStep(f"a frame of input '{name}' has {len(data)} bytes, expected {_v2.NAMES[dtype]} {shape}")
    return np.frombuffer(data, dtype).reshape(shape)


def _listed(found: Any, what: str) -> list[dict[str, Any]]:
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise BadStep(f"'{what}' is no list of objects")
    return found


def _member(entry: dict[str, Any], key: str) -> str:
    if not isinstance(value := entry.get(key), str):
        raise BadStep(f"'{key}' is {value!r}, expected a text")
    return value


def decoded(text: Any) -> bytes:
    """A snapshot as texts carry it: base64."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, TypeError, ValueError) as e:
        raise BadStep(f"'{STATE}' is not base64: {e}") from e

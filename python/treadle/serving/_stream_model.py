"""A model whose requests are steps of streams, as the kserve SDK serves it."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any

from .. import InferenceSession, SessionOptions
from . import _v2
from ._metrics import Metrics
from ._page import page_route
from ._rest import infer_route
from ._sdk import (
    InferOutput,
    InferRequest,
    InferResponse,
    InvalidInput,
    Model,
    ModelNotReady,
    RequestedOutput,
    app,
    starlette,
    to_http_parameters,
)
from ._service import Service
from ._steps import BadStep, StepError, Unavailable
from ._v2 import Request, Response
from ._websocket import Sockets
from .streams import Streams


class _Unavailable(ModelNotReady):
    """The SDK makes 503 and UNAVAILABLE of it, with this text."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(name)
        self.reason = self.error_msg = text


class StreamModel(Model):
    """A model of the SDK whose requests are steps of sequences.

    REST, REST with binary data and gRPC as Triton has them: `sequence_id`, `sequence_start` and `sequence_end` as
    parameters, or as tensors for many streams in one request; `treadle_state` is a snapshot. WebSockets at
    `/v2/models/NAME/stream`. All of them share one pool. `/v2/models/NAME/page` is a page for browsers.
    """

    def __init__(
        self,
        name: str,
        model: str | os.PathLike[str] | bytes,
        *,
        capacity: int = 4096,
        idle_s: float = 300.0,
        max_delay_s: float = 0.0,
        max_request_bytes: int = 16 << 20,
        websocket: bool = True,
        allow_origins: Collection[str] = (),
        page: bool = True,
        sample_rate: int = 16000,
        sess_options: SessionOptions | None = None,
        **stream: Any,
    ) -> None:
        """Loads the model, from a path or from bytes.

        `capacity`, `idle_s`: as for `Streams`. `max_delay_s`: seconds that a step may wait for others to make a batch
        with. `max_request_bytes`: a REST request with more is refused (413). `websocket`, `page`: whether
        there are these routes; the page needs the other. `allow_origins`: pages of other sites that may use the WebSocket
        route, such as "https://example.org"; "*": all. `sample_rate`: of the sound that the page sends, per second.
        `sess_options`: one thread by default. `stream`: how streams are made, as for `InferenceSession.streams`. Raises
        ValueError for a page without WebSockets, a rate that the page cannot send or a text that is no origin, and what
        making session and streams raises.
        """
        super().__init__(name)
        self._model = model if isinstance(model, bytes) else os.fspath(model)
        self._options = sess_options or one_thread()
        if page and not websocket:
            raise ValueError(
                f"model '{name}': the page needs the WebSocket route; give page=False with websocket=False"
            )
        if not 100 <= sample_rate <= 384_000:
            raise ValueError(f"model '{name}': sample_rate is {sample_rate}, expected 100 to 384000 samples per second")
        self._websocket, self._max_request_bytes = websocket, max_request_bytes
        self._page, self._sample_rate = page, sample_rate
        streams = Streams(self._session(), name=name, capacity=capacity, idle_s=idle_s, **stream)
        self.service = Service(streams, max_delay_s)
        self.sockets = Sockets(self.service, allow_origins)
        self._routed = False
        self.ready = True

    def _session(self) -> InferenceSession:
        return InferenceSession(self._model, self._options)

    @property
    def streams(self) -> Streams:
        """The streams that live."""
        return self.service.streams

    def __repr__(self) -> str:
        """The name, and the streams."""
        return f"<treadle.serving.kserve.StreamModel '{self.name}': {self.streams!r}>"

    def load(self) -> bool:
        """Reads the model's file again; streams go on with the new model. Raises, and changes nothing, where they cannot.

        The SDK calls it for POST /v2/repository/models/NAME/load.
        """
        self.streams.reload(self._session())
        self.ready = True
        return self.ready

    def start(self) -> None:
        """Adds the routes of the model to the SDK's application, and its counts to /metrics. The SDK calls it."""
        if not self._routed:
            self._route()
            self._routed = True
        Metrics.of_process().add(self.streams)
        self.ready = True

    def _route(self) -> None:
        answer = infer_route(self.service, self._max_request_bytes)
        routes = [starlette.routing.Route(f"/v2/models/{self.name}/infer", answer, methods=["POST"])]
        if self._websocket:
            routes.append(starlette.routing.WebSocketRoute(f"/v2/models/{self.name}/stream", self.sockets))
        if self._page:
            page = page_route(self._sample_rate)
            routes.append(starlette.routing.Route(f"/v2/models/{self.name}/page", page, methods=["GET"]))
        app.router.routes[:0] = routes  # in front of the SDK's own

    def stop(self) -> None:
        """Streams have left, with their snapshots lost; `retire` hands them out. The SDK calls it at its end."""
        self.ready = False
        Metrics.of_process().remove(self.streams)
        self.streams.drain()

    async def retire(self) -> None:
        """No stream starts any more; those on WebSockets get their snapshots now, others with the answer to their next step."""
        self.ready = False
        self.streams.retire()
        await self.sockets.retire()

    def get_input_types(self) -> list[dict[str, Any]]:
        """Names, datatypes and shapes of a step's inputs, without states and bound inputs."""
        return self.service.inputs()

    def get_output_types(self) -> list[dict[str, Any]]:
        """Names, datatypes and shapes of a step's outputs."""
        return self.service.outputs()

    async def predict(
        self, payload: Any, headers: Mapping[str, str] | None = None, response_headers: dict[str, str] | None = None
    ) -> Any:
        """The answer to an InferRequest as an InferResponse; InvalidInput and ModelNotReady where it is refused."""
        if not isinstance(payload, InferRequest):
            raise InvalidInput(f"model '{self.name}' is asked by the Open Inference Protocol v2")
        try:
            return _to_sdk(self.name, payload, await self.service.infer(_from_sdk(payload)))
        except Unavailable as e:
            raise _Unavailable(self.name, str(e)) from e
        except StepError as e:
            raise InvalidInput(str(e)) from e


def one_thread() -> SessionOptions:
    """Options of a session that leaves other cores to other processes."""
    options = SessionOptions()
    options.intra_op_num_threads = 1
    return options


def _from_sdk(payload: Any) -> Request:
    inputs = {}
    for given in payload.inputs:
        try:
            inputs[given.name] = given.as_numpy()
        except (ValueError, TypeError, OverflowError) as e:
            raise BadStep(f"input '{given.name}' is not {given.datatype} {given.shape}: {e}") from e
    parameters = to_http_parameters(payload.parameters or {})
    parameters.pop("binary_data_output", None)
    binary = bool(payload.from_grpc or payload.use_binary_outputs)
    asked = payload.request_outputs or []
    outputs = {o.name: binary if o.binary_data is None else bool(o.binary_data) for o in asked}
    return Request(inputs, parameters, outputs or None, payload.id or "", binary)


def _to_sdk(name: str, payload: Any, response: Response) -> Any:
    outputs, asked = [], []
    for key, (array, binary) in response.outputs.items():
        output = InferOutput(key, list(array.shape), _v2.NAMES[array.dtype])
        output.set_data_from_numpy(array, binary_data=binary or payload.from_grpc)
        outputs.append(output)
        asked.append(RequestedOutput(key, {"binary_data": binary}))
    return InferResponse(
        response.id,
        name,
        outputs,
        from_grpc=payload.from_grpc,
        parameters=response.parameters or None,
        use_binary_outputs=payload.use_binary_outputs,
        requested_outputs=asked,
    )

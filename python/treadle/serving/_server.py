"""One process with REST, WebSockets and gRPC: the SDK's servers, bound where the caller wants them, ended with grace."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
from collections.abc import Iterator, Sequence
from typing import Any

from ._grpc import Servicer
from ._repository import Guard, Permission
from ._sdk import (
    APP,
    DataPlane,
    ModelRepository,
    ModelRepositoryExtension,
    RESTServer,
    app,
    grpc,
    pb_grpc,
)
from ._sdk import Server as UvicornServer
from ._service import EXTENSIONS
from ._stream_model import StreamModel

log = logging.getLogger("treadle.serving")


class _Models(ModelRepository):
    """Models by name, which can be loaded again."""

    def load(self, name: str) -> bool:
        """Reads the model's file again. Raises KeyError when there is no such model, and the errors of loading."""
        model = self.get_model(name)
        if model is None:
            raise KeyError(f"there is no model '{name}'")
        return bool(model.load())


class _DataPlane(DataPlane):
    """The SDK's data plane; its metadata list the extensions for streams."""

    def metadata(self) -> dict[str, Any]:
        found: dict[str, Any] = super().metadata()
        return {**found, "extensions": [*found["extensions"], *EXTENSIONS]}

    async def ready(self) -> bool:
        """Whether every model takes new streams."""
        return all([await self.model_registry.is_model_ready(name) for name in self.model_registry.get_models()])


class _Rest(UvicornServer):
    """Leaves signals to the process; says where it listens."""

    told = ""

    async def startup(self, *arguments: Any, **more: Any) -> None:
        await super().startup(*arguments, **more)
        log.info("%s", self.told)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Server:
    """REST, WebSockets and gRPC for models, until a signal ends it."""

    def __init__(
        self,
        models: Sequence[StreamModel],
        *,
        host: str = "127.0.0.1",
        http_port: int = 8080,
        grpc_port: int | None = 8081,
        drain_s: float = 10.0,
        max_message_bytes: int = 16 << 20,
        repository_token: str | None = None,
    ) -> None:
        """`grpc_port`: None for no gRPC. `drain_s`: seconds that streams have at the end to fetch their snapshots.

        `max_message_bytes`: of a gRPC message and of a WebSocket's frame. `repository_token`: callers that have it may
        load and unload models; None: no caller may. Raises ValueError for an empty one.
        """
        permission = Permission(repository_token)
        self._models = list(models)
        self._host, self._grpc_port, self._drain_s = host, grpc_port, drain_s
        registry = _Models()
        for model in models:
            registry.update(model)
        plane, extension = _DataPlane(registry), ModelRepositoryExtension(registry)
        rest = RESTServer(APP, plane, extension, http_port, grace_period=5)
        rest.config.app = Guard(app, permission)
        rest.config.host = host
        rest.config.ws_max_size = max_message_bytes
        rest.config.ws_per_message_deflate = False  # samples hardly shrink, and frames cost more than a step
        self._prepare, self._rest = rest.create_application, _Rest(rest.config)
        self._servicer, self._max_message_bytes = Servicer(plane, extension, permission), max_message_bytes
        rpc = f"gRPC at {host}:{grpc_port}" if grpc_port else "no gRPC"
        names = ", ".join(model.name for model in models)
        self._rest.told = f"serving {names}: REST and WebSockets at http://{host}:{http_port}, {rpc}"
        self._ending = False

    def run(self) -> None:
        """Serves until SIGINT, SIGTERM or SIGQUIT; a second one ends without waiting for streams.

        Raises OSError where gRPC cannot listen, and SystemExit where REST cannot.
        """
        with asyncio.Runner(loop_factory=self._rest.config.get_loop_factory()) as runner:
            runner.run(self.serve())

    async def serve(self) -> None:
        """The same, in an event loop that runs."""
        for model in self._models:
            model.start()
        self._prepare()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT):
            loop.add_signal_handler(number, self.end)
        rpc = await self._start_grpc()
        self._tasks: set[asyncio.Task[None]] = set()
        # Objects of the imported packages live as long as the process. Each full garbage collection would walk them all:
        # 75 to 90 ms, about once a second under load.
        gc.collect()
        gc.freeze()
        try:
            await self._rest.serve()
        finally:
            gc.unfreeze()
            if rpc is not None:
                await rpc.stop(grace=1.0)
            for model in self._models:
                model.stop()

    async def _start_grpc(self) -> Any:
        if self._grpc_port is None:
            return None
        size = self._max_message_bytes
        options = [("grpc.max_receive_message_length", size), ("grpc.max_send_message_length", size)]
        # With it, a second process on the port would take a share of the connections, and of the steps of live streams.
        options.append(("grpc.so_reuseport", 0))
        server = grpc.aio.server(options=options)
        pb_grpc.add_GRPCInferenceServiceServicer_to_server(self._servicer, server)
        address = f"{self._host}:{self._grpc_port}"
        try:
            server.add_insecure_port(address)
        except RuntimeError as e:
            raise OSError(f"gRPC cannot listen at {address}: its own line says why; is the port taken?") from e
        await server.start()
        return server

    def end(self) -> None:
        """Hands streams out, and ends when they have gone, or after `drain_s`; at once where it is called again."""
        if self._ending:
            self._rest.should_exit = True
            return
        self._ending = True
        task = asyncio.get_running_loop().create_task(self._drain())
        self._tasks.add(task)

    async def _drain(self) -> None:
        loop = asyncio.get_running_loop()
        latest = loop.time() + self._drain_s
        await asyncio.gather(*(model.retire() for model in self._models), return_exceptions=True)
        while any(len(model.streams) for model in self._models) and loop.time() < latest and not self._rest.should_exit:
            await asyncio.sleep(0.05)
        for model in self._models:
            if left := len(model.streams):
                log.warning("model '%s' ends with %d streams that have not fetched their snapshots", model.name, left)
        self._rest.should_exit = True

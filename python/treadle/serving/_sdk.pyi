"""What treadle uses of the kserve SDK, for type checkers that have not installed it."""

from collections.abc import Mapping
from typing import Any

APP: str
app: Any
grpc: Any
pb: Any
pb_grpc: Any
prometheus_client: Any
starlette: Any
uvicorn: Any
ExceptionToStatusInterceptor: Any
InferOutput: Any
InferRequest: type[Any]
InferResponse: Any
ModelRepositoryExtension: Any
RESTServer: Any
RequestedOutput: Any

class InvalidInput(ValueError):
    def __init__(self, reason: str) -> None: ...

class ModelNotReady(RuntimeError):
    error_msg: str
    def __init__(self, model_name: str, detail: str | None = ...) -> None: ...

class Model:
    name: str
    ready: bool
    def __init__(self, name: str) -> None: ...

class ModelRepository:
    def get_model(self, name: str) -> Any: ...
    def get_models(self) -> dict[str, Any]: ...
    async def is_model_ready(self, name: str) -> bool: ...
    def update(self, model: Model, name: str | None = ...) -> None: ...

class DataPlane:
    model_registry: ModelRepository
    def __init__(self, model_registry: ModelRepository) -> None: ...
    def metadata(self) -> dict[str, Any]: ...
    async def ready(self) -> bool: ...

class InferenceServicer:
    _data_plane: Any
    def __init__(self, data_plane: DataPlane, model_repository_extension: Any) -> None: ...
    async def ModelInfer(self, request: Any, context: Any) -> Any: ...
    async def ServerMetadata(self, request: Any, context: Any) -> Any: ...

class Server:
    """uvicorn's."""

    should_exit: bool
    config: Any
    def __init__(self, config: Any) -> None: ...
    async def serve(self) -> None: ...

def to_http_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]: ...

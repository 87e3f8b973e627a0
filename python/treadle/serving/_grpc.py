"""gRPC's ModelInfer for streams: messages become arrays and back without a detour."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _v2
from ._repository import Permission
from ._sdk import InferenceServicer, InvalidInput, ModelNotFound, ModelNotReady, grpc, pb
from ._service import EXTENSIONS, Service
from ._steps import BadStep, StepError, Unavailable
from ._v2 import Request, Response

CONTENTS = {
    "BOOL": "bool_contents",
    **dict.fromkeys(("INT8", "INT16", "INT32"), "int_contents"),
    **dict.fromkeys(("UINT8", "UINT16", "UINT32"), "uint_contents"),
    "INT64": "int64_contents",
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    "BYTES": "bytes_contents",
}


class Servicer(InferenceServicer):
    """The SDK's service, with requests for streams answered here, and its errors told as statuses.

    The SDK has an interceptor for the latter, which costs each request as much as a hundred steps.
    """

    def __init__(self, plane: Any, extension: Any, permission: Permission) -> None:
        """`permission`: decides which callers may load and unload models."""
        super().__init__(plane, extension)
        self._permission = permission

    async def ModelInfer(self, request: Any, context: Any) -> Any:
        """The answer to a request, or a status with the reason."""
        model = self._data_plane.model_registry.get_model(request.model_name)
        service = getattr(model, "service", None)
        if not isinstance(service, Service):
            return await _told(super().ModelInfer(request, context), context, pb.ModelInferResponse)
        try:
            return to_grpc(await service.infer(from_grpc(request)), request.model_name)
        except StepError as e:
            return _refuse(context, e, str(e), pb.ModelInferResponse)

    async def ModelMetadata(self, request: Any, context: Any) -> Any:
        """Inputs and outputs of a model."""
        return await _told(super().ModelMetadata(request, context), context, pb.ModelMetadataResponse)

    async def ModelReady(self, request: Any, context: Any) -> Any:
        """Whether a model takes new streams."""
        return await _told(super().ModelReady(request, context), context, pb.ModelReadyResponse)

    async def RepositoryModelLoad(self, request: Any, context: Any) -> Any:
        """Reads the file of a model again."""
        if self._refuses(context):
            return pb.RepositoryModelLoadResponse()
        done = super().RepositoryModelLoad(request, context)
        return await _told(done, context, pb.RepositoryModelLoadResponse)

    async def RepositoryModelUnload(self, request: Any, context: Any) -> Any:
        """Ends a model."""
        if self._refuses(context):
            return pb.RepositoryModelUnloadResponse()
        done = super().RepositoryModelUnload(request, context)
        return await _told(done, context, pb.RepositoryModelUnloadResponse)

    def _refuses(self, context: Any) -> bool:
        """Whether a caller may not load and unload models; the status then says so."""
        given = dict(context.invocation_metadata() or ()).get("authorization", "")
        refusal = self._permission.refusal(given.encode())
        if refusal is not None:
            codes = grpc.StatusCode
            context.set_code(codes.PERMISSION_DENIED if self._permission.is_off else codes.UNAUTHENTICATED)
            context.set_details(refusal)
        return refusal is not None

    async def ServerMetadata(self, request: Any, context: Any) -> Any:
        """Name, version and extensions of the server."""
        found = await super().ServerMetadata(request, context)
        found.extensions.extend(name for name in EXTENSIONS if name not in found.extensions)
        return found


async def _told(answer: Awaitable[Any], context: Any, empty: Callable[[], Any]) -> Any:
    """An answer of the SDK, whose errors become statuses."""
    try:
        return await answer
    except (ModelNotFound, ModelNotReady, InvalidInput) as e:
        return _refuse(context, e, str(e), empty)


def _refuse(context: Any, error: Exception, text: str, empty: Callable[[], Any]) -> Any:
    codes = grpc.StatusCode
    code = codes.UNAVAILABLE if isinstance(error, (Unavailable, ModelNotReady)) else codes.INVALID_ARGUMENT
    context.set_code(codes.NOT_FOUND if isinstance(error, ModelNotFound) else code)
    context.set_details(text)
    return empty()


def from_grpc(message: Any) -> Request:
    """A ModelInferRequest; BadStep for one that does not hold together."""
    raw = message.raw_input_contents
    if raw and len(raw) != len(message.inputs):
        raise BadStep(f"there are {len(message.inputs)} inputs and {len(raw)} raw_input_contents")
    inputs: dict[str, NDArray[Any]] = {}
    for k, given in enumerate(message.inputs):
        name, shape = given.name, tuple(given.shape)
        if min(shape, default=0) < 0:
            raise BadStep(f"the shape of input '{name}' is {list(shape)}, expected sizes")
        if name in inputs:
            raise BadStep(f"input '{name}' is given twice")
        if raw:
            inputs[name] = _v2.from_bytes(name, given.datatype, shape, raw[k])
        else:
            inputs[name] = _typed(given, shape)
    parameters = {key: value_of(value) for key, value in message.parameters.items()}
    outputs = {output.name: True for output in message.outputs}
    return Request(inputs, parameters, outputs or None, message.id, True)


def _typed(given: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    if given.datatype not in CONTENTS:
        raise BadStep(f"input '{given.name}' has the datatype '{given.datatype}', which comes as raw_input_contents")
    data = list(getattr(given.contents, CONTENTS[given.datatype]))
    if given.datatype == "BYTES":
        array = np.empty(len(data), object)
        array[:] = data
        if len(data) == np.prod(shape, dtype=int):
            return array.reshape(shape)
        raise BadStep(f"input '{given.name}' has {len(data)} elements, expected BYTES {list(shape)}")
    return _v2.from_json(given.name, given.datatype, shape, data)


def value_of(parameter: Any) -> Any:
    """What an InferParameter holds."""
    kind = parameter.WhichOneof("parameter_choice")
    return getattr(parameter, kind) if kind else None


def to_grpc(response: Response, model: str) -> Any:
    """A ModelInferResponse."""
    message = pb.ModelInferResponse(model_name=model, id=response.id)
    for name, (array, _) in response.outputs.items():
        message.outputs.add(name=name, datatype=_v2.NAMES[array.dtype], shape=array.shape)
        message.raw_output_contents.append(_v2.raw(array))
    for name, value in response.parameters.items():
        message.parameters[name].bool_param = value
    return message

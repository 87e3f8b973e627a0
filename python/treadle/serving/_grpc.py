"""gRPC's ModelInfer for streams: messages become arrays and back without a detour."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _v2
from ._sdk import InferenceServicer, grpc, pb
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
    """The SDK's service, with requests for streams answered here."""

    async def ModelInfer(self, request: Any, context: Any) -> Any:
        """The answer to a request, or a status with the reason."""
        model = self._data_plane.get_model_from_registry(request.model_name)
        service = getattr(model, "service", None)
        if not isinstance(service, Service):
            return await super().ModelInfer(request, context)
        try:
            return to_grpc(await service.infer(from_grpc(request)), request.model_name)
        except Unavailable as e:
            context.set_code(grpc.StatusCode.UNAVAILABLE)
            context.set_details(str(e))
        except StepError as e:
            context.set_code(grpc.StatusCode.INVALID_ARGUMENT)
            context.set_details(str(e))
        return pb.ModelInferResponse()

    async def ServerMetadata(self, request: Any, context: Any) -> Any:
        """Of the server."""
        found = await super().ServerMetadata(request, context)
        found.extensions.extend(name for name in EXTENSIONS if name not in found.extensions)
        return found


def from_grpc(message: Any) -> Request:
    """A ModelInferRequest; BadStep for one that does not hold together."""
    raw = message.raw_input_contents
    if raw and len(raw) != len(message.inputs):
        raise BadStep(f"there are {len(message.inputs)} inputs and {len(raw)} raw_input_contents")
    inputs: dict[str, NDArray[Any]] = {}
    for k, given in enumerate(message.inputs):
        name, shape = given.name, _v2.shape_of(given.shape, given.name)
        if name in inputs:
            raise BadStep(f"input '{name}' is given twice")
        if raw:
            inputs[name] = _v2.from_bytes(name, given.datatype, shape, raw[k])
        else:
            inputs[name] = _typed(given, shape)
    parameters = {key: value_of(value) for key, value in message.parameters.items()}
    return Request(inputs, parameters, dict.fromkeys([o.name for o in message.outputs], True) or None, message.id, True)


def _typed(given: Any, shape: list[int]) -> NDArray[Any]:
    if given.datatype not in CONTENTS:
        raise BadStep(f"input '{given.name}' has the datatype '{given.datatype}', which comes as raw_input_contents")
    data = list(getattr(given.contents, CONTENTS[given.datatype]))
    if given.datatype == "BYTES":
        array = np.empty(len(data), object)
        array[:] = data
        if len(data) == np.prod(shape, dtype=int):
            return array.reshape(shape)
        raise BadStep(f"input '{given.name}' has {len(data)} elements, expected BYTES {shape}")
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

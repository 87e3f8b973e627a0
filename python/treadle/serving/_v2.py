"""Requests and responses of the Open Inference Protocol v2, from and to their REST form; no part of a server.

Nothing in a request is code: JSON and plain arrays are all that is read.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ._steps import BadStep

DATATYPES = {
    **{f"{sign}INT{bits}": np.dtype(f"{sign.lower()}int{bits}") for sign in ("", "U") for bits in (8, 16, 32, 64)},
    **{f"FP{bits}": np.dtype(f"float{bits}") for bits in (16, 32, 64)},
    "BOOL": np.dtype(bool),
    "BYTES": np.dtype(object),
}
NAMES = {dtype: name for name, dtype in DATATYPES.items()}
FITTING = {
    "f": "fiu",
    "i": "iu",
    "u": "iu",
    "b": "b",
}  # kinds of numbers in JSON by the kind of the type that is asked for
Parameters = dict[str, Any]


@dataclass(slots=True)
class Request:
    """`inputs`: by name. `outputs`: those asked for, with whether as binary data; None for all."""

    inputs: dict[str, NDArray[Any]]
    parameters: Parameters = field(default_factory=dict)
    outputs: dict[str, bool] | None = None
    id: str = ""
    binary: bool = False  # the form of outputs whose request does not choose one


@dataclass(slots=True)
class Response:
    """`outputs`: array, and whether as binary data, by name."""

    outputs: dict[str, tuple[NDArray[Any], bool]]
    parameters: Parameters = field(default_factory=dict)
    id: str = ""


def datatype(element: str) -> str:
    """What v2 calls an ONNX element type, such as "float"; in capitals where v2 has no name."""
    known = {"float": "FP32", "double": "FP64", "float16": "FP16", "string": "BYTES", "bfloat16": "BF16"}
    return known.get(element, element.upper())


def from_rest(body: bytes, json_size: int | None) -> Request:
    """A request from the body that a POST has; `json_size`: bytes of JSON in front of binary data, None for JSON alone.

    Raises BadStep for what is no request.
    """
    if json_size is not None and not 0 <= json_size <= len(body):
        raise BadStep(f"the header Inference-Header-Content-Length is {json_size}, and the body has {len(body)} bytes")
    found = as_object(body[:json_size], "the request")
    binary = memoryview(body)[json_size:] if json_size is not None else memoryview(b"")
    parameters = _part(found, "parameters", dict, {})
    default = bool(parameters.pop("binary_data_output", False))
    inputs = {}
    for entry in _part(found, "inputs", list, None):
        name, array, binary = _input(entry, binary)
        if name in inputs:
            raise BadStep(f"input '{name}' is given twice")
        inputs[name] = array
    if binary:
        raise BadStep(f"there are {len(binary)} bytes behind the last input")
    wanted = {}
    for entry in _part(found, "outputs", list, []):
        asked = _part(entry, "parameters", dict, {})
        wanted[_part(entry, "name", str, None)] = bool(asked.get("binary_data", default))
    return Request(inputs, parameters, wanted or None, _part(found, "id", str, ""), default)


def as_object(text: bytes | str, what: str) -> dict[str, Any]:
    """A JSON object; BadStep for everything else, NaN and Infinity included, which JSON does not have."""

    def refuse(name: str) -> NoReturn:
        raise ValueError(f"{name} is not a number in JSON")

    try:
        found = json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError) as e:
        raise BadStep(f"{what} is not JSON: {e}") from e
    if not isinstance(found, dict):
        raise BadStep(f"{what} is a JSON {type(found).__name__}, expected an object")
    return found


def _part(found: Any, key: str, kind: type, default: Any) -> Any:
    """A member of a JSON object, of a kind; without a default it has to be there."""
    if not isinstance(found, dict):
        raise BadStep(f"where '{key}' is looked for, the request has {type(found).__name__}, expected an object")
    value = found.get(key)
    if value is None:
        if default is None:
            raise BadStep(f"the request lacks '{key}'")
        return default
    if not isinstance(value, kind):
        raise BadStep(f"'{key}' is {type(value).__name__}, expected {kind.__name__}")
    return value


def _input(entry: Any, binary: memoryview) -> tuple[str, NDArray[Any], memoryview]:
    """Name and array of an input, and the binary data behind those of its own."""
    name, kind = _part(entry, "name", str, None), _part(entry, "datatype", str, None)
    shape = shape_of(_part(entry, "shape", list, None), name)
    size = _part(entry, "parameters", dict, {}).get("binary_data_size")
    if size is None:
        return name, from_json(name, kind, shape, _part(entry, "data", list, None)), binary
    if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size <= len(binary):
        raise BadStep(f"input '{name}' has binary_data_size {size}, and {len(binary)} bytes are left")
    return name, from_bytes(name, kind, shape, binary[:size]), binary[size:]


def shape_of(shape: Sequence[Any], name: str) -> list[int]:
    """The sizes of an input; BadStep where they are none."""
    if any(isinstance(size, bool) or not isinstance(size, int) or size < 0 for size in shape):
        raise BadStep(f"the shape of input '{name}' is {list(shape)}, expected sizes")
    return list(shape)


def dtype_of(name: str, kind: str) -> np.dtype[Any]:
    """The type of elements that v2 calls `kind`."""
    if (dtype := DATATYPES.get(kind)) is None:
        raise BadStep(f"input '{name}' has the datatype '{kind}', expected one of {', '.join(DATATYPES)}")
    return dtype


def from_bytes(name: str, kind: str, shape: Sequence[int], data: bytes | memoryview) -> NDArray[Any]:
    """The array whose elements lie one behind the other in `data`."""
    dtype = dtype_of(name, kind)
    if kind == "BYTES":
        return _texts(name, data, shape)
    if len(data) != math.prod(shape) * dtype.itemsize:
        raise BadStep(f"input '{name}' has {len(data)} bytes, expected {kind} {list(shape)}")
    return np.frombuffer(data, dtype).reshape(shape)


def _texts(name: str, data: bytes | memoryview, shape: Sequence[int]) -> NDArray[Any]:
    """BYTES: each element behind its length."""
    found, at, data = [], 0, memoryview(data)
    while at < len(data):
        size = struct.unpack_from("<I", data, at)[0] if at + 4 <= len(data) else len(data)
        if at + 4 + size > len(data):
            raise BadStep(f"an element of input '{name}' is cut off")
        found.append(bytes(data[at + 4 : at + 4 + size]))
        at += 4 + size
    return _objects(name, found, shape)


def _objects(name: str, found: list[Any], shape: Sequence[int]) -> NDArray[Any]:
    if len(found) != math.prod(shape):
        raise BadStep(f"input '{name}' has {len(found)} elements, expected BYTES {list(shape)}")
    array = np.empty(len(found), object)
    array[:] = found
    return array.reshape(shape)


def from_json(name: str, kind: str, shape: Sequence[int], data: list[Any]) -> NDArray[Any]:
    """The array of a JSON list of numbers or texts, nested or not; refuses an element that is not of the type."""
    dtype = dtype_of(name, kind)
    if dtype.kind == "O":
        flat = _flat(data)
        if not all(isinstance(value, str) for value in flat):
            raise BadStep(f"input '{name}' is BYTES, and its data hold what is no text")
        return _objects(name, flat, shape)
    try:
        array = np.array(data) if data else np.zeros(0, dtype)
    except (ValueError, OverflowError) as e:
        raise BadStep(f"the data of input '{name}' are no array: {e}") from e
    if array.dtype.kind not in FITTING[dtype.kind]:
        raise BadStep(f"the data of input '{name}' hold what is no {kind}")
    if dtype.kind in "iu" and array.size and not np.can_cast(array.dtype, dtype):
        bounds = np.iinfo(dtype)
        if int(array.min()) < bounds.min or int(array.max()) > bounds.max:
            raise BadStep(f"the data of input '{name}' hold a number beyond those of {kind}")
    if array.size != math.prod(shape):
        raise BadStep(f"input '{name}' has {array.size} elements, expected {kind} {list(shape)}")
    with np.errstate(over="ignore"):
        return array.astype(dtype).reshape(shape)


def _flat(data: list[Any]) -> list[Any]:
    flat: list[Any] = []
    for value in data:
        flat += _flat(value) if isinstance(value, list) else [value]
    return flat


def texts(array: NDArray[Any], name: str) -> list[str]:
    """The elements of a BYTES array as texts; BadStep for an element that is not UTF-8."""
    try:
        return [v.decode() if isinstance(v, bytes) else str(v) for v in array.ravel().tolist()]
    except UnicodeDecodeError as e:
        raise BadStep(f"an element of input '{name}' is not UTF-8: {e}") from e


def raw(array: NDArray[Any]) -> bytes:
    """The elements as v2 puts them into binary data."""
    if array.dtype != object:
        return array.tobytes()
    found = [v if isinstance(v, bytes) else str(v).encode() for v in array.ravel().tolist()]
    return b"".join(part for v in found for part in (struct.pack("<I", len(v)), v))


def to_rest(response: Response, model: str) -> tuple[bytes, int | None]:
    """Body of a response, and bytes of its JSON where binary data follow; NaN and infinities are null in JSON."""
    outputs, parts = [], []
    for name, (array, binary) in response.outputs.items():
        entry: dict[str, Any] = {"name": name, "datatype": NAMES[array.dtype], "shape": list(array.shape)}
        if binary:
            parts.append(raw(array))
            entry["parameters"] = {"binary_data_size": len(parts[-1])}
        else:
            entry["data"] = _json_data(name, array)
        outputs.append(entry)
    head: dict[str, Any] = {"model_name": model, "id": response.id, "outputs": outputs}
    if response.parameters:
        head["parameters"] = response.parameters
    text = json.dumps(head, separators=(",", ":")).encode()
    return (b"".join([text, *parts]), len(text)) if parts else (text, None)


def _json_data(name: str, array: NDArray[Any]) -> list[Any]:
    values = array.ravel().tolist()
    if array.dtype == object:
        try:
            return [v.decode() if isinstance(v, bytes) else str(v) for v in values]
        except UnicodeDecodeError as e:
            raise BadStep(f"output '{name}' holds bytes that are no text: ask for it as binary data") from e
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        return [v if math.isfinite(v) else None for v in values]
    return values


def metadata(name: str, element: str, shape: Sequence[int | str | None] | None, free: int | None) -> Mapping[str, Any]:
    """What v2 says of an input or output; `free`: an axis of any size."""
    sizes = [s if isinstance(s, int) and axis != free else -1 for axis, s in enumerate(shape or [])]
    return {"name": name, "datatype": datatype(element), "shape": sizes}

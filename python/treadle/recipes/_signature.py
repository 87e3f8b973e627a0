"""What recipes know models by: inputs and outputs with their sizes, and operators."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from .. import _core, _proto
from .._errors import InvalidProtobuf
from .._model import NodeArg, model_source
from .._session import InferenceSession

if TYPE_CHECKING:
    from .._types import PathOrBytes, Serializable


@dataclasses.dataclass(frozen=True)
class Signature:
    """Inputs and outputs by name, with sizes (None where they are unknown), and operators, those of bodies too."""

    inputs: _proto.Sizes
    outputs: _proto.Sizes
    operators: frozenset[str] = frozenset()


def signature_of(model: PathOrBytes | Serializable | InferenceSession) -> Signature:
    """The signature of a model; NoSuchFile and InvalidProtobuf where there is none to read."""
    if isinstance(model, InferenceSession):
        path, contents = model._model_path, model._model_bytes
    else:
        path, contents = model_source(model)
    data = contents if contents is not None else _core.read_file(path)
    if _core.is_text(data):
        data = _core.parse_text(0, data)
    try:
        return Signature(*_proto.signature(data), frozenset(_proto.operators(data)))
    except (ValueError, IndexError) as e:
        raise InvalidProtobuf(f"{path or 'the bytes'}: no model can be read ({e})") from e


def values_of(session: InferenceSession) -> Signature:
    """The signature of a session's model, without operators."""
    return Signature(_sizes(session.get_inputs()), _sizes(session.get_outputs()))


def _sizes(infos: list[NodeArg]) -> _proto.Sizes:
    return {info.name: tuple(n if isinstance(n, int) and n > 0 else None for n in info.shape) for info in infos}

"""What a request of the Open Inference Protocol v2 means for the streams of a model, whatever carries it."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _v2
from ._batcher import Batcher
from ._signature import element
from ._steps import Answer, BadStep, Id, Outputs, Rows, Step
from ._v2 import Request, Response
from .streams import Streams

STATE, LENGTHS = "treadle_state", "treadle_lengths"
ROWS = ("sequence_id", "sequence_start", "sequence_end", STATE)
EXTENSIONS = ["sequence", "sequence(string_id)", "binary_tensor_data"]


class Service:
    """Answers requests for one model."""

    def __init__(self, streams: Streams, max_delay_s: float = 0.0) -> None:
        """`max_delay_s`: how long a step may wait for others to make a batch with."""
        self.streams = streams
        self.batcher = Batcher(streams, max_delay_s)
        own = {info.name for info in streams.signature.inputs}
        self._extra = [name for name in ROWS if name not in own]  # tensors that are about sequences
        self._texts = any(element(info) == "string" for info in streams.signature.inputs)

    def inputs(self) -> list[dict[str, Any]]:
        """The inputs of a step in v2's metadata, without states and bound inputs."""
        signature = self.streams.signature
        return [
            dict(_v2.metadata(info.name, element(info), info.shape, signature.timed.get(info.name)))
            for info in signature.inputs
        ]

    def outputs(self) -> list[dict[str, Any]]:
        """Outputs of a step, as v2's metadata have them."""
        return [
            dict(_v2.metadata(info.name, element(info), shape, None))
            for info, shape in zip(self.streams.signature.outputs, self.streams.signature.answer_shapes(), strict=True)
        ]

    async def infer(self, request: Request) -> Response:
        """The answer to a request; raises StepError."""
        wanted = self._wanted(request)
        inputs = dict(request.inputs)
        extra = {name: inputs.pop(name) for name in self._extra if name in inputs}
        if self._texts:
            self._decode(inputs)
        if "sequence_id" in extra:
            made: Answer | Rows = await self._rows(request, inputs, extra, wanted)
        elif LENGTHS in wanted:
            raise BadStep(f"the output '{LENGTHS}' goes together with a tensor 'sequence_id'")
        else:
            made = await self.batcher.submit(self._step(request, inputs, extra, STATE in wanted))
        outputs = {}
        for name, array in zip(self.streams.output_names, self.arrays(made.outputs), strict=True):
            if name in wanted:
                outputs[name] = array, wanted[name]
        if STATE in wanted or made.moved:
            outputs[STATE] = self._state(made), wanted.get(STATE, request.binary)
        if isinstance(made, Rows) and made.lengths is not None:
            columns = [k for k, name in enumerate(self.streams.output_names) if name in wanted]
            outputs[LENGTHS] = made.lengths[:, columns], wanted[LENGTHS]
        return Response(outputs, {"treadle_moved": True} if made.moved else {}, request.id)

    def _wanted(self, request: Request) -> dict[str, bool]:
        """Names of outputs that are asked for, and which of them as binary data."""
        names = self.streams.output_names
        if request.outputs is None:
            return dict.fromkeys(names, request.binary)
        for name in request.outputs:
            if name not in names and name not in (STATE, LENGTHS):
                known = ", ".join([*names, STATE, LENGTHS])
                raise BadStep(f"model '{self.streams.name}' has no output '{name}': it has {known}")
        return request.outputs

    def _decode(self, inputs: dict[str, NDArray[Any]]) -> None:
        """BYTES become the texts that the model takes."""
        for name, array in inputs.items():
            if array.dtype == object:
                found = np.empty(array.size, object)
                found[:] = _v2.texts(array, name)
                inputs[name] = found.reshape(array.shape)

    def _step(self, request: Request, inputs: dict[str, NDArray[Any]], extra: dict[str, Any], snapshot: bool) -> Step:
        given = request.parameters
        state = b""
        for name, array in extra.items():
            if name != STATE:
                raise BadStep(f"the tensor '{name}' goes together with a tensor 'sequence_id'")
            if array.dtype != np.uint8:
                raise BadStep(f"the tensor '{STATE}' of one sequence is UINT8")
            state = array.tobytes()
        sequence = given.get("sequence_id", 0)
        start, end = flag(given, "sequence_start"), flag(given, "sequence_end")
        if not sequence and (start or end):
            raise BadStep("sequence_start and sequence_end are for a sequence: the request lacks sequence_id")
        return Step(sequence, inputs, start, end, snapshot, state)

    async def _rows(
        self, request: Request, inputs: dict[str, NDArray[Any]], extra: dict[str, NDArray[Any]], wanted: dict[str, bool]
    ) -> Rows:
        for name in ROWS[:3]:
            if name in request.parameters:
                raise BadStep(f"'{name}' is a parameter and 'sequence_id' a tensor: give one kind")
        ids = sequence_ids(extra["sequence_id"])
        states = extra.get(STATE)
        if states is not None and states.dtype != object:
            raise BadStep(f"the tensor '{STATE}' of several sequences is BYTES, an element for each")
        call = partial(
            self.streams.step_rows,
            ids,
            inputs,
            start=flags(extra, "sequence_start"),
            end=flags(extra, "sequence_end"),
            snapshot=STATE in wanted,
            lengths=LENGTHS in wanted,
            states=None if states is None else [as_bytes(value) for value in states.ravel().tolist()],
        )
        rows: Rows = await self.batcher.submit(call)
        return rows

    def _state(self, made: Answer | Rows) -> NDArray[Any]:
        """The snapshot as a tensor: UINT8 [1, n] of one stream, BYTES [B] of several."""
        if isinstance(made, Answer):
            return np.frombuffer(made.state, np.uint8)[None]
        array = np.empty(len(made.states), object)
        array[:] = made.states
        return array

    def arrays(self, outputs: Outputs) -> list[NDArray[Any]]:
        """Outputs as arrays; an output that has no value yet becomes an array of no elements."""
        signature = self.streams.signature
        return [
            np.zeros(0, signature.dtype_out(k)) if value is None else np.asarray(value)
            for k, value in enumerate(outputs)
        ]


def flag(parameters: _v2.Parameters, name: str) -> bool:
    """A parameter that is true or false."""
    value = parameters.get(name, False)
    if not isinstance(value, bool):
        raise BadStep(f"the parameter '{name}' is {value!r}, expected true or false")
    return value


def flags(extra: dict[str, NDArray[Any]], name: str) -> list[bool] | None:
    """A tensor of flags as a list; None where it is not given or no flag is set."""
    if name not in extra:
        return None
    if extra[name].dtype != bool:
        raise BadStep(f"the tensor '{name}' is BOOL")
    return extra[name].ravel().tolist()


def sequence_ids(array: NDArray[Any]) -> list[Id]:
    """A tensor of ids as a list."""
    if array.dtype == object:
        return list(_v2.texts(array, "sequence_id"))
    if array.dtype.kind not in "iu":
        raise BadStep("the tensor 'sequence_id' holds whole numbers, or BYTES")
    found: list[Id] = array.ravel().tolist()
    return found


def as_bytes(value: bytes | str) -> bytes:
    """An element of BYTES."""
    return value if isinstance(value, bytes) else value.encode()

"""treadle by onnx's interface of backends (`onnx.backend.base`), for programs and test suites that take any engine.

    import treadle.backend
    outputs = treadle.backend.run_model(model, [x])

It needs the package onnx.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnx.backend.base

from . import _core, get_device
from ._ignored import warn_once
from ._options import RunOptions, SessionOptions
from ._session import InferenceSession

if TYPE_CHECKING:
    from ._types import InputValue, OutputValue, PathOrBytes

# Options that a caller of a backend may set. Options that write files are for callers of InferenceSession.
_SESSION_OPTIONS = (
    "enable_cpu_mem_arena",
    "enable_mem_pattern",
    "enable_mem_reuse",
    "execution_mode",
    "execution_order",
    "graph_optimization_level",
    "inter_op_num_threads",
    "intra_op_num_threads",
    "log_severity_level",
    "log_verbosity_level",
    "logid",
    "use_deterministic_compute",
    "use_per_session_threads",
)
_RUN_OPTIONS = ("log_severity_level", "log_verbosity_level", "logid", "only_execute_path_to_fetches")


def _set(options: Any, allowed: Sequence[str], others: Sequence[str], values: Mapping[str, Any]) -> None:
    """Sets the allowed options; RuntimeError for an option that is not allowed, a warning for an unknown name."""
    kind = type(options).__name__
    for name, value in values.items():
        if name in allowed:
            setattr(options, name, value)
        elif hasattr(options, name):
            raise RuntimeError(
                f"{kind} attribute '{name}' is not permitted via the backend API. "
                f"Allowed attributes: {', '.join(sorted(allowed))}"
            )
        elif name not in others:
            warn_once(f"the argument '{name}' = {value!r} of a backend has no effect")


class BackendRep(onnx.backend.base.BackendRep):
    """A model that is ready to run."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session

    def run(self, inputs: Any, **kwargs: Any) -> list[OutputValue]:  # type: ignore[override]  # a list, as onnxruntime gives
        """The outputs for a list or tuple of inputs in the model's order, or for the one input of a model that has one.

        `kwargs` are options of the run: `logid` and the like. Errors are those of `InferenceSession.run`, and RuntimeError
        where there are more inputs than the model has, or one where it has several.
        """
        options = RunOptions()
        _set(options, _RUN_OPTIONS, _SESSION_OPTIONS, kwargs)
        known = [info.name for info in self._session.get_inputs()]
        if not isinstance(inputs, (list, tuple)):
            if len(known) != 1:
                raise RuntimeError(f"Model expect {len(known)} inputs, found one {type(inputs).__name__}")
            inputs = [inputs]
        if len(inputs) > len(known):
            raise RuntimeError(f"Model expect {len(known)} inputs, found {len(inputs)}")
        return self._session.run(None, dict(zip(known, inputs, strict=False)), options)


class Backend(onnx.backend.base.Backend):
    """What onnx asks of an engine. `prepare` and `run_model` take a ModelProto, its bytes, or a path."""

    @classmethod
    def is_compatible(cls, model: Any, device: str | None = None, **kwargs: Any) -> bool:
        """Whether the device is supported. Whether a model is, `prepare` says."""
        return device is None or cls.supports_device(device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether the device is the CPU."""
        return device == get_device()

    @classmethod
    def prepare(
        cls,
        model: onnx.ModelProto | PathOrBytes | InferenceSession | BackendRep,
        device: str | None = None,
        **kwargs: Any,
    ) -> BackendRep:
        """Loads a model. `kwargs` are options of the session: `intra_op_num_threads` and the like.

        Errors are those of InferenceSession; RuntimeError for a device other than the CPU, and for options that a backend
        does not set.
        """
        if isinstance(model, BackendRep):
            return model
        if isinstance(model, InferenceSession):
            return BackendRep(model)
        if device is not None and not cls.supports_device(device):
            raise RuntimeError(f"Incompatible device expected '{device}', got '{get_device()}'")
        options = SessionOptions()
        options.add_session_config_entry("treadle.loop_condition", "obeyed")  # as onnxruntime's backend
        _set(options, _SESSION_OPTIONS, _RUN_OPTIONS, kwargs)
        return BackendRep(InferenceSession(model, options))

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str | None = None, **kwargs: Any) -> list[OutputValue]:  # type: ignore[override]
        """`prepare` and `BackendRep.run`."""
        return cls.prepare(model, device, **kwargs).run(inputs, **kwargs)

    @classmethod
    def run_node(  # type: ignore[override]
        cls,
        node: onnx.NodeProto,
        inputs: Sequence[InputValue],
        device: str | None = None,
        outputs_info: Any = None,
        **kwargs: Any,
    ) -> list[OutputValue]:
        """The outputs of one node, for arrays in the order of its inputs that are named; `opset_version` picks the operator.

        The newest version that onnx knows is the default. Types and sizes of the outputs are inferred.
        """
        names = [name for name in node.input if name]
        arrays = [np.asarray(value) for value in inputs]
        if len(names) != len(arrays):
            raise RuntimeError(f"the node has {len(names)} inputs, found {len(arrays)}")
        given = [
            onnx.helper.make_tensor_value_info(name, _core.element_of_dtype(array.dtype), array.shape)
            for name, array in zip(names, arrays, strict=True)
        ]
        outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        version = kwargs.pop("opset_version", onnx.defs.onnx_opset_version() if not node.domain else 1)
        graph = onnx.helper.make_graph([node], "node", given, outputs)
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid(node.domain, version)])
        return cls.run_model(model, arrays, device, **kwargs)


is_compatible = Backend.is_compatible
prepare = Backend.prepare
run = run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device

__all__ = [
    "Backend",
    "BackendRep",
    "is_compatible",
    "prepare",
    "run",
    "run_model",
    "run_node",
    "supports_device",
]

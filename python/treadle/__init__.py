"""treadle: an ONNX engine for models that loop.

    import treadle
    session = treadle.InferenceSession("model.onnx")
    y, = session.run(None, {"x": x})

The names and behaviours are onnxruntime's; `session.stream()`, `check()`, `compare()` and `infer_shapes()`
are treadle's own.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from . import _core
from ._bound import BoundRun
from ._compare import compare
from ._comparison import Comparison
from ._devices import (
    OrtAllocatorType,
    OrtArenaCfg,
    OrtDevice,
    OrtDeviceMemoryType,
    OrtDeviceVendorId,
    OrtEpAssignedNode,
    OrtEpAssignedSubgraph,
    OrtEpDevice,
    OrtExecutionProviderDevicePolicy,
    OrtHardwareDevice,
    OrtHardwareDeviceType,
    OrtMemoryInfo,
    OrtMemoryInfoDeviceType,
    OrtMemType,
    create_and_register_allocator,
    create_and_register_allocator_v2,
    get_ep_devices,
    register_execution_provider_library,
    unregister_execution_provider_library,
)
from ._errors import (
    Busy,
    DeviceReset,
    EngineError,
    EPFail,
    Fail,
    InvalidArgument,
    InvalidGraph,
    InvalidProtobuf,
    LimitExceeded,
    ModelLoadCanceled,
    ModelLoaded,
    ModelRequiresCompilation,
    NoModel,
    NoSuchFile,
    NotFound,
    NotImplemented,  # noqa: A004 - onnxruntime's name
    RuntimeException,
)
from ._ignored import check_severity, listen, set_least_severity, warn_once
from ._model import ModelMetadata, NodeArg, Problem, check, infer_shapes
from ._open_sizes import open_sizes
from ._operators import op
from ._options import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    RunOptions,
    SessionOptions,
    set_global_thread_pool_sizes,
)
from ._pool import StreamPool
from ._reduce import reduce
from ._session import InferenceSession, get_all_providers, get_available_providers
from ._stream import Stream
from ._text import parse_function, parse_graph, parse_model, parse_node, to_text
from ._values import IOBinding, OrtValue, OrtValueVector, copy_tensors

__version__: str = _core.version()


def get_device() -> str:
    """ "CPU"."""
    return "CPU"


def get_version_string() -> str:
    """The version of treadle; under the alias that of the onnxruntime whose names are offered."""
    return __version__


def get_build_info() -> str:
    """Name and version of the library."""
    return f"treadle Build Info: version={__version__}"


def print_debug_info() -> None:
    """Prints the versions, the machine and the providers, for a bug report."""
    import platform  # rare, and takes a while to import

    print(f"treadle: {__version__}\nPython: {platform.python_version()}\nplatform: {platform.platform()}")
    print(f"providers: {', '.join(get_available_providers())}\ndevices: {get_ep_devices()}")


def set_default_logger_severity(severity: int) -> None:
    """From 0 (verbose) to 4 (fatal errors). All of treadle's messages are warnings (2): from 3 on, the function of
    `set_default_logger_callback` gets none.
    """
    set_least_severity(severity)
    if severity < 2:
        warn_once(f"set_default_logger_severity({severity}) has no effect: all of treadle's messages are warnings")


def set_default_logger_callback(
    callback: Callable[[int, str, str, str, str], object] | None, severity: int = 2
) -> None:
    """Calls `callback` with each message, in place of a warning; None ends that.

    Its arguments are the severity (2), "treadle", an empty text, the file and line that led to the message, and the message.
    `severity` is that of `set_default_logger_severity`. A message of which the callback raises, or that comes while it runs,
    is a warning; sys.unraisablehook gets what it raises. RuntimeError for what is no function or no severity.
    """
    check_severity(severity)
    if callback is not None:
        if not callable(callback):
            raise RuntimeError(f"callback must be a callable, found a {type(callback).__name__}")
        set_least_severity(severity)
    listen(callback)


def set_default_logger_verbosity(verbosity: int) -> None:
    """Has no effect: all messages are warnings, which have no levels of verbosity."""
    if verbosity > 0:
        warn_once(f"set_default_logger_verbosity({verbosity}) has no effect: all of treadle's messages are warnings")


def disable_telemetry_events() -> None:
    """There are none."""


def enable_telemetry_events() -> None:
    """There are none."""
    warn_once("enable_telemetry_events() has no effect: treadle reports nothing to anybody")


def set_seed(seed: int) -> None:
    """Seeds the random operators that have no seed attribute; their numbers also depend on the order of their runs."""
    _core.set_seed(seed)


def preload_dlls(cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: str | None = None) -> None:
    """There are none: treadle runs on CPUs."""


def has_collective_ops() -> bool:
    """False: nothing runs on several machines."""
    return False


def operators() -> list[dict[str, Any]]:
    """Every operator: `domain`, `name`, `effects`, the `tiers` that run it, and its `versions` whole (inputs, outputs,
    attributes, types)."""
    from json import loads  # rare, and takes a while to import

    return [loads(line) for line in _core.operators()]


def as_onnxruntime() -> ModuleType:
    """Puts a module `onnxruntime` that stands on treadle into `sys.modules`, and returns it (docs/drop-in.md).

    `importlib.metadata.version("onnxruntime")` answers as well, and processes of Python that are started from here on find
    the same: a folder of treadle's comes first in `sys.path` and in the environment's PYTHONPATH.
    """
    from . import _alias

    own = ("Comparison", "as_onnxruntime", "check", "compare", "infer_shapes", "op", "open_sizes", "reduce")
    return _alias.install({name: globals()[name] for name in __all__ if name not in own})


__all__ = [
    "BoundRun",
    "Busy",
    "Comparison",
    "DeviceReset",
    "EPFail",
    "EngineError",
    "ExecutionMode",
    "ExecutionOrder",
    "Fail",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "LimitExceeded",
    "ModelLoadCanceled",
    "ModelLoaded",
    "ModelMetadata",
    "ModelRequiresCompilation",
    "NoModel",
    "NoSuchFile",
    "NodeArg",
    "NotFound",
    "NotImplemented",
    "OrtAllocatorType",
    "OrtArenaCfg",
    "OrtDevice",
    "OrtDeviceMemoryType",
    "OrtDeviceVendorId",
    "OrtEpAssignedNode",
    "OrtEpAssignedSubgraph",
    "OrtEpDevice",
    "OrtExecutionProviderDevicePolicy",
    "OrtHardwareDevice",
    "OrtHardwareDeviceType",
    "OrtMemType",
    "OrtMemoryInfo",
    "OrtMemoryInfoDeviceType",
    "OrtValue",
    "OrtValueVector",
    "Problem",
    "RunOptions",
    "RuntimeException",
    "SessionOptions",
    "Stream",
    "StreamPool",
    "__version__",
    "as_onnxruntime",
    "check",
    "compare",
    "copy_tensors",
    "create_and_register_allocator",
    "create_and_register_allocator_v2",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_ep_devices",
    "get_version_string",
    "has_collective_ops",
    "infer_shapes",
    "op",
    "open_sizes",
    "operators",
    "parse_function",
    "parse_graph",
    "parse_model",
    "parse_node",
    "preload_dlls",
    "print_debug_info",
    "reduce",
    "register_execution_provider_library",
    "set_default_logger_callback",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_global_thread_pool_sizes",
    "set_seed",
    "to_text",
    "unregister_execution_provider_library",
]

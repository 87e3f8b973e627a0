"""Options of sessions and runs, by onnxruntime's names. What has no meaning here is stored and ignored."""

from __future__ import annotations

import enum
import os
from typing import Any

from . import _core


class GraphOptimizationLevel(enum.IntEnum):
    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


def _refuse_unknown(options: Any, name: str, hint: str) -> None:
    """A setting that nobody reads would be one that silently does nothing."""
    if options.__dict__.get("_is_made") and not hasattr(options, name):
        raise AttributeError(f"{type(options).__name__} has no attribute '{name}'{hint}", name=name, obj=options)


class SessionOptions:
    """What a session is made with.

    Of use here: `intra_op_num_threads` (0: the CPUs that the process may use), `graph_optimization_level`,
    `add_free_dimension_override_by_name`, `add_initializer`, `enable_profiling`, and configuration entries that begin with
    "treadle.": "treadle.tier" is "program" or "judge"; "treadle.jit" says when loops become native code: "off", "auto"
    (in the background, once they have taken long enough) or "always" (before they first run). Results are the same.
    "treadle.associative_math" at "1" lets sums of floats over time be put together in another order: linear recurrences
    (moving averages, running sums) then run in blocks of steps, and round differently.
    "treadle.weights" is "f32" or "f16": the weights of RNN, LSTM, GRU and of products in loops rounded to float16, which
    halves what a step reads; sums stay float32. "treadle.jit_cache" is the folder in which native code is kept for later
    processes, or "off" (otherwise the environment variable TREADLE_JIT_CACHE says it, else it is the user's folder for such
    files); "treadle.jit_cache_bytes" limits it.
    """

    def __init__(self) -> None:
        self.enable_cpu_mem_arena = True
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.enable_profiling = False
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.execution_order = ExecutionOrder.DEFAULT
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.inter_op_num_threads = 0
        self.intra_op_num_threads = 0
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.optimized_model_filepath = ""
        self.profile_file_prefix = "treadle_profile_"
        self.use_deterministic_compute = False
        self.use_per_session_threads = True
        self._entries: dict[str, str] = {}
        self._dimensions: dict[str, int] = {}
        self._dimensions_by_denotation: dict[str, int] = {}
        self._initializers: dict[str, Any] = {}
        self._is_made = True

    def __setattr__(self, name: str, value: Any) -> None:
        _refuse_unknown(
            self, name, f"; treadle's own settings are entries: add_session_config_entry('treadle.{name}', ...)"
        )
        super().__setattr__(name, value)

    def add_session_config_entry(self, key: str, value: str) -> None:
        self._entries[str(key)] = str(value)

    def get_session_config_entry(self, key: str) -> str:
        if key not in self._entries:
            raise RuntimeError(f"SessionOptions does not have configuration with key: {key}")
        return self._entries[key]

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        self._dimensions[name] = size

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        self._dimensions_by_denotation[denotation] = size

    def add_initializer(self, name: str, value: Any) -> None:
        """Replaces an initialiser that is also an input of the graph."""
        self._initializers[name] = value

    def add_external_initializers(self, names: list[str], values: list[Any]) -> None:
        self._initializers.update(zip(names, values, strict=True))

    def register_custom_ops_library(self, path: str) -> None:
        from ._errors import NotImplemented as NotSupported

        raise NotSupported(f"{path}: libraries of operators for onnxruntime cannot be loaded")

    def has_providers(self) -> bool:
        return False

    def _to_core(self) -> dict[str, str]:
        options = {"threads": str(max(0, int(self.intra_op_num_threads)))}
        if int(self.graph_optimization_level) == GraphOptimizationLevel.ORT_DISABLE_ALL:
            options["optimize"] = "0"
        if tier := os.environ.get("TREADLE_TIER"):
            options["tier"] = tier
        for key, value in self._entries.items():
            if key.startswith("treadle."):
                options[key[len("treadle.") :]] = value
        return options


class RunOptions(_core.RunOptions):
    """What a run may use. Setting `terminate` stops the runs that use these options, from any thread."""

    def __init__(self) -> None:
        super().__init__()
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = False
        self._entries: dict[str, str] = {}
        self._limits: dict[str, Any] = {}
        self._is_made = True

    def __setattr__(self, name: str, value: Any) -> None:
        _refuse_unknown(self, name, "; limits are time_limit, trip_limit and memory_limit")
        super().__setattr__(name, value)

    def add_run_config_entry(self, key: str, value: str) -> None:
        self._entries[str(key)] = str(value)

    def get_run_config_entry(self, key: str) -> str:
        if key not in self._entries:
            raise RuntimeError(f"RunOptions does not have configuration with key: {key}")
        return self._entries[key]

    @property
    def time_limit(self) -> float | None:
        """Seconds that a run may take."""
        return self._limits.get("time")

    @time_limit.setter
    def time_limit(self, seconds: float | None) -> None:
        self._limits["time"] = seconds
        self._limit_time(seconds or 0.0)

    @property
    def trip_limit(self) -> int | None:
        """Trips that all loops of a run may make together."""
        return self._limits.get("trips")

    @trip_limit.setter
    def trip_limit(self, trips: int | None) -> None:
        self._limits["trips"] = trips
        self._limit_trips(trips or 0)

    @property
    def memory_limit(self) -> int | None:
        """Bytes that a run may use."""
        return self._limits.get("memory")

    @memory_limit.setter
    def memory_limit(self, size: int | None) -> None:
        self._limits["memory"] = size
        self._limit_memory(size or 0)

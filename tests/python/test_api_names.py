"""Every name of onnxruntime's that published programs use is there and behaves, under treadle's own name and the alias."""

import inspect
import pathlib
import pickle
import subprocess
import sys
import warnings

import models
import numpy as np
import pytest
import treadle

X = np.arange(6, dtype=np.float32).reshape(2, 3)
Y = np.array([10, 20, 30], np.float32)

MODULE = """
InferenceSession SessionOptions RunOptions GraphOptimizationLevel ExecutionMode IOBinding OrtValue NodeArg
get_available_providers get_all_providers get_device set_default_logger_severity disable_telemetry_events
preload_dlls __version__
""".split()

SESSION = """
run get_inputs get_outputs get_providers get_provider_options set_providers disable_fallback get_modelmeta io_binding
run_with_iobinding end_profiling
""".split()

OPTIONS = {
    "intra_op_num_threads": 2, "inter_op_num_threads": 1, "log_severity_level": 3, "enable_cpu_mem_arena": False,
    "enable_profiling": False, "profile_file_prefix": "p_", "enable_mem_pattern": False, "enable_mem_reuse": False,
    "optimized_model_filepath": "", "use_deterministic_compute": True,
    "graph_optimization_level": treadle.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "execution_mode": treadle.ExecutionMode.ORT_PARALLEL,
}  # fmt: skip

BINDING = """
bind_input bind_output bind_cpu_input bind_ortvalue_input bind_ortvalue_output synchronize_inputs synchronize_outputs
clear_binding_inputs clear_binding_outputs get_outputs copy_outputs_to_cpu
""".split()

VALUE = """
ortvalue_from_numpy ortvalue_from_shape_and_type from_dlpack numpy shape data_ptr data_type element_type device_name
is_tensor has_value to_dlpack
""".split()

EXCEPTIONS = """
Fail InvalidArgument NoSuchFile NoModel EngineError RuntimeException InvalidProtobuf ModelLoaded NotImplemented
InvalidGraph EPFail ModelLoadCanceled ModelRequiresCompilation NotFound DeviceReset
""".split()


@pytest.mark.parametrize(
    "owner, names",
    [
        (treadle, MODULE + EXCEPTIONS),
        (treadle.InferenceSession, SESSION),
        (treadle.IOBinding, BINDING),
        (treadle.OrtValue, VALUE),
        (treadle.SessionOptions(), [*OPTIONS, "add_session_config_entry", "add_free_dimension_override_by_name"]),
        (treadle.SessionOptions(), ["add_initializer"]),
    ],
    ids=["module", "session", "binding", "value", "options", "initializers"],
)
def test_names_are_there(owner, names):
    assert [name for name in names if not hasattr(owner, name)] == []
    if inspect.ismodule(owner):
        assert [n for n in names if n not in owner.__all__ and n != "NotImplemented"] == []


def test_exceptions_under_both_names_are_the_same_and_direct():
    code = f"""
import treadle
treadle.as_onnxruntime()
import onnxruntime
from onnxruntime.capi import _pybind_state
from onnxruntime.capi import onnxruntime_pybind11_state as state
for name in {EXCEPTIONS}:
    found = getattr(state, name)
    assert found is getattr(treadle, name) is getattr(_pybind_state, name), name
    assert found.__bases__ == (Exception,), name
for name in {MODULE}:
    assert hasattr(onnxruntime, name), name
assert tuple(map(int, onnxruntime.__version__.split(".")[:2])) >= (1, 19)
"""
    folder = str(pathlib.Path(treadle.__file__).parent.parent)
    done = subprocess.run([sys.executable, "-c", f"import sys; sys.path.insert(0, {folder!r})\n{code}"],
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.filterwarnings("ignore:.* no effect")
def test_every_option_is_kept_and_a_session_takes_it():
    options = treadle.SessionOptions()
    for name, value in OPTIONS.items():
        setattr(options, name, value)
        assert getattr(options, name) == value
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    for arguments in ((options,), (options, ["CPUExecutionProvider"])):
        (z,) = treadle.InferenceSession(models.add(), *arguments).run(None, {"x": X, "y": Y})
        np.testing.assert_array_equal(z, X + Y)


def test_all_forms_of_run_give_the_same():
    session = treadle.InferenceSession(models.add(), sess_options=treadle.SessionOptions(), providers=None)
    feeds = {"x": X, "y": Y}
    for result in (
        session.run(None, feeds),
        session.run([], feeds),
        session.run(["z"], feeds),
        session.run(output_names=["z"], input_feed=feeds, run_options=treadle.RunOptions()),
        session.run(None, {"x": X.tolist(), "y": (10, 20, 30)}),
    ):
        assert isinstance(result, list)
        np.testing.assert_array_equal(result[0], X + Y)


def test_an_unavailable_provider_warns_once_and_the_cpu_runs():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        session = treadle.InferenceSession(models.add(), providers=["CUDAExecutionProvider", "CPUExecutionProvider"])
    assert [w.category for w in caught] == [UserWarning]
    assert session.get_providers() == ["CPUExecutionProvider"]
    assert treadle.get_all_providers() == treadle.get_available_providers() == ["CPUExecutionProvider"]


def test_binding_runs_in_place():
    session = treadle.InferenceSession(models.add())
    binding = session.io_binding()
    z = np.empty_like(X)
    binding.bind_input("x", "cpu", 0, np.float32, list(X.shape), X.ctypes.data)
    binding.bind_ortvalue_input("y", treadle.OrtValue.ortvalue_from_numpy(Y))
    binding.bind_output("z", "cpu", 0, np.float32, list(z.shape), z.ctypes.data)
    binding.synchronize_inputs()
    session.run_with_iobinding(binding)
    binding.synchronize_outputs()
    np.testing.assert_array_equal(z, X + Y)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], z)
    binding.clear_binding_outputs()
    assert binding.get_outputs() == []


def test_errors_survive_pickling():
    try:
        treadle.InferenceSession("no such file")
    except treadle.NoSuchFile as problem:
        again = pickle.loads(pickle.dumps(problem))
        assert type(again) is treadle.NoSuchFile and str(again) == str(problem)
    else:
        raise AssertionError

"""Every request has an effect, or is refused, or gets one warning that it has none."""

import json
import os
import pathlib
import subprocess
import sys
import warnings

import models
import numpy as np
import onnx
import onnxruntime
import pytest
import treadle
from onnx import TensorProto, helper
from treadle import _ignored

X = np.arange(6, dtype=np.float32).reshape(2, 3)
Y = np.array([10, 20, 30], np.float32)
FEEDS = {"x": X, "y": Y}


@pytest.fixture(autouse=True)
def nothing_said():
    _ignored._said.clear()


def said(action):
    """The warnings that `action` gives, and again none."""
    found = []
    for _ in range(2):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            action()
        found.append([str(warning.message) for warning in caught])
        assert all(warning.filename == __file__ for warning in caught)
    assert found[1] == []
    return found[0]


# --- keywords


@pytest.mark.parametrize(
    "wrong, right",
    [("session_options", "sess_options"), ("provider", "providers"), ("path", "path_or_bytes"), ("weight", "weights")],
)
def test_misspelt_keywords_of_a_session_are_refused(wrong, right):
    with pytest.raises(TypeError, match=f"no argument '{wrong}'.*'?{right}"):
        treadle.InferenceSession(models.add(), **{wrong: None})


def test_keywords_that_onnxruntime_takes_besides_are_taken():
    assert said(lambda: treadle.InferenceSession(models.add(), enable_fallback=0)) == []
    for name in ("disabled_optimizers", "read_config_from_model"):
        assert [name in text for text in said(lambda n=name: treadle.InferenceSession(models.add(), **{n: 1}))] == [
            True
        ]


def test_options_that_lie_in_the_model_say_that_they_are_not_read(monkeypatch):
    model = onnx.load_from_string(models.add())
    onnx.helper.set_model_props(model, {"ort_config": "{}"})
    data = model.SerializeToString()
    assert said(lambda: treadle.InferenceSession(data)) == []
    monkeypatch.setenv("ORT_LOAD_CONFIG_FROM_MODEL", "1")
    assert ["ORT_LOAD_CONFIG_FROM_MODEL" in text for text in said(lambda: treadle.InferenceSession(data))] == [True]
    assert said(lambda: treadle.InferenceSession(models.add())) == []


@pytest.mark.parametrize("options", [{"intra_op_num_threads": 1}, "CPUExecutionProvider", ["CPUExecutionProvider"]])
def test_session_options_of_another_type_are_refused(options):
    with pytest.raises(TypeError, match="sess_options are SessionOptions, not a"):
        treadle.InferenceSession(models.add(), options)


def test_misspelt_keywords_elsewhere_are_refused():
    session = treadle.InferenceSession(models.add())
    for call in (
        lambda: treadle.preload_dlls(cude=False),
        lambda: treadle.OrtValue.ortvalue_from_numpy(X, devicetype="cpu"),
        lambda: treadle.OrtValue.ortvalue_from_shape_and_type([2], np.float32, deviceid=0),
        lambda: session.run(None, FEEDS, run_option=None),
        lambda: session.stream(times={"x": 0}),
    ):
        with pytest.raises(TypeError, match="unexpected keyword"):
            call()


# --- options

NO_EFFECT = {"log_severity_level": 0, "log_verbosity_level": 1}
# Nothing that a program can see depends on these.
UNSEEN = {
    "enable_cpu_mem_arena": False,
    "enable_mem_pattern": False,
    "enable_mem_reuse": False,
    "execution_mode": treadle.ExecutionMode.ORT_PARALLEL,
    "execution_order": treadle.ExecutionOrder.PRIORITY_BASED,
    "graph_optimization_level": treadle.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "inter_op_num_threads": 4,
    "logid": "mine",
}
SO_ANYWAY = {
    "enable_cpu_mem_arena": True,
    "enable_mem_pattern": True,
    "enable_mem_reuse": True,
    "enable_profiling": False,
    "execution_mode": treadle.ExecutionMode.ORT_SEQUENTIAL,
    "execution_order": treadle.ExecutionOrder.DEFAULT,
    "graph_optimization_level": treadle.GraphOptimizationLevel.ORT_ENABLE_ALL,
    "inter_op_num_threads": 1,
    "intra_op_num_threads": 3,
    "log_severity_level": 3,
    "log_verbosity_level": 0,
    "logid": "",
    "optimized_model_filepath": "",
    "profile_file_prefix": "p_",
    "use_deterministic_compute": True,
    "use_per_session_threads": False,
}


def test_every_option_of_onnxruntime_is_looked_at():
    """A new option of a release fails here until treadle handles it."""
    theirs = onnxruntime.SessionOptions()
    names = {n for n in dir(theirs) if not n.startswith("_") and not callable(getattr(theirs, n))}
    assert names <= set(SO_ANYWAY)
    theirs = onnxruntime.RunOptions()
    names = {n for n in dir(theirs) if not n.startswith("_") and not callable(getattr(theirs, n))}
    assert names <= {"log_severity_level", "log_verbosity_level", "logid", "only_execute_path_to_fetches", "terminate"}
    page = (pathlib.Path(__file__).parents[2] / "docs" / "options.md").read_text()
    assert [name for name in [*SO_ANYWAY, *names] if f"`{name}`" not in page] == []


@pytest.mark.parametrize("name", NO_EFFECT)
def test_options_without_effect_say_so_once_and_are_kept(name):
    options = treadle.SessionOptions()
    (message,) = said(lambda: setattr(options, name, NO_EFFECT[name]))
    assert name in message and "has no effect" in message
    assert getattr(options, name) == NO_EFFECT[name]
    assert said(lambda: treadle.InferenceSession(models.add(), options)) == []


def test_options_that_ask_for_the_default_behaviour_give_no_warning():
    options = treadle.SessionOptions()
    for name, value in [*SO_ANYWAY.items(), *UNSEEN.items()]:
        assert said(lambda n=name, v=value: setattr(options, n, v)) == []
        assert getattr(options, name) == value
    run = treadle.RunOptions()
    for name, value in {"only_execute_path_to_fetches": True, "logid": "x"}.items():
        assert said(lambda n=name, v=value: setattr(run, n, v)) == []


def test_run_options_without_effect_say_so_once():
    run = treadle.RunOptions()
    (message,) = said(lambda: setattr(run, "log_severity_level", 1))
    assert "RunOptions.log_severity_level" in message
    (message,) = said(lambda: run.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0"))
    assert "memory.enable_memory_arena_shrinkage" in message  # memory use can be observed
    assert said(lambda: run.add_run_config_entry("disable_synchronize_execution_providers", "1")) == []
    assert run.get_run_config_entry("memory.enable_memory_arena_shrinkage") == "cpu:0"


def test_programs_that_onnxruntime_runs_quietly_are_quiet():
    """Settings of published packages: memory, threads, and how threads wait."""

    def program():
        options = treadle.SessionOptions()
        for key, value in QUIET_ENTRIES.items():
            options.add_session_config_entry(key, value)
        info = treadle.OrtMemoryInfo("Cpu", treadle.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, treadle.OrtMemType.DEFAULT)
        treadle.create_and_register_allocator(info, treadle.OrtArenaCfg({"max_mem": 1 << 20}))
        treadle.create_and_register_allocator_v2("CPUExecutionProvider", info, {"a": "b"})
        provider = ("CPUExecutionProvider", {"arena_extend_strategy": "kSameAsRequested"})
        treadle.InferenceSession(models.add(), options, providers=[provider])
        options.add_provider(*provider)

    assert said(program) == []


QUIET_ENTRIES = {
    "session.disable_prepacking": "1",
    "session.dynamic_block_base": "4",
    "session.external_data_loader.threads": "2",
    "session.force_spinning_stop": "1",
    "session.inter_op.allow_spinning": "1",
    "session.inter_op.spin_duration_us": "10",
    "session.intra_op.allow_spinning": "0",
    "session.intra_op.spin_backoff_max": "4",
    "session.intra_op_thread_affinities": "1;2",
    "session.prepack.enable_parallel": "1",
    "session.save_external_prepacked_constant_initializers": "1",
    "session.set_denormal_as_zero": "1",
    "session.use_device_allocator_for_initializers": "1",
    "session.use_env_allocators": "1",
    "session.use_ort_model_bytes_directly": "1",
}


@pytest.mark.parametrize("key", QUIET_ENTRIES)
def test_each_entry_that_is_quiet(key):
    assert said(lambda: treadle.SessionOptions().add_session_config_entry(key, QUIET_ENTRIES[key])) == []


# --- a program's own function for messages


@pytest.fixture
def logged():
    messages = []
    treadle.set_default_logger_callback(lambda *message: messages.append(message))
    yield messages
    treadle.set_default_logger_callback(None)
    treadle.set_default_logger_severity(2)


def with_message():
    treadle.SessionOptions().add_session_config_entry("session.disable_quant_qdq", "1")


def test_a_callback_gets_each_message_in_place_of_a_warning(logged):
    assert said(with_message) == []
    assert len(logged) == 2  # `said` acts twice: there is no limit to messages, as there is to warnings
    severity, category, _, place, message = logged[0]
    assert (severity, category) == (2, "treadle") and "session.disable_quant_qdq" in message
    assert place.startswith(f"{__file__}:")
    treadle.set_default_logger_callback(None)
    assert len(said(with_message)) == 1 and len(logged) == 2


def test_severities_keep_messages_back(logged):
    treadle.set_default_logger_severity(3)
    assert said(with_message) == [] and logged == []
    treadle.set_default_logger_callback(lambda *message: logged.append(message), 4)
    assert said(with_message) == [] and logged == []
    for wrong in ((None, 5), (logged.append, -1), (3, 2)):
        with pytest.raises(RuntimeError, match="severity|callable"):
            treadle.set_default_logger_callback(*wrong)


def test_a_callback_that_raises_or_causes_a_message(logged, monkeypatch):
    raised = []
    monkeypatch.setattr(sys, "unraisablehook", raised.append)

    def callback(*_):
        with_message()  # comes as a warning: the callback is running
        raise ValueError("no")

    treadle.set_default_logger_callback(callback)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with_message()
    assert len(caught) == 1
    assert [type(found.exc_value) for found in raised] == [ValueError]


def test_options_of_wrong_types_are_refused():
    options = treadle.SessionOptions()
    for name, value, error in (
        ("intra_op_num_threads", "2", TypeError),
        ("intra_op_num_threads", 1.5, TypeError),
        ("enable_profiling", "False", TypeError),
        ("optimized_model_filepath", 3, TypeError),
        ("graph_optimization_level", 7, ValueError),
        ("execution_mode", "parallel", ValueError),
    ):
        with pytest.raises(error, match=f"SessionOptions.{name}"):
            setattr(options, name, value)
    with pytest.raises(AttributeError, match="did you mean 'intra_op_num_threads'"):
        options.intra_op_num_thread = 2
    with pytest.raises(TypeError):
        options.add_free_dimension_override_by_name("n", "2")


@pytest.mark.parametrize("name", ["time_limit", "iteration_limit", "memory_limit"])
def test_a_limit_is_a_positive_number_or_none(name):
    run = treadle.RunOptions()
    setattr(run, name, 0)
    assert getattr(run, name) is None
    for value in (-1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=f"{name} is a positive number, or None"):
            setattr(run, name, value)
    setattr(run, name, None)


def test_a_limit_that_is_refused_changes_nothing():
    run = treadle.RunOptions()
    for name, wrong in (("time_limit", "5"), ("iteration_limit", 5.5), ("memory_limit", 1.5), ("memory_limit", -5)):
        with pytest.raises((TypeError, ValueError)):
            setattr(run, name, wrong)
        assert getattr(run, name) is None


def test_the_old_name_of_the_reference_tier_goes_on_working():
    options = treadle.SessionOptions()
    options.add_session_config_entry("treadle.tier", "judge")
    session = treadle.InferenceSession(models.add(), options)
    with pytest.raises(treadle.InvalidArgument, match="reference interpreter"):
        session.explain()


def test_configuration_entries():
    options = treadle.SessionOptions()
    (message,) = said(lambda: options.add_session_config_entry("session.debug_layout_transformation", "1"))
    assert "session.debug_layout_transformation" in message
    for kind in ("ONNX", "ORT"):
        assert said(lambda kind=kind: options.add_session_config_entry("session.load_model_format", kind)) == []
    assert len(said(lambda: options.add_session_config_entry("session.save_model_format", "ORT"))) == 1
    options.add_session_config_entry("treadle.threds", "1")
    with pytest.raises(treadle.InvalidArgument, match=r"no option 'threds' \(tier, threads"):
        treadle.InferenceSession(models.add(), options)


def test_a_size_of_weights_that_is_no_number(tmp_path):
    options = treadle.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "m.onnx")
    options.add_session_config_entry("session.optimized_model_external_initializers_file_name", "w.bin")
    options.add_session_config_entry("session.optimized_model_external_initializers_min_size_in_bytes", "many")
    with pytest.raises(treadle.InvalidArgument, match="number of bytes, found 'many'"):
        treadle.InferenceSession(models.add(), options)


def test_providers_and_their_options():
    assert len(said(lambda: treadle.InferenceSession(models.add(), provider_options=[{"a": 1}]))) == 1
    with_options = [("CPUExecutionProvider", {"use_arena": "1"})]
    assert said(lambda: treadle.InferenceSession(models.add(), providers=with_options)) == []


def test_functions_without_effect():
    assert said(lambda: treadle.set_default_logger_severity(3)) == []
    assert len(said(lambda: treadle.set_default_logger_severity(0))) == 1
    with pytest.raises(RuntimeError, match="17"):
        treadle.set_default_logger_severity(17)
    assert len(said(treadle.enable_telemetry_events)) == 1


def test_a_seed_makes_random_operators_repeat():
    data = models.model([models.node("RandomNormal", [], ["y"], shape=[4])], [], [models.value("y", shape=[4])])
    session = treadle.InferenceSession(data)
    found = []
    for seed in (5, 5, 6):
        treadle.set_seed(seed)
        found.append(np.concatenate([session.run(None, {})[0], session.run(None, {})[0]]))
    np.testing.assert_array_equal(found[0], found[1])
    assert not np.array_equal(found[0][:4], found[0][4:]) and not np.array_equal(found[0], found[2])


def test_options_that_the_reference_interpreter_lacks_are_named():
    options = treadle.SessionOptions()
    options.add_session_config_entry("treadle.tier", "reference")
    options.add_session_config_entry("treadle.associative_math", "1")
    (message,) = said(lambda: treadle.InferenceSession(models.add(), options, weights="f16") and None)[:1]
    assert "reference" in message


def test_environment_variables_that_mean_nothing_are_refused():
    code = "import sys, treadle; treadle.InferenceSession(sys.stdin.buffer.read())"
    for name, value in (
        ("TREADLE_JIT", "never"),
        ("TREADLE_JIT", "auto,soon"),
        ("TREADLE_ISA", "avx-512"),
        ("TREADLE_CONV", "winograd"),
        ("TREADLE_GEMM", "strassen"),
        ("TREADLE_SIGBUS", "on"),
        ("TREADLE_FILL_MEMORY", "256"),
    ):
        env = {**os.environ, name: value, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        done = subprocess.run([sys.executable, "-c", code], input=models.add(), env=env, capture_output=True)
        assert done.returncode == 1 and f"{name}".encode() in done.stderr and value.encode() in done.stderr


def test_a_folder_that_cannot_keep_native_code_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    options = treadle.SessionOptions()
    options.add_session_config_entry("treadle.jit_cache", str(tmp_path / "file"))
    (message,) = said(lambda: treadle.InferenceSession(models.add(), options))
    assert "jit_cache" in message and str(tmp_path / "file") in message


def test_more_threads_than_there_are_is_said():
    options = treadle.SessionOptions()
    options.intra_op_num_threads = 1000
    (message,) = said(lambda: treadle.InferenceSession(models.add(), options))
    assert "threads = 1000" in message


# --- values and runs


def test_arguments_of_other_kinds_are_refused():
    session = treadle.InferenceSession(models.add())
    stream = session.stream(time={"x": "n"}, bind={"y": Y})
    value = treadle.OrtValue.ortvalue_from_numpy(X)
    binding = session.io_binding()
    for call, error, message in (
        (lambda: session.run(None, FEEDS, {"time_limit": 1}), TypeError, "run_options are RunOptions, not a dict"),
        (lambda: session.run(["q"], FEEDS), treadle.InvalidArgument, r"no output 'q' \(it has: z\)"),
        (lambda: session.run_async(None, FEEDS, None, None), TypeError, "callback"),
        (lambda: session.set_providers(["Invalid"]), RuntimeError, "Unknown Provider Type: Invalid"),
        (lambda: session.profile(FEEDS, runs=0), ValueError, "at least one run"),
        (lambda: session.stream(hop="3"), TypeError, "integer"),
        (lambda: stream.push({"x": X}, x=X), TypeError, "'x' is given twice"),
        (lambda: stream.push(x=np.ones((2, 4), np.float32)), treadle.InvalidArgument, r"\[n,3\], not .*\[2,4\]"),
        (lambda: treadle.OrtDevice("abacus", 0), treadle.InvalidArgument, "no device 'abacus'"),
        (lambda: treadle.OrtValue.ortvalue_from_numpy(X, "cuda"), treadle.InvalidArgument, "no device 'cuda'"),
        (lambda: binding.bind_output("z", "cuda"), treadle.InvalidArgument, "no device 'cuda'"),
        (lambda: value.__dlpack__(dl_device=(2, 0)), BufferError, "CPU"),
        (lambda: value.__dlpack__(copied=True), TypeError, "unexpected keyword"),
        (lambda: np.asarray(value, np.float64, copy=False), ValueError, "copy"),
    ):
        with pytest.raises(error, match=message):
            call()
    shared, copied = (np.from_dlpack(treadle.OrtValue.from_dlpack(value.__dlpack__(copy=c))) for c in (False, True))
    assert np.shares_memory(shared, X) and not np.shares_memory(copied, X)


@pytest.mark.parametrize("shape, dtype", [([2, 2], np.float32), ([6], np.float32), ([2, 3], np.float64)])
def test_bound_outputs_of_other_types_are_refused(shape, dtype):
    for module in (onnxruntime, treadle):
        session = module.InferenceSession(models.add(), providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        binding.bind_cpu_input("x", X)
        binding.bind_cpu_input("y", Y)
        binding.bind_ortvalue_output("z", module.OrtValue.ortvalue_from_shape_and_type(shape, dtype))
        with pytest.raises(RuntimeError, match="Error in execution: .*output"):
            session.run_with_iobinding(binding)


def with_default():
    w = helper.make_tensor("w", TensorProto.FLOAT, [1], [1])
    inputs = [models.value("x", shape=["n"]), models.value("w", shape=[1])]
    return models.model(
        [models.node("Add", ["x", "w"], ["y"])], inputs, [models.value("y", shape=["n"])], initializers=[w]
    )


def test_replaced_initialisers_and_profiles_hold_for_every_kind_of_run(tmp_path):
    options = treadle.SessionOptions()
    options.add_initializer("w", treadle.OrtValue.ortvalue_from_numpy(np.float32([5])))
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "p_")
    session = treadle.InferenceSession(with_default(), options)
    x = np.zeros(2, np.float32)
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    session.run_with_iobinding(binding)
    (value,) = session.run_with_ort_values(None, {"x": treadle.OrtValue.ortvalue_from_numpy(x)})
    pool = session.streams(2, time={"x": "n"})
    found = [
        session.run(None, {"x": x})[0],
        binding.copy_outputs_to_cpu()[0],
        value.numpy(),
        session.stream(time={"x": "n"}).push(x=x),
        pool.push({"a": x})["a"],
    ]
    for y in found:
        np.testing.assert_array_equal(y, [5, 5])
    names = [event["name"] for event in json.loads(pathlib.Path(session.end_profiling()).read_text())]
    runs = [name for name in names if name.endswith(("_run", "_push"))]
    assert sorted(runs) == ["model_run"] * 3 + ["pool_push", "stream_push"]
    assert names.count("Add_0_kernel_time") == 3


# --- sizes


def denoted(dims, denotations):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, dims, shape_denotation=denotations)
    return models.model([models.node("Relu", ["x"], ["y"])], [x], [models.value("y")])


def both(data, name, size, by):
    """Shapes of inputs and outputs under an override, of onnxruntime and of treadle, or the kind of error."""
    found = []
    for module in (onnxruntime, treadle):
        options = module.SessionOptions()
        if module is onnxruntime:
            options.log_severity_level = 4
        getattr(options, f"add_free_dimension_override_by_{by}")(name, size)
        try:
            session = module.InferenceSession(data, options, providers=["CPUExecutionProvider"])
            found.append([[a.shape for a in args] for args in (session.get_inputs(), session.get_outputs())])
        except Exception as e:
            found.append(type(e).__name__)
    return found


@pytest.mark.parametrize(
    "name, size, by",
    [
        ("DATA_BATCH", 3, "denotation"),
        ("data_batch", 3, "denotation"),
        ("DATA_CHANNEL", 4, "denotation"),
        ("DATA_CHANNEL", 3, "denotation"),
        ("N", 7, "name"),
    ],
)
def test_sizes_are_fixed_as_in_onnxruntime(name, size, by):
    theirs, ours = both(denoted(["N", None, 3], ["DATA_BATCH", "DATA_TIME", "DATA_CHANNEL"]), name, size, by)
    assert ours == theirs


def test_sizes_that_no_input_has_are_named():
    options = treadle.SessionOptions()
    options.add_free_dimension_override_by_name("btach", 4)
    options.add_free_dimension_override_by_denotation("DATA_BATCH", 4)
    messages = said(lambda: treadle.InferenceSession(models.add(), options))
    assert len(messages) == 2
    assert any("'btach' (their free sizes: n)" in m for m in messages) and any("'DATA_BATCH'" in m for m in messages)


# --- files that options ask for

LOOP = """<ir_version: 10, opset_import: ["" : 21, "my" : 1]>
looped (int64 n, float[T] x) => (float[T] y, float[?, T] all, string[2] words)
<float[1] half = {0.5}, string[2] words = {"a", "b"}> {
  t = my.twice (x)
  one = Add (half, half)
  y, all, c = Loop (n, , t) <body = iteration (int64 i, bool go, float[T] t) => (bool go, float[T] next, float[T] next, float[1] one) {
    s = Mul (t, half)
    next = Add (s, x)
  }>
}
<domain: "my", opset_import: ["" : 21]>
twice (v) => (w) {
  two = Constant <value = float[1] {2}> ()
  w = Mul (v, two)
}
"""


def test_the_optimised_model_is_written_and_gives_the_same(tmp_path):
    options = treadle.SessionOptions()
    options.optimized_model_filepath = tmp_path / "optimised.onnx"
    feeds = {"n": np.array(3), "x": np.float32([1, 2])}
    expected = treadle.InferenceSession(LOOP.encode(), options).run(None, feeds)
    onnx.checker.check_model(str(tmp_path / "optimised.onnx"), full_check=True)
    written = onnx.load(tmp_path / "optimised.onnx")
    assert [node.op_type for node in written.graph.node] == ["Mul", "Loop"]
    for module in (treadle, onnxruntime):
        session = module.InferenceSession(tmp_path / "optimised.onnx", providers=["CPUExecutionProvider"])
        for ours, theirs in zip(expected, session.run(None, feeds), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_an_optimised_model_that_cannot_be_written_is_an_error(tmp_path):
    for path in (tmp_path / "none" / "m.onnx", "/dev/full"):
        options = treadle.SessionOptions()
        options.optimized_model_filepath = path
        with pytest.raises(treadle.InvalidArgument, match="optimized_model_filepath"):
            treadle.InferenceSession(models.add(), options)


def test_a_profile_is_written_when_its_session_ends(tmp_path):
    options = treadle.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "profile_")
    session = treadle.InferenceSession(models.add(), options)
    session.run(None, FEEDS)
    assert list(tmp_path.iterdir()) == []
    del session
    (written,) = tmp_path.iterdir()
    assert "model_run" in written.read_text()


# --- files that are no models


def test_every_interface_names_a_file_that_is_no_model(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n")
    for read in (treadle.InferenceSession, treadle.infer_shapes, treadle.to_text):
        for model in (path, path.read_bytes()):
            with pytest.raises(treadle.InvalidProtobuf, match="expected an ONNX model, found a git-lfs pointer"):
                read(model)
    for model in (path, path.read_bytes()):
        (problem,) = treadle.check(model)
        assert problem.code == "file-invalid" and "git-lfs pointer" in problem.message


def test_every_interface_refuses_a_path_that_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, what in ((tmp_path, "a folder"), ("/dev/zero", "a device"), (tmp_path / "pipe", "nothing is written to")):
        for read in (treadle.InferenceSession, treadle.infer_shapes, treadle.check, treadle.to_text):
            with pytest.raises(treadle.InvalidProtobuf, match=what):
                read(path)


def test_a_model_may_come_through_a_pipe(tmp_path):
    (tmp_path / "m.onnx").write_bytes(models.add())
    with subprocess.Popen(["cat", tmp_path / "m.onnx"], stdout=subprocess.PIPE) as process:
        session = treadle.InferenceSession(f"/dev/fd/{process.stdout.fileno()}")
    assert [i.name for i in session.get_inputs()] == ["x", "y"]


# --- texts


def strings(module):
    data = models.identity(TensorProto.STRING)
    return module.InferenceSession(data, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize(
    "values",
    [
        ["a", None],
        ["a", float("nan"), np.nan, float("inf")],
        ["a", 3, 1.5, True, 10**30, 1e20, 1e-7, 0.1 + 0.2],
        [np.int64(3), np.float32(0.1), np.True_, np.str_("x")],
        [1, 2],
    ],
)
def test_none_and_numbers_are_texts_as_in_onnxruntime(values):
    array = np.array(values, object)
    for fed in (array, list(values)):
        (theirs,) = strings(onnxruntime).run(None, {"x": fed})
        (ours,) = strings(treadle).run(None, {"x": fed})
        assert ours.tolist() == theirs.tolist()


def test_bytes_of_one_size_are_texts_as_in_onnxruntime():
    array = np.array([b"must", b"have", b"same", b"size"], dtype=np.void).reshape(2, 2)
    (theirs,) = strings(onnxruntime).run(None, {"x": array})
    (ours,) = strings(treadle).run(None, {"x": array})
    assert ours.tolist() == theirs.tolist() == [["must", "have"], ["same", "size"]]


def test_arrays_of_numbers_are_no_texts():
    for module in (onnxruntime, treadle):
        with pytest.raises(Exception, match="int64") as caught:
            strings(module).run(None, {"x": np.array([1, 2])})
        assert type(caught.value).__name__ == "InvalidArgument"
    with pytest.raises(treadle.InvalidArgument, match="regular"):
        strings(treadle).run(None, {"x": [["a"], ["b", "c"]]})
    with pytest.raises(treadle.InvalidArgument, match="no element type"):
        strings(treadle).run(None, {"x": np.zeros(2, [("a", "<f4")])})


def test_none_among_numbers():
    session = treadle.InferenceSession(models.identity(TensorProto.FLOAT))
    np.testing.assert_array_equal(session.run(None, {"x": [1.0, None]})[0], np.float32([1, np.nan]))
    whole = treadle.InferenceSession(models.identity(TensorProto.INT64))
    for wrong in ([1, None], [1, 2.5, None], [10**30]):
        with pytest.raises(treadle.InvalidArgument, match="'x'"):
            whole.run(None, {"x": wrong})
    with pytest.raises(treadle.InvalidArgument, match="'x'"):
        session.run(None, {"x": np.array([1.0, None], object)})


# --- streams


def test_a_time_axis_may_be_named():
    text = """<ir_version: 10, opset_import: ["" : 21]>
    f (float[1, C, T] x) => (float[1, C, T] y) { y = Neg (x) }"""
    session = treadle.InferenceSession(text.encode())
    x = np.ones((1, 2, 5), np.float32)
    for axis in ("T", 2, -1, np.int64(2)):
        stream = session.stream(time={"x": axis})
        np.testing.assert_array_equal(stream.push(x=x), -x)
    for time, message in (
        ({"x": "time"}, r"'x' is tensor\(float\)\[1,C,T\]: none of its axes has a size named time"),
        ({"x": 3}, r"'x' \(tensor\(float\)\[1,C,T\]\) is 3, expected -3 to 2"),
        ({"q": "T"}, r"no input or output 'q' \(inputs: x; outputs: y\)"),
    ):
        with pytest.raises(treadle.InvalidArgument, match=message):
            session.stream(time=time)
    for wrong in ({"x": 2.0}, {"x": None}, {"x": [2]}):
        with pytest.raises(TypeError, match="time axis of 'x' is a number or the name of its size"):
            session.stream(time=wrong)
    for name in ("time", "state", "bind", "initial"):
        with pytest.raises(TypeError, match=f"{name} is a dict from"):
            session.stream(**{name: "x"})
    square = treadle.InferenceSession(models.identity(TensorProto.FLOAT, ["T", "T"]))
    with pytest.raises(treadle.InvalidArgument, match="axes 0 and 1 of 'x'.* both have the size T"):
        square.stream(time={"x": "T"})


def test_errors_of_streams_name_the_signal_by_its_size():
    text = """<ir_version: 10, opset_import: ["" : 21]>
    f (float[1, seconds] x) => (float[1, seconds] y) { y = Softmax (x) }"""
    with pytest.raises(treadle.InvalidArgument, match=r"all of time axis 1 \(seconds\) of 'x'"):
        treadle.InferenceSession(text.encode()).stream(time={"x": "seconds"})


# --- explain


def test_explain_says_off_only_where_it_is_off():
    for jit, data in (
        ("auto", models.add()),
        ("always", models.add()),
        ("off", models.add()),
        ("off", models.division()),
    ):
        options = treadle.SessionOptions()
        options.add_session_config_entry("treadle.jit", jit)
        session = treadle.InferenceSession(data, options)
        assert session.explain(json=True)["jit"] == jit
        line = next(line for line in session.explain().splitlines() if line.startswith("native code"))
        assert line.split()[2].rstrip(";") == jit
    options = treadle.SessionOptions()
    options.add_session_config_entry("treadle.tier", "reference")
    with pytest.raises(treadle.InvalidArgument, match="reference"):
        treadle.InferenceSession(models.division(), options).explain()

"""InferenceSession by onnxruntime's names and behaviours."""

import concurrent.futures
import inspect
import pathlib
import signal
import threading
import time

import models
import numpy as np
import onnx.parser
import pytest
import treadle
from onnx import TensorProto, helper


@pytest.fixture(scope="module")
def add():
    return treadle.InferenceSession(models.add())


X = np.arange(6, dtype=np.float32).reshape(2, 3)
Y = np.array([10, 20, 30], np.float32)


def test_run_by_names_none_and_empty_list(add):
    for names in (None, [], ["z"], ("z",)):
        (z,) = add.run(names, {"x": X, "y": Y})
        np.testing.assert_array_equal(z, X + Y)


def test_run_takes_run_options_third(add):
    (z,) = add.run(None, {"x": X, "y": Y}, treadle.RunOptions())
    np.testing.assert_array_equal(z, X + Y)


@pytest.mark.parametrize("rows", [1, 1000])
def test_later_runs_leave_results_alone(add, rows):
    y = np.zeros(3, np.float32)
    results = [add.run(None, {"x": np.full((rows, 3), i, np.float32), "y": y})[0] for i in range(5)]
    assert [set(z.ravel().tolist()) for z in results] == [{i} for i in range(5)]


def test_opens_paths_bytes_and_protos(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(models.add())
    for source in (str(path), path, models.add(), bytearray(models.add()), models.parse(models.add())):
        assert treadle.InferenceSession(source).get_outputs()[0].name == "z"
    with pytest.raises(TypeError):
        treadle.InferenceSession(3)


def test_results_are_new_writable_and_c_ordered():
    session = treadle.InferenceSession(models.identity(TensorProto.FLOAT))
    for shape in ((3,), (700, 700)):
        x = np.ones(shape, np.float32)
        (y,) = session.run(None, {"x": x})
        assert y.flags.writeable and y.flags.c_contiguous
        y[...] = 7
        assert x.max() == 1
        (again,) = session.run(None, {"x": x})
        assert again.max() == 1


@pytest.mark.parametrize(
    "x",
    [
        X.tolist(),
        X.astype(">f4"),
        np.asfortranarray(X),
        np.repeat(X, 2, axis=1)[:, ::2],
        X[::-1][::-1],
        np.frombuffer(X.tobytes(), np.float32).reshape(2, 3),
        [[0, 1, 2], [3, 4, 5]],
        [X[0], X[1]],
    ],
    ids=["list", "big-endian", "fortran", "strided", "negative", "read-only", "ints", "list of arrays"],
)
def test_feeds_of_all_kinds(add, x):
    (z,) = add.run(None, {"x": x, "y": Y})
    np.testing.assert_array_equal(z, X + Y)
    assert z.dtype == np.float32


def test_unaligned_feed(add):
    raw = np.zeros(X.nbytes + 1, np.uint8)
    raw[1:] = np.frombuffer(X.tobytes(), np.uint8)
    (z,) = add.run(None, {"x": raw[1:].view(np.float32).reshape(2, 3), "y": Y})
    np.testing.assert_array_equal(z, X + Y)


def test_scalars_and_zero_size():
    scalar = treadle.InferenceSession(models.identity(TensorProto.FLOAT, []))
    for x in (np.float32(3), np.array(3, np.float32), 3, 3.0):
        (y,) = scalar.run(None, {"x": x})
        assert y.shape == () and y == 3
    (z,) = treadle.InferenceSession(models.add()).run(None, {"x": np.zeros((0, 3), np.float32), "y": Y})
    assert z.shape == (0, 3)


def test_wrong_feeds(add):
    with pytest.raises(treadle.InvalidArgument, match=r"'x'.*float.*double"):
        add.run(None, {"x": X.astype(np.float64), "y": Y})
    with pytest.raises(treadle.InvalidArgument, match="'x'"):
        add.run(None, {"x": X[0], "y": Y})
    with pytest.raises(treadle.InvalidArgument, match="'x'"):
        add.run(None, {"x": np.zeros((2, 4), np.float32), "y": Y})
    with pytest.raises(treadle.InvalidArgument, match="'q'"):
        add.run(None, {"x": X, "y": Y, "q": Y})
    with pytest.raises(treadle.InvalidArgument, match="'q'"):
        add.run(["q"], {"x": X, "y": Y})
    with pytest.raises(treadle.InvalidArgument):
        add.run(None, {"x": X, "y": object()})
    with pytest.raises(treadle.InvalidArgument, match="regular"):
        add.run(None, {"x": [[1, 2, 3], [4]], "y": Y})
    with pytest.raises(ValueError, match="'y'"):
        add.run(None, {"x": X})
    with pytest.raises(TypeError):
        add.run(None, [X, Y])
    (z,) = add.run(None, {"x": X, "y": Y})
    np.testing.assert_array_equal(z, X + Y)


def test_floats_do_not_become_integers():
    session = treadle.InferenceSession(models.identity(TensorProto.INT64))
    with pytest.raises(treadle.InvalidArgument):
        session.run(None, {"x": [1.5]})
    assert session.run(None, {"x": [1, 2]})[0].dtype == np.int64


def test_each_exception_is_a_direct_subclass_of_exception():
    for name in ("InvalidArgument", "Fail", "NoSuchFile", "InvalidProtobuf", "InvalidGraph", "RuntimeException"):
        assert getattr(treadle, name).__bases__ == (Exception,)


def test_failures_at_load(tmp_path):
    with pytest.raises(treadle.NoSuchFile):
        treadle.InferenceSession(tmp_path / "none.onnx")
    with pytest.raises(treadle.InvalidProtobuf):
        treadle.InferenceSession(models.add()[:-7])
    with pytest.raises(treadle.NotImplemented, match="Unheard"):
        treadle.InferenceSession(
            models.model([models.node("Unheard", ["x"], ["y"])], [models.value("x")], [models.value("y")])
        )


def test_failures_at_run_name_their_place():
    session = treadle.InferenceSession(models.division())
    with pytest.raises(treadle.RuntimeException) as caught:
        session.run(None, {"x": np.array([1, 2, 0, 4])})
    assert "iteration 2" in caught.value.place and "divide" in caught.value.place and "Div" in caught.value.place
    (y,) = session.run(None, {"x": np.array([1, 2, 4])})
    np.testing.assert_array_equal(y, [100, 50, 25])


def test_node_args(add):
    x, y = add.get_inputs()
    assert (x.name, x.type, x.shape) == ("x", "tensor(float)", ["n", 3])
    assert (y.name, y.shape) == ("y", [3])
    assert add.get_outputs()[0].type == "tensor(float)"
    sequence = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    tensor = helper.make_tensor_type_proto(TensorProto.INT64, [])
    session = treadle.InferenceSession(models.of_type("SequenceLength", sequence, tensor))
    assert session.get_inputs()[0].type == "seq(tensor(float))"


def test_metadata(add):
    proto = models.parse(models.add())
    helper.set_model_props(proto, {"sample_rate": "16000"})
    meta = treadle.InferenceSession(proto).get_modelmeta()
    assert meta.custom_metadata_map == {"sample_rate": "16000"}
    assert (meta.producer_name, meta.graph_name, meta.description) == ("tests", "test", "adds")


@pytest.mark.filterwarnings("ignore:.* no effect")
def test_providers():
    assert treadle.get_available_providers() == ["CPUExecutionProvider"]
    with pytest.warns(UserWarning, match="CUDAExecutionProvider"):
        session = treadle.InferenceSession(
            models.add(), providers=[("CUDAExecutionProvider", {"device_id": 0}), "CPUExecutionProvider"]
        )
    assert session.get_providers() == ["CPUExecutionProvider"]
    assert session.get_provider_options() == {"CPUExecutionProvider": {}}
    session.set_providers(["CPUExecutionProvider"])
    session.disable_fallback()
    treadle.InferenceSession(models.add(), None, ["CPUExecutionProvider"], [{"arena": 1}])
    with pytest.raises(ValueError, match="same length"):
        treadle.InferenceSession(models.add(), providers=["CPUExecutionProvider"], provider_options=[])


@pytest.mark.filterwarnings("ignore:.* no effect")
def test_session_options_are_stored():
    options = treadle.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.graph_optimization_level = treadle.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.execution_mode = treadle.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = 3
    options.enable_cpu_mem_arena = False
    options.add_session_config_entry("session.unheard_of", "1")
    options.add_free_dimension_override_by_name("n", 2)
    session = treadle.InferenceSession(models.add(), sess_options=options)
    np.testing.assert_array_equal(session.run(None, {"x": X, "y": Y})[0], X + Y)
    assert session.get_session_options() is options
    assert options.get_session_config_entry("session.unheard_of") == "1"


def test_tiers_agree_and_are_checked():
    results = []
    for tier in ("program", "reference"):
        options = treadle.SessionOptions()
        options.add_session_config_entry("treadle.tier", tier)
        results.append(treadle.InferenceSession(models.division(), options).run(None, {"x": np.array([3, 7])})[0])
    np.testing.assert_array_equal(results[0], results[1])
    options.add_session_config_entry("treadle.tier", "none")
    with pytest.raises(treadle.InvalidArgument, match="tier"):
        treadle.InferenceSession(models.add(), options)


def test_initializers_may_be_overridden():
    data = models.model(
        [models.node("Add", ["x", "w"], ["y"])],
        [models.value("x", shape=[2]), models.value("w", shape=[2])],
        [models.value("y", shape=[2])],
        initializers=[helper.make_tensor("w", models.FLOAT, [2], [1, 2])],
    )
    session = treadle.InferenceSession(data)
    assert [i.name for i in session.get_inputs()] == ["x"]
    assert [i.name for i in session.get_overridable_initializers()] == ["w"]
    x = np.zeros(2, np.float32)
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], [1, 2])
    np.testing.assert_array_equal(session.run(None, {"x": x, "w": np.float32([5, 6])})[0], [5, 6])
    options = treadle.SessionOptions()
    options.add_initializer("w", treadle.OrtValue.ortvalue_from_numpy(np.float32([8, 9])))
    np.testing.assert_array_equal(treadle.InferenceSession(data, options).run(None, {"x": x})[0], [8, 9])


GO = {"go": np.array(True), "s0": np.float32(0)}


def test_limits_and_cancelling():
    session = treadle.InferenceSession(models.endless())
    options = treadle.RunOptions()
    options.iteration_limit = 1000
    with pytest.raises(treadle.LimitExceeded):
        session.run(None, GO, options)
    options = treadle.RunOptions()
    options.time_limit = 0.05
    begin = time.perf_counter()
    with pytest.raises(treadle.LimitExceeded):
        session.run(None, GO, options)
    assert time.perf_counter() - begin < 5
    options = treadle.RunOptions()
    timer = threading.Timer(0.05, lambda: setattr(options, "terminate", True))
    timer.start()
    with pytest.raises(treadle.Fail):
        session.run(None, GO, options)
    timer.join()
    stop = {"go": np.array(False), "s0": np.float32(4)}
    assert session.run(None, stop)[0] == 4


def test_signals_reach_a_running_model():
    def alarm(*_):
        raise KeyboardInterrupt

    session = treadle.InferenceSession(models.endless())
    before = signal.signal(signal.SIGALRM, alarm)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(KeyboardInterrupt):
            session.run(None, GO)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert session.run(None, {"go": np.array(False), "s0": np.float32(1)})[0] == 1


def test_run_releases_the_interpreter():
    session = treadle.InferenceSession(models.endless())
    options = treadle.RunOptions()
    options.time_limit = 0.3
    ticks = 0

    def run():
        with pytest.raises(treadle.LimitExceeded):
            session.run(None, GO, options)

    thread = threading.Thread(target=run)
    thread.start()
    while thread.is_alive():
        ticks += 1
        time.sleep(0.005)
    assert ticks > 5


def test_arguments_of_run_are_those_of_a_function_of_python(add):
    session, feed = add, {"x": X, "y": Y}
    expected = X + Y
    run = treadle.InferenceSession.run
    names = [output.name for output in session.get_outputs()]
    for results in (
        run(session, None, feed),
        session.run(names, feed, None),
        session.run(output_names=None, input_feed=feed, run_options=treadle.RunOptions(), progress=None),
        session.run(None, **{"".join(["input", "_feed"]): feed}),  # a name that is not interned
    ):
        np.testing.assert_array_equal(results[0], expected)
    for arguments, keywords, message in (
        ((None,), {}, "missing 1 required positional argument: 'input_feed'"),
        ((None, feed), {"output_names": None}, "multiple values for argument 'output_names'"),
        ((None, feed), {"options": None}, "unexpected keyword argument 'options'"),
        ((None, feed, None, None), {}, "takes from 3 to 4 positional arguments but 5 were given"),
    ):
        with pytest.raises(TypeError, match=message):
            session.run(*arguments, **keywords)
    parameters = ["self", "output_names", "input_feed", "run_options", "progress"]
    assert [*inspect.signature(run).parameters] == parameters
    assert run.__name__ == "run" and "New arrays" in run.__doc__


def test_run_of_a_subclass_and_of_a_patched_class(monkeypatch):
    class Counting(treadle.InferenceSession):
        count = 0

        def run(self, *args, **kwargs):
            self.count += 1
            return super().run(*args, **kwargs)

    feed = {"x": X, "y": Y}
    session, plain = Counting(models.add()), treadle.InferenceSession(models.add())
    np.testing.assert_array_equal(session.run(None, feed), plain.run(None, feed))
    assert session.count == 1
    monkeypatch.setattr(treadle.InferenceSession, "run", lambda self, *args: "patched")
    assert plain.run(None, feed) == "patched"


LOOP = """<ir_version: 8, opset_import: ["" : 17]> g (int64 n, float[4] s) => (float[4] t) {
    yes = Constant<value = bool {1}> ()
    t = Loop(n, yes, s) <body = b (int64 i, bool go, float[4] x) => (bool on, float[4] y) {
        on = Identity(go)
        y = Sin(x) }> }"""


def test_short_runs_and_long_ones_of_many_threads_at_once(add):
    """Short runs keep the lock of Python, long ones give it up; a run may call Python, which runs another one."""
    loop = treadle.InferenceSession(onnx.parser.parse_model(LOOP).SerializeToString())
    feed, long = {"x": X, "y": Y}, {"n": np.array(2000), "s": np.float32([1, 2, 3, 4])}
    expected = loop.run(None, long)[0]

    def both(_):
        within = []
        for _ in range(20):
            np.testing.assert_array_equal(add.run(None, feed)[0], X + Y)
            result = loop.run(None, long, progress=lambda *_: within.append(add.run(None, feed)[0]))[0]
            np.testing.assert_array_equal(result, expected)
        assert len(within) >= 20 and all((z == X + Y).all() for z in within)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert [*pool.map(both, range(4))] == [None] * 4


def test_many_threads_share_a_session(add):
    wrong = []

    def work(seed):
        x = np.random.default_rng(seed).normal(size=(seed + 1, 3)).astype(np.float32)
        for _ in range(200):
            if not np.array_equal(add.run(None, {"x": x, "y": Y})[0], x + Y):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_run_async(add):
    done = threading.Event()
    seen = []

    def callback(results, user, error):
        seen.append((results, user, error))
        done.set()

    add.run_async(None, {"x": X, "y": Y}, callback, "mine")
    assert done.wait(10)
    np.testing.assert_array_equal(seen[0][0][0], X + Y)
    assert seen[0][1:] == ("mine", "")


def test_profiling(tmp_path):
    options = treadle.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "profile_")
    session = treadle.InferenceSession(models.add(), options)
    session.run(None, {"x": X, "y": Y})
    path = pathlib.Path(session.end_profiling())
    assert path.parent == tmp_path and "model_run" in path.read_text()
    assert treadle.InferenceSession(models.add()).end_profiling() == ""


def test_subclass_that_pickles(tmp_path):
    import pickle

    path = tmp_path / "model.onnx"
    path.write_bytes(models.add())
    session = PickledSession(str(path), providers=["CPUExecutionProvider"])
    copy = pickle.loads(pickle.dumps(session))
    np.testing.assert_array_equal(copy.run(None, {"x": X, "y": Y})[0], X + Y)


class PickledSession(treadle.InferenceSession):
    def __init__(self, path, **kwargs):
        super().__init__(path, **kwargs)
        self.path = path

    def __getstate__(self):
        return {"path": self.path, "providers": self._providers, "options": self._provider_options}

    def __setstate__(self, state):
        self.__init__(state["path"], providers=state["providers"])


def test_dumps_and_counters(add):
    add.run(None, {"x": X, "y": Y})
    assert "Add" in add.dump_graph()
    assert add.dump_plan({"x": X, "y": Y})
    assert add.counters()["runs"] > 0


def test_ops_and_versions():
    assert ("", "Loop") in {(op["domain"], op["name"]) for op in treadle.operators()}
    assert [int(part) for part in treadle.__version__.split(".")[:2]] >= [0, 1]
    treadle.set_default_logger_severity(3)
    treadle.disable_telemetry_events()
    assert treadle.get_device() == "CPU"


def test_a_session_works_after_fork(add):
    import os

    add.run(None, {"x": X, "y": Y})
    child = os.fork()
    if child == 0:
        try:
            right = np.array_equal(add.run(None, {"x": X, "y": Y})[0], X + Y)
            fresh = treadle.InferenceSession(models.division()).run(None, {"x": np.array([4])})[0]
            os._exit(0 if right and fresh[0] == 25 else 1)
        except BaseException:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_settings_that_do_not_exist_are_refused():
    options, run = treadle.SessionOptions(), treadle.RunOptions()
    options.intra_op_num_threads = 2
    options.log_severity_level = 3
    with pytest.raises(AttributeError, match=r"no attribute 'jit'.*add_session_config_entry\('treadle.jit'"):
        options.jit = "always"
    run.time_limit = 2.0
    run.terminate = False
    with pytest.raises(AttributeError, match="no attribute 'timeout'.*time_limit"):
        run.timeout = 2.0


def test_one_number_stands_for_a_scalar():
    """Voice detectors hand over their rate as [16000] where the model has a scalar; other engines take it."""
    session = treadle.InferenceSession(
        b'<ir_version: 8, opset_import: ["" : 17]> g (int64 n, float[3] x) => (float[3] y) {'
        b" f = Cast <to = 1> (n) y = Mul (x, f) }"
    )
    x = np.arange(3, dtype=np.float32)
    for shape in ((), (1,), (1, 1)):
        [y] = session.run(None, {"n": np.full(shape, 4), "x": x})
        np.testing.assert_array_equal(y, 4 * x)
    with pytest.raises(treadle.InvalidArgument, match="input 'n': expected tensor"):
        session.run(None, {"n": np.array([4, 5]), "x": x})


def test_initialisers_are_given_that_are_no_inputs():
    """Also where their file is not there; what the model does not have is said."""
    data = treadle.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) '
        '<float[2] w = ["location": "nowhere.bin"]> { y = Mul (x, w) }'
    )
    x = np.float32([2, 3])
    options = treadle.SessionOptions()
    given = np.float32([5, 7])
    options.add_initializer("w", given)
    session = treadle.InferenceSession(data, options)
    given[:] = 0  # the session has copied them
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], [10, 21])

    options = treadle.SessionOptions()
    options.add_external_initializers_from_files_in_memory(["nowhere.bin"], [np.float32([1, 2, 9]).tobytes()], [8])
    np.testing.assert_array_equal(treadle.InferenceSession(data, options).run(None, {"x": x})[0], [2, 6])

    options = treadle.SessionOptions()
    options.add_initializer("w", np.float32([1, 2, 3]))
    with pytest.raises(treadle.InvalidArgument, match="initializer 'w' is .* cannot be replaced by"):
        treadle.InferenceSession(data, options)
    options = treadle.SessionOptions()
    options.add_external_initializers(["w", "v"], [np.float32([1, 2]), np.float32([0])])
    with pytest.warns(UserWarning, match="no initializer 'v'"):
        treadle.InferenceSession(data, options)

"""Libraries of operators built here as they are made for onnxruntime (native/operators.cc by the C interface, and,
where onnxruntime's C++ header is found, native/operator_classes.cc): treadle gives the results of onnxruntime.
"""

import os
import pathlib
import shutil
import subprocess

import numpy as np
import pytest
import treadle
from test_native_clients import ROOT, compiler, header_of_onnxruntime

NATIVE = pathlib.Path(__file__).resolve().parent / "native"
HEAD = '<ir_version: 8, opset_import: ["" : 17, "own" : 1, "classes" : 1]>'
VERSIONS = [8, 13, 14, 16, 17, 18, 22]  # of OrtCustomOp
X = np.float32([1, -2, 0.5])

LOOP = """g (int64 n, float[3] x) => (float[3] y, float[iterations,3] all) {
  yes = Constant <value = bool {1}> ()
  y, all = Loop <body = b (int64 i, bool go, float[3] h) => (bool on, float[3] k, float[3] o) {
    on = Identity(go)
    k = OPERATOR(h)
    o = Neg(k)
  }> (n, yes, x)
}"""


def build(source: str, folder: pathlib.Path, *options: str) -> pathlib.Path:
    library = folder / "liboperators.so"
    command = [compiler("c++", "g++", "clang++-19"), "-std=c++20", "-shared", "-fPIC", "-Wall", f"-I{ROOT}", *options]
    done = subprocess.run([*command, NATIVE / source, "-o", library], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return library


@pytest.fixture(scope="module", params=["abi", "header"])
def library(request, tmp_path_factory) -> pathlib.Path:
    options = []
    if request.param == "header":
        options = ["-DWITH_HEADER_OF_ONNXRUNTIME", f"-I{header_of_onnxruntime()}"]
    return build("operators.cc", tmp_path_factory.mktemp("operators"), *options)


@pytest.fixture(scope="module")
def classes(tmp_path_factory) -> pathlib.Path:
    return build("operator_classes.cc", tmp_path_factory.mktemp("classes"), f"-I{header_of_onnxruntime()}")


def on(engine, library: pathlib.Path, text: str, **options: str):
    made = engine.SessionOptions()
    made.log_severity_level = 4
    made.register_custom_ops_library(str(library))
    for key, value in options.items():
        made.add_session_config_entry("treadle." + key, value)
    return engine.InferenceSession(treadle.parse_model(HEAD + text), made)


@pytest.fixture
def on_both(tmp_path):
    """treadle's results, which must equal onnxruntime's. A library knows the table with which it was registered last,
    so each engine has a copy of its own.
    """
    onnxruntime = pytest.importorskip("onnxruntime")

    def run(library: pathlib.Path, text: str, **feeds):
        copy = tmp_path / f"copy{os.urandom(4).hex()}.so"
        shutil.copy(library, copy)
        expected = on(onnxruntime, copy, text).run(None, feeds)
        found = on(treadle, library, text).run(None, feeds)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)
        return found

    return run


@pytest.mark.parametrize("version", VERSIONS)
def test_versions_and_arguments(library, on_both, version):
    for call in (f"own.Add{version}(x)", f"own.Add{version} <factor = 3.0> (x, x)"):
        on_both(library, f"g (float[N] x) => (float[N] y) {{ y = {call} }}", x=X)
    if version >= 14:
        [y] = on_both(library, f"g (float[N] x) => (float[N] y) {{ y = own.Add{version}(x, x, x, x) }}", x=X)
        np.testing.assert_array_equal(y, 8 * X)


@pytest.mark.parametrize("version", VERSIONS)
def test_in_a_loop(library, on_both, version):
    on_both(library, LOOP.replace("OPERATOR", f"own.Add{version}"), n=np.array(5), x=X)


@pytest.mark.parametrize("options", [{"jit": "off"}, {"jit": "always"}, {"tier": "reference"}], ids=str)
def test_in_a_loop_of_every_tier(library, options):
    session = on(treadle, library, LOOP.replace("OPERATOR", "own.Add22"), **options)
    for _ in range(3):
        y, rows = session.run(None, {"n": np.array(5), "x": X})
        np.testing.assert_array_equal(y, 32 * X)
        np.testing.assert_array_equal(rows, [-(2 ** (i + 1)) * X for i in range(5)])


def test_in_a_stream(library):
    text = """g (float[t] x, float[3] h) => (float[3] k, float[3] y) {
      s = ReduceSum(x)
      t = own.Add22(s)
      k = Add(h, t)
      y = Neg(k)
    }"""
    stream = on(treadle, library, text).stream(state={"h": "k"})
    total = np.zeros(3, np.float32)
    for chunk in ([1.0, 2], [3.0], [-9.0, 1, 1]):
        total = total + 2 * np.float32(sum(chunk))
        np.testing.assert_allclose(stream.push(x=np.float32(chunk)), -total)


def test_an_operator_of_any_type(library, on_both):
    for element, values in {"int64": np.arange(3), "double": np.array([0.5]), "uint8": np.uint8([[1], [2]])}.items():
        text = f"g ({element}[{','.join('NM'[: values.ndim])}] x) => ({element}[A,B] y) {{ y = own.Same(x) }}"
        on_both(library, text.replace("[A,B]", f"[{','.join('NM'[: values.ndim])}]"), x=values)


def test_sizes_are_inferred(library):
    session = on(treadle, library, "g (float[N,3] x) => (float[A,B] y) { y = own.Add22(x) }")
    assert session.get_outputs()[0].shape[1] == 3


def test_errors_say_where(library):
    with pytest.raises(Exception, match=r"own\.Add22.*a factor of 0 loses everything"):
        on(treadle, library, "g (float[N] x) => (float[N] y) { y = own.Add22 <factor = 0.0> (x) }")
    session = on(treadle, library, LOOP.replace("OPERATOR(h)", "own.Add22 <limit = 10.0> (h)"))
    with pytest.raises(Exception, match=r"(?s)Add22.*a number is beyond the limit") as failure:
        session.run(None, {"n": np.array(9), "x": X})
    assert "iteration 4" in str(failure.value)
    np.testing.assert_array_equal(session.run(None, {"n": np.array(2), "x": X})[0], 4 * X)


@pytest.mark.parametrize("options", [{"jit": "off"}, {"jit": "always"}, {"tier": "reference"}], ids=str)
@pytest.mark.parametrize("text", ["g (float[3] x, int64 n) => (float[3] y) { y = OPERATOR(x) }", LOOP])
def test_outputs_that_are_not_made_or_not_written(library, text, options):
    """An output that is not made is an error. An output that is not written is zeros, and never memory of another run."""
    feeds = {"x": X, "n": np.array(3)}
    forgets = on(treadle, library, text.replace("OPERATOR", "own.Forgets"), **options)
    leaves = on(treadle, library, text.replace("OPERATOR", "own.Leaves"), **options)
    for _ in range(2):
        with pytest.raises(
            Exception, match=r"operator own::Forgets has not set its output 0, expected tensor\(float\)"
        ):
            forgets.run(None, feeds)
        np.testing.assert_array_equal(leaves.run(None, feeds)[0], np.zeros(3))


def test_nodes_that_the_operator_does_not_take(library):
    for call in ("own.Add14()", "own.Add8(x, x, x)", "own.Add22(i)", "own.None(x)"):
        with pytest.raises(Exception, match=call[: call.index("(")].split(".")[1]):
            on(treadle, library, f"g (float[N] x, int64[N] i) => (float[N] y) {{ y = {call} }}")


def test_classes_of_the_header(classes, on_both):
    text = "g (float[N] x) => (float[N] y) { z = classes.Power <exponent = 3> (x)  y = classes.Halve(z) }"
    [y] = on_both(classes, text, x=X)
    np.testing.assert_array_equal(y, X**3 / 2)
    on_both(classes, LOOP.replace("OPERATOR", "classes.Halve"), n=np.array(4), x=X)


def test_errors_of_operator_classes_reach_the_caller(classes):
    with pytest.raises(Exception, match="the exponent is negative"):
        on(treadle, classes, "g (float[N] x) => (float[N] y) { y = classes.Power <exponent = -1> (x) }")
    with pytest.raises(Exception, match="exponent"):
        on(treadle, classes, "g (float[N] x) => (float[N] y) { y = classes.Power(x) }")
    session = on(treadle, classes, LOOP.replace("OPERATOR(h)", "classes.Power <exponent = 2> (h)"))
    with pytest.raises(Exception, match=r"(?s)Power.*a number is beyond a million"):
        session.run(None, {"n": np.array(9), "x": np.float32([30, 1, 1])})


def test_a_file_that_is_no_library_of_operators(tmp_path):
    options = treadle.SessionOptions()
    (tmp_path / "no.so").write_text("text")
    with pytest.raises(Exception, match="cannot be opened"):
        options.register_custom_ops_library(str(tmp_path / "no.so"))
    with pytest.raises(Exception, match="RegisterCustomOps"):
        options.register_custom_ops_library("libm.so.6")

"""The compiler without memory, and its library cut off: the loop runs as a program, and the process goes on."""

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

treadle = pytest.importorskip("treadle", reason="the Python package is not built")

LIBRARY = pathlib.Path(treadle.__file__).with_name("libtreadle_jit.so").resolve()
pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="the native tier is not built")

# `attempt(jit, prepare)`: a child runs the loop after prepare(); prints how it ended, and how the loop ran.
PRELUDE = '''
import collections, ctypes, os, resource
import numpy as np, treadle

LOOP = """<ir_version: 10, opset_import: ["" : 21]>
g (int64 n, float[4] x) => (y) {
  y = Loop (n, , x) <body = b (int64 i, bool c, float[4] s) => (bool d, float[4] o) {
    d = Identity (c)
    a = Sin (s)
    o = Add (a, x)
  }>
}"""
# A loop is compiled beside its run, which has to be long, or before it.
ITERATIONS = {"auto": 2_000_000, "always": 2_000, "required": 2_000}
FEEDS = {jit: {"n": np.array(n), "x": np.ones(4, np.float32)} for jit, n in ITERATIONS.items()}

def open_session(jit):
    options = treadle.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_session_config_entry("treadle.jit", jit)
    options.add_session_config_entry("treadle.jit_cache", "off")
    return treadle.InferenceSession(LOOP.encode(), options)

expected = {jit: open_session("off").run(None, feeds)[0] for jit, feeds in FEEDS.items()}

def run_in_child(jit, prepare):
    prepare()
    session = open_session(jit)
    right = np.array_equal(session.run(None, FEEDS[jit])[0], expected[jit])
    session.wait_compiled()
    right &= np.array_equal(session.run(None, FEEDS[jit])[0], expected[jit])
    resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
    treadle_fail(0, 0)
    why = "" if session.counters()["compilations"] else session.explain(FEEDS[jit], json=True)["loops"][0]["why_not_native"]
    return f"{'right' if right else 'wrong'} {why}"

treadle_fail = lambda first, last: None

def attempt(jit, prepare):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, run_in_child(jit, prepare).encode())
        except BaseException as e:
            os.write(write, repr(e).encode())
        os._exit(0)
    os.close(write)
    with open(read) as pipe:
        told = pipe.read()
    return f"exit {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}: {told}"
'''


def run(script, **env):
    """Kinds of ends, in the order in which they were met."""
    result = subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(script)],
        capture_output=True, text=True, timeout=600, env={**os.environ, **env},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return list(dict.fromkeys(result.stdout.splitlines()))


# A sanitizer takes terabytes of addresses for itself, and has to be preloaded where the library below would be.
needs_plain_build = pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="a sanitizer is preloaded")


@needs_plain_build
@pytest.mark.parametrize("jit", ("auto", "always"))
def test_address_space_that_runs_out(jit):
    ends = run(f"""
        for spare in range(28000, 72000, 1013):  # kB more than there is now
            size = int(open("/proc/self/statm").read().split()[0]) * 4096 + (spare << 10)
            print(attempt({jit!r}, lambda: resource.setrlimit(resource.RLIMIT_AS, (size, -1))))
    """)
    assert all(end.startswith("exit 0: right") for end in ends), ends
    assert len(ends) > 1, ends  # native code at some limits, and none at others


@needs_plain_build
def test_every_request_of_the_compiler_that_fails():
    preloaded = LIBRARY.with_name("libtreadle_failing_malloc.so")
    if not preloaded.exists():
        pytest.skip("the C++ tests are not built")
    ends = run(
        """
        failing = ctypes.CDLL(None)
        treadle_fail = failing.treadle_fail
        treadle_fail.argtypes = [ctypes.c_long] * 2
        read, write = os.pipe()
        if os.fork() == 0:
            treadle_fail(1 << 60, 1 << 60)
            open_session("always").run(None, FEEDS["always"])
            os.write(write, str(failing.treadle_requests()).encode())
            os._exit(0)
        count = int(os.read(read, 100))
        assert count > 1000, count
        for request in [*range(1, 200, 13), *range(200, count, count // 60)]:
            for last in request, 1 << 60:
                print(attempt("always", lambda: treadle_fail(request, last)))
        """,
        LD_PRELOAD=str(preloaded),
    )
    # The compiler tolerates some failed requests while it is loaded.
    assert set(ends) == {"exit 0: right ", "exit 0: right there is no memory to compile it", "exit 0: right no memory"}


@pytest.mark.parametrize("length", (0, 40, 5000, 100_000, 0.5, 0.999))
def test_a_library_that_is_cut_off(tmp_path, length):
    whole = LIBRARY.read_bytes()
    cut = whole[: length if isinstance(length, int) else int(len(whole) * length)]
    for name, contents in {"cut": cut, "never written to its end": cut.ljust(len(whole), b"\0")}.items():
        library = tmp_path / name
        library.write_bytes(contents)
        (end,) = run('print(attempt("always", lambda: None))', TREADLE_JIT_LIBRARY=str(library))
        assert end.startswith(f"exit 0: right {library} is "), end


def test_a_library_that_is_cut_off_is_told_of_where_it_was_asked_for(tmp_path):
    cut = tmp_path / "cut.so"
    cut.write_bytes(LIBRARY.read_bytes()[:100_000])
    env = {**os.environ, "TREADLE_JIT_LIBRARY": str(cut), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    for jit, told in {"auto": 0, "always": 1}.items():
        script = PRELUDE + f"open_session({jit!r}).run(None, FEEDS[{jit!r}])"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, env=env)
        assert done.returncode == 0, done.stderr
        assert done.stderr.count(f"jit = {jit} has no effect: {cut} is cut short") == told, done.stderr


def test_where_native_code_is_required_the_reason_is_an_error(tmp_path):
    cut = tmp_path / "cut.so"
    cut.write_bytes(LIBRARY.read_bytes()[:100_000])
    (end,) = run('print(attempt("required", lambda: None))', TREADLE_JIT_LIBRARY=str(cut))
    assert f"jit is required, but the loop is not native code: {cut} is cut short" in end, end
    assert "Loop" in end
    (end,) = run('print(attempt("required", lambda: None))')
    assert end == "exit 0: right "

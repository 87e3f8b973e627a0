"""Native code that is kept for later processes: found again, and never believed when something about it is wrong."""

import json
import os
import pathlib
import subprocess
import sys
import textwrap

import numpy as np
import pytest

treadle = pytest.importorskip("treadle", reason="the Python package is not built")

LOOP = """<ir_version: 10, opset_import: ["" : 22]>
g (int64 iterations, float[8] x) => (float[8] y) {
  yes = Constant <value = bool {1}> ()
  y = Loop <body = b (int64 i, bool go, float[8] s) => (bool continues, float[8] t) {
    continues = Identity(go)
    third = Constant <value = float {0.3}> ()
    u = Mul(s, third)
    t = Tanh(u)
  }> (iterations, yes, x)
}"""
FEEDS = {"iterations": np.int64(9), "x": np.linspace(-2, 2, 8, dtype=np.float32)}
NOWHERE = "/nowhere/libtreadle_jit.so"

# Prints loops compiled, loops from the cache, the reason against native code, the fault of the cache, and the result.
SCRIPT = f"""
import json, sys
import numpy as np, treadle
feeds = {{"iterations": np.int64(9), "x": np.linspace(-2, 2, 8, dtype=np.float32)}}
session = treadle.InferenceSession({LOOP!r}.encode())
y = session.run(None, feeds)[0]
counters = session.counters()
loop, = session.explain(feeds, json=True)["loops"]
print(json.dumps([counters["compilations"], counters["cache_loads"], loop["why_not_native"], loop["cache_problem"],
                  y.tobytes().hex()]))
"""


@pytest.fixture(scope="module")
def expected():
    options = treadle.SessionOptions()
    options.add_session_config_entry("treadle.jit", "off")
    return treadle.InferenceSession(LOOP.encode(), options).run(None, FEEDS)[0].tobytes().hex()


def start(script=SCRIPT, **env):
    env = {**os.environ, "TREADLE_JIT": "always", **env}
    env = {key: str(value) for key, value in env.items() if value is not None}
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env,
    )  # fmt: skip


def finish(process, expected):
    """Loops compiled, loops from the cache, the reason against native code, the fault of the cache."""
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    *facts, result = json.loads(out)
    assert result == expected
    return facts


def run(expected, script=SCRIPT, **env):
    return finish(start(script, **env), expected)


def files(folder):
    return sorted(folder.glob("*.native"))


def test_the_second_process_finds_the_code_of_the_first(tmp_path, expected):
    cache = tmp_path / "made" / "on" / "the" / "way"
    assert run(expected, TREADLE_JIT_CACHE=cache) == [1, 0, "", ""]
    assert len(files(cache)) == 1
    assert cache.stat().st_mode & 0o777 == 0o700
    assert run(expected, TREADLE_JIT_CACHE=cache) == [1, 1, "", ""]


def test_it_needs_no_compiler(tmp_path, expected):
    run(expected, TREADLE_JIT_CACHE=tmp_path / "c")
    facts = run(expected, TREADLE_JIT_CACHE=tmp_path / "c", TREADLE_JIT_LIBRARY=NOWHERE)
    assert facts == [1, 1, "", ""]
    compiled, _, why, _ = run(expected, TREADLE_JIT_CACHE=tmp_path / "empty", TREADLE_JIT_LIBRARY=NOWHERE)
    assert compiled == 0
    assert "is not installed" in why


def test_the_compiler_is_not_even_loaded(tmp_path, expected):
    script = SCRIPT + '\nassert "libtreadle_jit" not in open("/proc/self/maps").read()\n'
    run(expected, TREADLE_JIT_CACHE=tmp_path / "c")
    assert run(expected, script, TREADLE_JIT_CACHE=tmp_path / "c")[:2] == [1, 1]


def test_code_is_never_writable_and_executable(tmp_path, expected):
    script = (
        SCRIPT
        + """
rights = [line.split()[1] for line in open("/proc/self/maps")]
assert not [r for r in rights if "w" in r and "x" in r]
"""
    )
    run(expected, script, TREADLE_JIT_CACHE=tmp_path / "c")
    assert run(expected, script, TREADLE_JIT_CACHE=tmp_path / "c")[:2] == [1, 1]


def test_in_the_background_it_is_found_long_before_it_would_be_compiled(tmp_path, expected):
    run(expected, TREADLE_JIT_CACHE=tmp_path / "c")
    script = SCRIPT.replace(
        "\ny = ", "\nsession.run(None, {**feeds, 'iterations': np.int64(50000)})\nsession.wait_compiled()\ny = "
    )
    env = {"TREADLE_JIT_CACHE": tmp_path / "c", "TREADLE_JIT_LIBRARY": NOWHERE}
    assert run(expected, script, TREADLE_JIT="auto", **env)[:2] == [1, 1]


def test_the_option_and_off(tmp_path):
    options = treadle.SessionOptions()
    options.add_session_config_entry("treadle.jit", "always")
    options.add_session_config_entry("treadle.jit_cache", str(tmp_path / "c"))
    session = treadle.InferenceSession(LOOP.encode(), options)
    session.run(None, FEEDS)
    assert session.counters()["cache_loads"] == 0
    again = treadle.InferenceSession(LOOP.encode(), options)
    again.run(None, FEEDS)
    assert again.counters()["cache_loads"] == 1
    options.add_session_config_entry("treadle.jit_cache", "off")
    none = treadle.InferenceSession(LOOP.encode(), options)
    none.run(None, FEEDS)
    assert (none.counters()["compilations"], none.counters()["cache_loads"]) == (1, 0)


def test_the_users_folder_is_the_default(tmp_path, expected):
    home = tmp_path / "home"
    home.mkdir()
    run(expected, TREADLE_JIT_CACHE=None, XDG_CACHE_HOME=None, HOME=home)
    assert len(files(home / ".cache" / "treadle")) == 1
    run(expected, TREADLE_JIT_CACHE=None, XDG_CACHE_HOME=tmp_path / "xdg", HOME=home)
    assert len(files(tmp_path / "xdg" / "treadle")) == 1


def damage(path, how):
    content = path.read_bytes()
    if how == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "a byte":
        path.write_bytes(content[:200] + bytes([content[200] ^ 1]) + content[201:])
    elif how == "foreign":
        path.write_bytes(b"\x7fELF" + content[4:])
    elif how == "longer":
        path.write_bytes(content + b"\0")


@pytest.mark.parametrize("how", ("cut", "empty", "a byte", "foreign", "longer"))
def test_a_damaged_file_is_compiled_anew(tmp_path, expected, how):
    cache = tmp_path / "c"
    run(expected, TREADLE_JIT_CACHE=cache)
    (path,) = files(cache)
    whole = path.read_bytes()
    damage(path, how)
    compiled, loaded, _, problem = run(expected, TREADLE_JIT_CACHE=cache)
    assert (compiled, loaded) == (1, 0)
    assert path.name in problem
    assert len(path.read_bytes()) == len(whole)
    assert run(expected, TREADLE_JIT_CACHE=cache)[:2] == [1, 1]


def test_without_a_compiler_a_damaged_file_leaves_the_program(tmp_path, expected):
    cache = tmp_path / "c"
    run(expected, TREADLE_JIT_CACHE=cache)
    damage(files(cache)[0], "cut")
    compiled, _, why, problem = run(expected, TREADLE_JIT_CACHE=cache, TREADLE_JIT_LIBRARY=NOWHERE)
    assert compiled == 0
    assert "is not installed" in why
    assert "is cut short" in problem


def test_another_instruction_sets_code_is_not_taken(tmp_path, expected):
    cache = tmp_path / "c"
    for isa in ("baseline", "avx2"):
        run_isa = start(TREADLE_JIT_CACHE=cache, TREADLE_ISA=isa)
        assert run_isa.wait(timeout=300) == 0
        assert json.loads(run_isa.stdout.read())[1] == 0
    flags = pathlib.Path("/proc/cpuinfo").read_text() if pathlib.Path("/proc/cpuinfo").exists() else ""
    assert len(files(cache)) == (2 if "avx2" in flags else 1)


def test_a_folder_of_others_is_not_used(tmp_path, expected):
    cache = tmp_path / "c"
    cache.mkdir()
    cache.chmod(0o755)
    compiled, loaded, _, problem = run(expected, TREADLE_JIT_CACHE=cache)
    assert (compiled, loaded) == (1, 0)
    assert "is not the user's alone" in problem
    assert not files(cache)


def test_a_folder_that_cannot_be_made(tmp_path, expected):
    (tmp_path / "file").write_text("")
    compiled, loaded, _, problem = run(expected, TREADLE_JIT_CACHE=tmp_path / "file" / "c")
    assert (compiled, loaded) == (1, 0)
    assert "Not a directory" in problem


def test_a_full_disk(tmp_path, expected):
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
    compiled, loaded, _, problem = run(expected, limit + SCRIPT, TREADLE_JIT_CACHE=tmp_path / "c")
    assert (compiled, loaded) == (1, 0)
    assert "cannot be written" in problem
    assert not list((tmp_path / "c").iterdir())


def test_a_limit_that_no_code_fits(tmp_path, expected):
    facts = run(expected, TREADLE_JIT_CACHE=tmp_path / "c", TREADLE_JIT_CACHE_BYTES="64")
    assert facts[:2] == [1, 0]
    assert "more than the limit of 64" in facts[3]


def test_many_processes_at_once(tmp_path, expected):
    cache = tmp_path / "c"
    facts = [finish(p, expected) for p in [start(TREADLE_JIT_CACHE=cache) for _ in range(6)]]
    assert all(f[0] == 1 and f[3] == "" for f in facts)
    assert [path.suffix for path in cache.iterdir()] == [".native"]
    assert run(expected, TREADLE_JIT_CACHE=cache)[:2] == [1, 1]


def test_no_memory_to_compile(expected):
    """With any rest of the address space, the result is right, and if nothing was compiled, the reason is given."""
    limit = """
import resource, treadle
def size():
    return int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
room = {room} << 20
compile_ = treadle.InferenceSession.run
def limited(self, *arguments):
    self.dump_plan(arguments[1])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size() + room, before[1]))
    try:
        return compile_(self, *arguments)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
treadle.InferenceSession.run = limited
"""
    failures = 0
    for room in (1, 20, 60, 90, 100, 110, 130, 200):
        compiled, _, why, _ = run(expected, limit.format(room=room) + SCRIPT, TREADLE_JIT_CACHE="off")
        assert (compiled == 1) == (why == ""), why
        failures += compiled == 0
    assert failures > 0

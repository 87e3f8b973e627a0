"""Random operators give the same bits on every instruction set, in every tier and with every number of threads."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

treadle = pytest.importorskip("treadle", reason="the Python package is not built")

# 3 iterations of every operator, large enough for several threads, and of uneven sizes. Prints a digest of all results.
SCRIPT = """
import hashlib, sys
import numpy as np, onnx, treadle

N = 200_003
WIDTHS = {"float": 1, "double": 11, "float16": 10, "bfloat16": 16}
draws, outputs = [], []

def draw(text, type_, sizes):
    name = f"y{len(draws)}"
    draws.append(f"{name} = {text}")
    outputs.append((type_, name, sizes))

for type_, number in WIDTHS.items():
    for seed in ("", ", seed = 7.5"):
        draw(f"RandomUniform <dtype = {number}, low = -0.5, high = 3.0, shape = [{N}] {seed}> ()", type_, [N])
        draw(f"RandomNormal <dtype = {number}, mean = 0.5, scale = 2.0, shape = [7] {seed}> ()", type_, [7])
        draw(f"RandomNormalLike <dtype = {number} {seed}> (x)", type_, [N])
        draw(f"RandomUniformLike <dtype = {number} {seed}> (x)", type_, [N])
draw("Bernoulli (x)", "float", [N])
draw("Dropout (x, ratio, training)", "float", [N])
draw("Multinomial <sample_size = 1001> (few)", "int32", [2, 1001])

body = "\\n".join(draws)
made = ", ".join(f"{t}[{', '.join(map(str, s))}] {n}" for t, n, s in outputs)
kept = ", ".join(f"{t}[3, {', '.join(map(str, s))}] z{i}" for i, (t, n, s) in enumerate(outputs))
model = f\"\"\"<ir_version: 10, opset_import: ["" : 22]>
g (int64 iterations, float[{N}] x, float ratio, bool training, float[2, 5] few) => ({kept}) {{
  {", ".join(f"z{i}" for i in range(len(outputs)))} = Loop <body = b (int64 i, bool go) => (bool on, {made}) {{
    on = Identity(go)
    {body} }}> (iterations)
}}\"\"\"
options = treadle.SessionOptions()
options.intra_op_num_threads = int(sys.argv[1])
options.add_session_config_entry("treadle.jit", sys.argv[2])
options.add_session_config_entry("treadle.jit_cache", "off")
session = treadle.InferenceSession(onnx.parser.parse_model(model).SerializeToString(), options)
treadle.set_seed(3)
x = np.linspace(0, 1, N, dtype=np.float32)
feeds = {"iterations": np.int64(3), "x": x, "ratio": np.float32(0.25), "training": np.array(True)}
feeds["few"] = np.linspace(-1, 1, 10, dtype=np.float32).reshape(2, 5)
digests = [hashlib.sha256(np.asarray(a).tobytes()).hexdigest()[:16] for a in session.run(None, feeds)]
print(len(set(digests)), *digests)
"""
DRAWS = 35
CPU = pathlib.Path("/proc/cpuinfo").read_text() if pathlib.Path("/proc/cpuinfo").exists() else ""
FLAGS = {"baseline": "", "avx2": "avx2", "avx512": "avx512vl"}  # as Linux names them


def digests(isa: str, threads: int, jit: str) -> list[str]:
    env = {**os.environ, "TREADLE_ISA": isa, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    arguments = [sys.executable, "-c", SCRIPT, str(threads), jit]
    return subprocess.run(arguments, env=env, capture_output=True, text=True, check=True).stdout.split()


@pytest.fixture(scope="module")
def expected() -> list[str]:
    found = digests("baseline", 1, "off")
    assert found[0] == str(DRAWS), "two operators without a common seed made the same numbers"
    return found


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("jit", ["off", "always"])
def test_everything_gives_the_same_bits(expected, isa, threads, jit):
    if FLAGS[isa] not in CPU:
        pytest.skip(f"this machine does not run {isa}")
    assert digests(isa, threads, jit) == expected


def test_a_seeded_node_repeats_and_others_follow_the_seed_of_the_process():
    text = """<ir_version: 10, opset_import: ["" : 22]> g () => (float[9] a, float[9] b) {
      a = RandomNormal <shape = [9], seed = 1.0> ()
      b = RandomNormal <shape = [9]> () }"""
    session = treadle.InferenceSession(text.encode())
    runs = []
    for _ in range(2):
        treadle.set_seed(11)
        runs.append([session.run(None, {}) for _ in range(2)])
    (first, second), (again, then) = runs
    for a, _ in (second, again, then):
        np.testing.assert_array_equal(a, first[0])
    assert not np.array_equal(first[1], second[1])
    np.testing.assert_array_equal(first[1], again[1])
    np.testing.assert_array_equal(second[1], then[1])

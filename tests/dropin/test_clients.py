"""Published programs that call onnxruntime's C functions, unmodified, on treadle's libonnxruntime.so.

Each package is installed into a folder of its own below the temporary files of the test run; where that is not possible (no
network), its test is skipped and says so. A package that carries onnxruntime's library runs on that one first, and must give the
same on treadle's; a package that carries none is compared with treadle's Python package.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import treadle

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = pathlib.Path(os.environ.get("TREADLE_SHARED", ROOT.parent / "shared"))

LOOP = """<ir_version: 8, opset_import: ["" : 17]>
g (int64 n, float[N,3] x) => (float[N,3] y, float[trips,N] sums) {
  yes = Constant <value = bool {1}> ()
  y, sums = Loop <body = b (int64 i, bool go, float[N,3] s) => (bool on, float[N,3] t, float[N] sum) {
    on = Identity(go)
    u = Add(s, x)
    t = Tanh(u)
    axes = Constant <value_ints = [1]> ()
    sum = ReduceSum <keepdims = 0> (t, axes)
  }> (n, yes, x)
}"""


@pytest.fixture(scope="session")
def library() -> pathlib.Path:
    tool = ROOT / "build" / "bin" / "treadle"
    if not tool.exists():
        pytest.skip("needs the tool")
    path = subprocess.run([tool, "onnxruntime-lib"], check=True, capture_output=True, text=True).stdout.strip()
    return pathlib.Path(path).resolve()


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """Installs a package, with what it needs, into a folder that it returns."""
    folder = tmp_path_factory.mktemp("clients")

    def install(requirement: str) -> pathlib.Path:
        target = folder / requirement.partition("=")[0]
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-input", "--target", str(target), requirement]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900)
        if done.returncode != 0:
            pytest.skip(f"{requirement} cannot be installed: {done.stderr.strip().splitlines()[-1:]}")
        return target

    return install


def run(program: str, target: pathlib.Path, *arguments, **environment):
    code = f"import sys\nsys.path.insert(0, {str(target)!r})\n" + textwrap.dedent(program)
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def put_in_place(library: pathlib.Path, of: pathlib.Path):
    """The package then opens treadle's library; the file's own name stays, since that is what loaders look for."""
    of.unlink()
    shutil.copy(library, of)


@pytest.fixture
def loop_model(tmp_path) -> pathlib.Path:
    path = tmp_path / "loop.onnx"
    path.write_bytes(treadle.parse_model(LOOP))
    return path


def test_sherpa_onnx_finds_the_same_speech(installed, library):
    model = SHARED / "models" / "silero_vad"
    if not model.is_dir():
        pytest.skip("needs the voice detector among the shared models")
    target = installed("sherpa-onnx==2.0.1")
    program = """
        import json, numpy as np, sherpa_onnx
        config = sherpa_onnx.VadModelConfig()
        config.silero_vad.model = sys.argv[1]
        config.sample_rate = 16000
        detector = sherpa_onnx.VoiceActivityDetector(config, buffer_size_in_seconds=60)
        # Vowel-like harmonics that come and go.
        t = np.arange(16000 * 12) / 16000
        loud = (np.sin(2 * np.pi * 0.4 * t) > 0) * (0.6 + 0.4 * np.sin(2 * np.pi * 3 * t))
        phase = 2 * np.pi * np.cumsum(120 + 20 * np.sin(2 * np.pi * 0.7 * t)) / 16000
        voice = sum(np.sin(k * phase) / k * np.exp(-(((k * 120 - 700) / 900) ** 2)) for k in range(1, 30))
        signal = (0.3 * loud * voice + 0.003 * np.random.default_rng(0).standard_normal(t.size)).astype(np.float32)
        for begin in range(0, signal.size - 512, 512):
            detector.accept_waveform(signal[begin : begin + 512])
        detector.flush()
        found = []
        while not detector.empty():
            found.append([detector.front.start, len(detector.front.samples)])
            detector.pop()
        print(json.dumps(found))
    """
    file = next(iter(sorted(model.glob("*.onnx"))))
    expected = run(program, target, file)
    assert expected
    put_in_place(library, target / "sherpa_onnx" / "lib" / "libonnxruntime.so")
    assert run(program, target, file) == expected


def test_onnx_extended_runs_a_loop(installed, library, loop_model):
    target = installed("onnx-extended==0.5.0")
    program = """
        import json, numpy as np
        from onnx_extended.ortcy.wrap.ortinf import OrtSession
        session = OrtSession(sys.argv[1])
        results = session.run([np.array(5), np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)])
        print(json.dumps([r.tolist() for r in results]))
    """
    expected = run(program, target, loop_model)
    for file in [
        *target.glob("onnx_extended.libs/libonnxruntime-*"),
        *target.glob("onnx_extended/ortcy/wrap/libonnxruntime.so*"),
    ]:
        put_in_place(library, file)
    for found, wanted in zip(run(program, target, loop_model), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_ortpy_runs_a_loop(installed, library, loop_model):
    target = installed("ortpy==1.23b2")
    program = """
        import json, numpy as np, ortpy
        session = ortpy.Session(sys.argv[1], ortpy.SessionOptions())
        x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
        results = session.run({"n": np.array(5), "x": x})
        print(json.dumps([list(session.get_input_info()), ortpy.get_available_providers()]
                         + [results[name].numpy().tolist() for name in ("y", "sums")]))
    """
    names, providers, *found = run(program, target, loop_model, LD_LIBRARY_PATH=str(library.parent))
    assert sorted(names) == ["n", "x"]
    assert providers == ["CPUExecutionProvider"]
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    expected = treadle.InferenceSession(str(loop_model)).run(["y", "sums"], {"n": np.array(5), "x": x})
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b)

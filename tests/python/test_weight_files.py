"""Weights in files that change while a session is open: an error of the run, never other results or the process's end."""

import os
import pathlib
import subprocess
import sys
import textwrap

import numpy as np
import onnx
import pytest
from models import model, node, value
from onnx import TensorProto

treadle = pytest.importorskip("treadle", reason="the Python package is not built")

COUNT = 1 << 18  # elements: more than are read at once
LONG_AGO = (1_000_000_000, 1_000_000_000)
WEIGHTS = np.arange(COUNT, dtype=np.float32)
FEEDS = {"x": np.zeros(1, np.float32)}


@pytest.fixture(params=("external data", "the model's file"))
def files(tmp_path, request):
    """A model, and the file that its weights are in."""
    initializer = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[COUNT])
    if request.param == "external data":
        initializer.data_location = TensorProto.EXTERNAL
        initializer.external_data.add(key="location", value="w.bin")
        WEIGHTS.tofile(tmp_path / "w.bin")
    else:
        initializer.raw_data = WEIGHTS.tobytes()
    bytes_ = model(
        [node("Add", ["x", "w"], ["y"])],
        [value("x", shape=[1])],
        [value("y", shape=[COUNT])],
        initializers=[initializer],
    )
    # An aligned place for the weights, so that they stay in the file.
    for pad in range(4):
        proto = onnx.load_from_string(bytes_)
        proto.producer_name = "p" * (1 + pad)
        bytes_ = proto.SerializeToString()
        if bytes_.find(WEIGHTS[1:9].tobytes()) % 4 == 0:
            break
    path = tmp_path / "m.onnx"
    path.write_bytes(bytes_)
    weights = tmp_path / "w.bin" if request.param == "external data" else path
    os.utime(weights, LONG_AGO)
    return path, weights


def open_session(path, **entries):
    options = treadle.SessionOptions()
    for key, entry in entries.items():
        options.add_session_config_entry(f"treadle.{key}", entry)
    return treadle.InferenceSession(path, options)


def shorten(weights):
    os.truncate(weights, 100)


def write_over(weights):
    with open(weights, "r+b") as f:
        f.seek(-2000, os.SEEK_END)
        f.write(bytes(1000))


def lengthen(weights):
    with open(weights, "ab") as f:
        f.write(b"more")


def replace(weights):
    (weights.parent / "new").write_bytes(weights.read_bytes()[::-1])
    os.replace(weights.parent / "new", weights)


CHANGES = {
    shorten: "has become shorter|bytes when it was opened",
    write_over: "written to",
    lengthen: "when it was opened",
}


@pytest.mark.parametrize("tier", ("program", "reference"))
@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changes_is_an_error_of_the_run(files, change, tier):
    path, weights = files
    session = open_session(path, tier=tier)
    np.testing.assert_array_equal(session.run(None, FEEDS)[0], WEIGHTS)
    change(weights)
    for _ in range(2):
        with pytest.raises(treadle.InvalidProtobuf, match=CHANGES[change]) as error:
            session.run(None, FEEDS)
        assert weights.name in str(error.value)


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changes_before_the_first_run(files, change):
    path, weights = files
    session = open_session(path)
    change(weights)
    with pytest.raises(treadle.InvalidProtobuf, match=CHANGES[change]):
        session.run(None, FEEDS)


def test_a_file_that_is_replaced_is_another_file(files):
    path, weights = files
    session = open_session(path)
    replace(weights)
    np.testing.assert_array_equal(session.run(None, FEEDS)[0], WEIGHTS)


@pytest.mark.parametrize("change", CHANGES)
def test_weights_that_were_copied_stay_as_they_were(files, change):
    path, weights = files
    session = open_session(path, weight_files="copy")
    change(weights)
    np.testing.assert_array_equal(session.run(None, FEEDS)[0], WEIGHTS)
    assert str(weights) not in pathlib.Path("/proc/self/maps").read_text()


def test_weight_files_are_mapped_or_copied(files):
    with pytest.raises(treadle.InvalidArgument, match="weight_files is map or copy, not 'move'"):
        open_session(files[0], weight_files="move")


def test_a_push_that_cannot_read_its_weights_leaves_the_stream_as_it_was(tmp_path):
    initializer = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[COUNT], data_location=TensorProto.EXTERNAL)
    initializer.external_data.add(key="location", value="w.bin")
    WEIGHTS.tofile(tmp_path / "w.bin")
    os.utime(tmp_path / "w.bin", LONG_AGO)
    nodes = [node("Unsqueeze", ["x", "one"], ["column"]), node("Add", ["column", "w"], ["sums"])]
    nodes += [node("ReduceMax", ["sums", "one"], ["y"], keepdims=0)]
    one = onnx.numpy_helper.from_array(np.array([1]), "one")
    path = tmp_path / "m.onnx"
    path.write_bytes(
        model(nodes, [value("x", shape=["n"])], [value("y", shape=["n"])], initializers=[initializer, one])
    )
    stream = open_session(path).stream(time={"x": 0})
    block = np.arange(3, dtype=np.float32)
    for _ in range(4):
        stream.push(x=block)
    os.truncate(tmp_path / "w.bin", 100)
    with pytest.raises(treadle.InvalidProtobuf, match="w.bin"):
        stream.push(x=block)
    WEIGHTS.tofile(tmp_path / "w.bin")
    with pytest.raises(treadle.InvalidProtobuf, match="w.bin"):
        stream.push(x=block)


@pytest.mark.parametrize("order", ("before", "after"))
def test_beside_faulthandler(files, order):
    path, weights = files
    script = f"""
        import faulthandler, os
        import numpy as np, treadle
        if {order == "before"}: faulthandler.enable()
        session = treadle.InferenceSession({str(path)!r})
        if {order == "after"}: faulthandler.enable()
        os.truncate({str(weights)!r}, 100)
        try:
            session.run(None, {{"x": np.zeros(1, np.float32)}})
        except treadle.InvalidProtobuf as e:
            print(e)
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=300
    )
    if order == "before":
        assert "has become shorter" in result.stdout, result.stderr
    else:  # its handler comes first, and ends the process
        assert result.returncode == -7
        assert "Bus error" in result.stderr


def bytes_with_data_in_a_file(folder, location="w.bin"):
    """The bytes of a model that negates 400 numbers, which lie in a file of the folder."""
    w = np.arange(400, dtype=np.float32)
    (folder / "w.bin").write_bytes(w.tobytes())
    initializer = onnx.TensorProto(name="w", data_type=onnx.TensorProto.FLOAT, dims=[400])
    initializer.data_location = onnx.TensorProto.EXTERNAL
    initializer.external_data.add(key="location", value=location)
    nodes = [onnx.helper.make_node("Neg", ["w"], ["y"])]
    graph = onnx.helper.make_graph(nodes, "g", [], [onnx.helper.make_tensor_value_info("y", 1, [400])])
    graph.initializer.append(initializer)
    model = onnx.helper.make_model(graph, ir_version=8, opset_imports=[onnx.helper.make_opsetid("", 14)])
    return model.SerializeToString(), -w


ENTRY = "session.model_external_initializers_file_folder_path"


def test_data_of_a_model_in_bytes_lies_in_the_working_directory(tmp_path, monkeypatch):
    raw, expected = bytes_with_data_in_a_file(tmp_path)
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    with pytest.raises(treadle.NoSuchFile, match=rf"w\.bin.*{ENTRY}"):
        treadle.InferenceSession(raw)
    options = treadle.SessionOptions()
    options.add_session_config_entry(ENTRY, str(tmp_path))
    assert np.array_equal(treadle.InferenceSession(raw, options).run(None, {})[0], expected)
    monkeypatch.chdir(tmp_path)
    assert np.array_equal(treadle.InferenceSession(raw).run(None, {})[0], expected)


def test_data_of_a_model_in_bytes_lies_nowhere_else(tmp_path, monkeypatch):
    (tmp_path / "inside").mkdir()
    monkeypatch.chdir(tmp_path / "inside")
    (tmp_path / "inside" / "link.bin").symlink_to(tmp_path / "w.bin")
    for location in ("../w.bin", str(tmp_path / "w.bin"), "link.bin", "inside/../../w.bin"):
        raw, _ = bytes_with_data_in_a_file(tmp_path, location)
        with pytest.raises(Exception, match=r"model's folder"):
            treadle.InferenceSession(raw)

"""docs/howto/ray-serve.md: its programs, with replicas that die, come and are updated while callers talk to them."""

import json
import pathlib
import shutil
import socket
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from engines import RAY, ROOT, interpreter, run  # noqa: E402
from pages import is_as_shown, programs  # noqa: E402

PROGRAMS = programs("ray-serve.md")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The results of serve_job.py."""
    folder = tmp_path_factory.mktemp("serve")
    for name in ("silero_vad.onnx", "recording.wav"):
        shutil.copy(ROOT / "examples" / "vad" / name, folder)
    for name, (text, _) in PROGRAMS.items():
        (folder / name).write_text(text, encoding="utf-8")
    run(interpreter(RAY), pathlib.Path(__file__).with_name("serve_job.py"), folder, str(free_port()))
    return folder


@pytest.mark.parametrize("case", ["page", "steady", "refused", "sockets", "disturbed", "sockets_of_the_dead"])
def test_streams_behind_ray_serve(case, folder):
    found = json.loads((folder / "found.json").read_text())
    assert found[case] == "passed", found[case]


def test_the_page_shows_the_output_of_its_program(folder):
    printed = (folder / "printed.txt").read_text()
    assert is_as_shown(printed, PROGRAMS["detect.py"][1]), printed

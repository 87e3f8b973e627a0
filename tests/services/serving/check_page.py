"""The commands and clients of docs/howto/serving.md work as the page says."""

import json
import pathlib
import re
import shlex
import subprocess
import sys

import numpy as np
import pytest
from servers import Served, free_port

ROOT = pathlib.Path(__file__).parents[3]
BLOCKS = re.findall(r"^```text\n(.*?)^```$", (ROOT / "docs/howto/serving.md").read_text(), re.DOTALL | re.MULTILINE)


def block(begins):
    [found] = [text for text in BLOCKS if text.startswith(begins)]
    return found


class Commanded(Served):
    """A server by the page's own command."""

    def __init__(self, folder):
        self.folder, self.http, self.grpc = folder, free_port(), free_port()
        _, command = block("pip install").replace("\\\n", "").strip().splitlines()
        words = shlex.split(command)[1:] + ["--http_port", str(self.http), "--grpc_port", str(self.grpc)]
        self.log = folder / "log.txt"
        with self.log.open("wb") as out:
            vad = ROOT / "examples" / "vad"
            self.process = subprocess.Popen([sys.executable, *words], cwd=vad, stdout=out, stderr=out)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Commanded(tmp_path_factory.mktemp("page")) as served:
        yield served


def probabilities(printed):
    return [float(number) for number in re.findall(r"\d+\.\d+(?:e-\d+)?", printed)]


@pytest.mark.parametrize("begins", ["import tritonclient", "import numpy"])
def test_clients(server, capsys, begins):
    source = np.split(np.random.default_rng(1).standard_normal((1, 512 * 4)).astype(np.float32), 4, axis=1)
    text = block(begins).replace("127.0.0.1:8081", server.grpc_url).replace("127.0.0.1:8080", server.url)
    exec(compile(text, "serving.md", "exec"), {"source": source})  # noqa: S102 - our own page
    found = probabilities(capsys.readouterr().out)
    assert len(found) == 4 and all(0 < p < 1 for p in found)


def test_a_file_of_models():
    entries = json.loads(block("[{"))
    assert [entry["name"] for entry in entries] == ["vad", "level"]


def test_metrics_that_the_page_names(server):
    page = (ROOT / "docs/howto/serving.md").read_text()
    text = server.get("/metrics")[1].decode()
    names = set(re.findall(r"`(treadle_(?:streams|capacity|steps|refused|snapshots|batch|push)\w*)`", page))
    names |= {f"treadle_streams{rest}" for rest in re.findall(r"`\.\.\.(_\w+)`", page)}
    assert len(names) > 10
    assert [name for name in names if f"# TYPE {name} " not in text] == []

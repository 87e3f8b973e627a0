"""Files here import each other by their plain names; a server for the tests of a file."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from servers import MODELS, TOKEN, Served  # noqa: E402


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A server with the models of MODELS, room for 64 streams of each, and TOKEN for loading models."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "token").write_text(TOKEN + "\n")
    with Served(folder, capacity=64, repository_token_file=folder / "token") as server:
        yield server


@pytest.fixture(scope="module")
def alone():
    """The sessions of the same models, here."""
    import treadle

    return {name: treadle.InferenceSession(model["text"].encode()) for name, model in MODELS.items()}

"""Common parts of the tests of Triton. Files here import each other by their plain names."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import triton_models  # noqa: E402
from triton_server import BACKENDS, TritonServer, environment  # noqa: E402

WAYS = ("json", "binary", "grpc", "stream")


@pytest.fixture(scope="session")
def backend():
    """Skips where the backend is not built; makes the environment of tritonclient."""
    if not (BACKENDS / "treadle" / "libtriton_treadle.so").exists():
        pytest.skip("the backend is not built")
    environment()


@pytest.fixture(scope="module")
def server(tmp_path_factory, backend):
    """A server of all models of triton_models."""
    repository = triton_models.repository(tmp_path_factory.mktemp("triton") / "models")
    with TritonServer(repository) as running:
        yield running


@pytest.fixture(params=WAYS)
def caller(server, request):
    from triton_client import Caller

    with Caller(server, request.param) as calling:
        yield calling


@pytest.fixture
def binary(server):
    from triton_client import Caller

    with Caller(server, "binary") as calling:
        yield calling


@pytest.fixture(scope="module")
def loader(tmp_path_factory, backend):
    """A client of a server that loads models when it is told to."""
    from triton_client import Caller

    repository = tmp_path_factory.mktemp("loader") / "models"
    repository.mkdir()
    with TritonServer(repository, "--model-control-mode=explicit") as server, Caller(server, "binary") as calling:
        calling.server = server
        yield calling

"""Triton's own server, from the wheel of nvidia-pytriton, with treadle's backend."""

import contextlib
import fcntl
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools" / "devtool"))

from environment import make_venv  # noqa: E402

VENV = ROOT / "build" / "venv-triton"
BACKENDS = ROOT / "build" / "lib" / "backends"


def site_packages() -> pathlib.Path:
    [folder] = (VENV / "lib").glob("python3*/site-packages")
    return folder


def environment() -> pathlib.Path:
    """Makes the environment that has the server and tritonclient, which can be imported from then on."""
    VENV.parent.mkdir(parents=True, exist_ok=True)
    with VENV.with_suffix(".lock").open("w") as lock:  # tests run in several processes
        fcntl.flock(lock, fcntl.LOCK_EX)
        make_venv(VENV, ROOT / "tools" / "requirements-triton.txt")
    if str(site_packages()) not in sys.path:
        sys.path.append(str(site_packages()))  # at the end: numpy, onnx and treadle stay those of the tests
    return VENV


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


class TritonServer:
    """A running server; ended when its block is left."""

    def __init__(
        self, repository: pathlib.Path, *options: str, ready: bool = True, prefix: tuple[str, ...] = ()
    ) -> None:
        """`ready`: wait until all models are loaded; otherwise until the server takes requests. `prefix`: a command
        that runs the server."""
        self.repository = repository
        self.log = repository.with_name(repository.name + ".log")
        self.options = options
        self.prefix = prefix
        self.ports = free_ports(3)
        self.http, self.grpc, self.metrics = (f"127.0.0.1:{port}" for port in self.ports)
        self.start(ready)

    def start(self, ready: bool = True) -> None:
        binary = site_packages() / "pytriton" / "tritonserver" / "bin" / "tritonserver"
        http, grpc, metrics = map(str, self.ports)
        command = [
            *self.prefix, str(binary), f"--model-repository={self.repository}", f"--backend-directory={BACKENDS}",
            "--http-address=127.0.0.1", f"--http-port={http}", "--grpc-address=127.0.0.1", f"--grpc-port={grpc}",
            "--metrics-address=127.0.0.1", f"--metrics-port={metrics}", "--exit-timeout-secs=5", *self.options,
        ]  # fmt: skip
        libraries = {"LD_LIBRARY_PATH": str(site_packages() / "nvidia_pytriton.libs")}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **libraries})
        self.wait_for("ready" if ready else "live")

    def wait_for(self, what: str) -> None:
        deadline = time.monotonic() + 60
        while True:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the server is not {what}:\n{self.text()}")
            with (
                contextlib.suppress(urllib.error.URLError, ConnectionError),
                urllib.request.urlopen(f"http://{self.http}/v2/health/{what}", timeout=5) as answer,
            ):
                if answer.status == 200:
                    return
            time.sleep(0.05)

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def metric(self, name: str, **labels: str) -> float:
        """The sum of what the metrics page says under a name, of lines with these labels."""
        with urllib.request.urlopen(f"http://{self.metrics}/metrics", timeout=5) as answer:
            lines = answer.read().decode().splitlines()
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        found = [line for line in lines if line.startswith(name + "{") and all(label in line for label in wanted)]
        return sum(float(line.rsplit(" ", 1)[1]) for line in found)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self.kill()

    def __enter__(self) -> "TritonServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

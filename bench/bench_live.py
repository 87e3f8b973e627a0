"""How many callers with live audio a core serves in time: build/venv/bin/python bench/bench_live.py

The voice detector, behind the server of treadle.serving.kserve, on one core. Each caller sends a tenth of a second of audio
every tenth of a second, whether answered or not, at a moment of its own; the load has another core. `wait` is from the
moment that a block was there to its answer; `core` is the share of its core that the server was busy.
"""

from __future__ import annotations

import argparse
import itertools

from bench_serving import HERE, Server, environment

SILERO = HERE.parent / "examples" / "vad" / "silero_vad.onnx"
SAMPLES = 1600
ROLES = ["--time", "input=1", "--hop", 512, "--context", 64, "--state", "state=stateN", "--bind", "sr=16000"]


def command(http: int, grpc: int) -> list[object]:
    ports = [
        "--http_port",
        http,
        "--grpc_port",
        grpc,
        "--max_message_bytes",
        1 << 24,
        "--drain_s",
        0,
        "--log_level",
        "ERROR",
    ]
    return ["-m", "treadle.serving.kserve", SILERO, "--model_name", "vad", *ROLES, *ports]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement")
    parser.add_argument(
        "--websocket", type=int, nargs="*", default=[250, 500, 750], help="callers with a WebSocket each"
    )
    parser.add_argument("--gateway", type=int, nargs="*", default=[1000, 2000, 2500], help="callers behind one gateway")
    options = parser.parse_args()
    env = environment()
    server = Server(command, env)
    loads = itertools.chain(
        zip(itertools.repeat("websocket"), options.websocket), zip(itertools.repeat("gateway"), options.gateway)
    )
    try:
        print(f"{'callers':18}{'steps/s':>9}{'core':>7}{'wait ms: p50':>14}{'p99':>8}{'most':>8}")
        for kind, streams in loads:
            port = server.grpc if kind == "gateway" else server.http
            arguments = kind, port, "vad", SAMPLES, streams, options.seconds
            (count, took, *waits), cpu = server.measure("serving_live.py", *arguments, env=env)
            shown = "".join(f"{wait:{width}.1f}" for wait, width in zip(waits, (14, 8, 8), strict=True))
            print(f"{streams:6} {kind:11}{count / took:9,.0f}{cpu / took:7.0%}{shown}", flush=True)
    finally:
        server.process.kill()


if __name__ == "__main__":
    main()

"""A server under mixed load for long, and what memory it takes: build/venv/bin/python bench/bench_soak.py --minutes 60

The voice detector behind the server of treadle.serving.kserve. Callers come, send blocks of any size by WebSockets and
requests, take snapshots and go on from them, send what is wrong, and leave with or without a word. Every answer is checked
against a stream of the caller. A line a minute: steps, resident memory of the server, streams that live.
"""

from __future__ import annotations

import argparse
import subprocess

from bench_live import SILERO, command
from bench_serving import HERE, VENV, Server, environment


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--pause", type=float, default=0.05, help="seconds of a caller between steps")
    options = parser.parse_args()
    env = environment()
    server = Server(lambda *ports: [*command(*ports), "--idle_s", 20], env)
    try:
        arguments = [server.http, server.process.pid, SILERO, options.minutes, options.pause]
        callers = [VENV / "bin/python", HERE / "serving_soak.py", *arguments]
        raise SystemExit(subprocess.call(list(map(str, callers)), env=env))
    finally:
        server.process.kill()


if __name__ == "__main__":
    main()

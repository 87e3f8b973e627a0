"""serving_live.py KIND PORT MODEL SAMPLES STREAMS SECONDS: callers who send a block when they have one, not when they get an answer.

Each caller has a block of SAMPLES at 16 kHz due at a time of its own, again and again. websocket: a connection for each
caller. gateway: what fell due within 10 ms goes in one gRPC request. A latency runs from the time that a block was due to
its answer, so it holds what the caller, the gateway and the server waited. A line on the standard input starts the
clock; prints the steps, the seconds, and the milliseconds that half, 99 of 100 and all blocks took at most.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time

import numpy as np
from serving_load import frame, read, ready, websocket

RATE, TICK_S = 16_000, 0.01


class Clock:
    """When blocks are due: caller k at `begun + phase[k]` and every `block_s` from there."""

    def __init__(self, streams: int, block_s: float) -> None:
        self.phase = np.sort(np.random.default_rng(1).uniform(0, block_s, streams))
        self.block_s, self.begun = block_s, time.perf_counter()


async def websockets(port: int, model: str, samples: int, streams: int, seconds: float) -> None:
    block = frame(2, np.random.default_rng(1).standard_normal(samples).astype(np.float32).tobytes())
    connections = [await websocket(port, model) for _ in range(streams)]
    latencies: list[float] = []

    async def go(k: int, until: float) -> None:
        reader, writer = connections[k]
        due = clock.begun + clock.phase[k]
        while due < until:
            await asyncio.sleep(due - time.perf_counter())
            writer.write(block)
            await read(reader)
            latencies.append(time.perf_counter() - due)
            due += clock.block_s

    for counted in (1.0, seconds):
        if counted == seconds:
            await asyncio.to_thread(ready)
        latencies.clear()
        clock = Clock(streams, samples / RATE)
        await asyncio.gather(*(go(k, clock.begun + counted) for k in range(streams)))
    report(latencies, seconds)


def gateway(port: int, model: str, samples: int, streams: int, seconds: float) -> None:
    import tritonclient.grpc as client
    from tritonclient.grpc import service_pb2 as pb
    from tritonclient.grpc import service_pb2_grpc

    sizes = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
    connected = client.InferenceServerClient(f"127.0.0.1:{port}", channel_args=sizes)
    infer = service_pb2_grpc.GRPCInferenceServiceStub(connected._channel).ModelInfer
    x = np.random.default_rng(1).standard_normal((streams, samples)).astype(np.float32)
    latencies: list[np.ndarray] = []
    lock = threading.Lock()

    def request(first: int, end: int, start: bool):
        made = pb.ModelInferRequest(model_name=model)
        for name in ("output", "treadle_lengths"):
            made.outputs.add(name=name)
        tensors = [("input", "FP32", x[first:end]), ("sequence_id", "INT64", np.arange(first + 1, end + 1))]
        if start:
            tensors.append(("sequence_start", "BOOL", np.ones(end - first, bool)))
        for name, kind, array in tensors:
            made.inputs.add(name=name, datatype=kind, shape=array.shape)
            made.raw_input_contents.append(array.tobytes())
        return made

    for first in range(0, streams, 64):
        infer(request(first, min(first + 64, streams), True))

    def send(due: np.ndarray, made):
        done = threading.Event()

        def answered(call) -> None:
            with lock:
                latencies.append(time.perf_counter() - due)
            done.set()

        call = infer.future(made)
        call.add_done_callback(answered)
        return done, call

    for counted in (1.0, seconds):
        if counted == seconds:
            ready()
        latencies.clear()
        clock, calls, first, turn = Clock(streams, samples / RATE), [], 0, 0
        while (now := time.perf_counter()) < clock.begun + counted:
            end = int(np.searchsorted(clock.phase, now - clock.begun - turn * clock.block_s, "right"))
            if end > first:
                due = clock.begun + turn * clock.block_s + clock.phase[first:end]
                calls.append(send(due, request(first, end, False)))
            first = end
            if end == streams:
                first, turn = 0, turn + 1
            time.sleep(TICK_S)
        for done, call in calls:
            call.result()
            done.wait()
    report(np.concatenate(latencies), seconds)


def report(latencies, seconds: float) -> None:
    p50, p99, most = np.percentile(latencies, [50, 99, 100]) * 1e3
    print(len(latencies), seconds, p50, p99, most, flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    kind, port, model, samples, streams, seconds = sys.argv[1:]
    arguments = int(port), model, int(samples), int(streams), float(seconds)
    if kind == "websocket":
        asyncio.run(websockets(*arguments))
    else:
        gateway(*arguments)

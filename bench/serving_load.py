"""serving_load.py KIND PORT STREAMS SECONDS: steps of a server, as many as it takes; prints how many were answered.

websocket: a connection for each stream, each with a frame on its way all the time. grpc: one request for all streams, two
of them on their way. Connections are made and warm when READY is printed; a line on the standard input starts the load.
"""

from __future__ import annotations

import asyncio
import base64
import os
import struct
import sys
import time

import numpy as np

FEATURES = 40
OPENING = b"{}"


def frame(kind: int, payload: bytes) -> bytes:
    """A frame of a client: masked, by zeros."""
    size = struct.pack("!BB", 0x80 | kind, 0x80 | len(payload)) if len(payload) < 126 else b""
    return (size or struct.pack("!BBH", 0x80 | kind, 0x80 | 126, len(payload))) + bytes(4) + payload


async def read(reader: asyncio.StreamReader) -> bytes:
    """The payload of the next frame that is neither ping nor pong."""
    while True:
        kind, size = await reader.readexactly(2)
        if size == 126:
            [size] = struct.unpack("!H", await reader.readexactly(2))
        payload = await reader.readexactly(size)
        if kind & 15 < 8:
            return payload


async def websocket(port: int, model: str = "lstm") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    key = base64.b64encode(os.urandom(16)).decode()
    head = "Host: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    writer.write(f"GET /v2/models/{model}/stream HTTP/1.1\r\n{head}Sec-WebSocket-Key: {key}\r\n\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    writer.write(frame(1, OPENING))
    await read(reader)
    return reader, writer


async def load_websocket(port: int, streams: int, seconds: float) -> None:
    step = frame(2, np.random.default_rng(1).standard_normal(FEATURES).astype(np.float32).tobytes())
    count, latencies = 0, []
    connections = [await websocket(port) for _ in range(streams)]

    async def go(reader, writer, until):
        nonlocal count
        while (begun := time.perf_counter()) < until:
            writer.write(step)
            assert len(await read(reader)) == 4
            latencies.append(time.perf_counter() - begun)
            count += 1

    async def all_until(until):
        await asyncio.gather(*(go(*connection, until) for connection in connections))

    await all_until(time.perf_counter() + 0.5)
    await asyncio.to_thread(ready)
    count, begun = 0, time.perf_counter()
    latencies.clear()
    await all_until(begun + seconds)
    report(count, time.perf_counter() - begun, latencies)


def load_grpc(port: int, streams: int, seconds: float) -> None:
    from concurrent.futures import ThreadPoolExecutor

    import tritonclient.grpc as client
    from tritonclient.grpc import service_pb2_grpc

    connected = client.InferenceServerClient(f"127.0.0.1:{port}")
    infer = service_pb2_grpc.GRPCInferenceServiceStub(connected._channel).ModelInfer
    makers = [grpc_request(range(k * streams + 1, (k + 1) * streams + 1)) for k in range(2)]
    for make in makers:
        infer(make(True))

    def go(make, until):
        request, latencies = make(False), []
        while (begun := time.perf_counter()) < until:
            infer(request)
            latencies.append(time.perf_counter() - begun)
        return latencies

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda make: go(make, time.perf_counter() + 0.5), makers))
        ready()
        begun = time.perf_counter()
        latencies = sum(threads.map(lambda make: go(make, begun + seconds), makers), [])
    report(len(latencies) * streams, time.perf_counter() - begun, latencies)


def grpc_request(ids):
    """Makes requests with a row for each id."""
    from tritonclient.grpc import service_pb2 as pb

    x = np.random.default_rng(1).standard_normal((len(ids), FEATURES)).astype(np.float32)

    def make(start):
        request = pb.ModelInferRequest(model_name="lstm")
        tensors = [("x", "FP32", x), ("sequence_id", "INT64", np.array(ids, np.int64))]
        if start:
            tensors.append(("sequence_start", "BOOL", np.ones(len(ids), bool)))
        for name, kind, array in tensors:
            request.inputs.add(name=name, datatype=kind, shape=array.shape)
            request.raw_input_contents.append(array.tobytes())
        return request

    return make


def ready() -> None:
    print("READY", flush=True)
    sys.stdin.readline()


def report(count: int, seconds: float, latencies: list[float]) -> None:
    p50, p99 = np.percentile(latencies, [50, 99]) * 1e3
    print(count, seconds, p50, p99, flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    kind, port, streams, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    if kind == "grpc":
        load_grpc(port, streams, seconds)
    else:
        asyncio.run(load_websocket(port, streams, seconds))

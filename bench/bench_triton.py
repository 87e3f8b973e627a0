"""What Triton's front ends and treadle's backend cost per request: the server's processor time, and how many requests a second
one core answers.

    build/venv/bin/python bench/bench_triton.py [--seconds 3] [--streams 1,32,256] [--ways binary,grpc,stream] [--core 1]

The model is an LSTM step (40 features, 64 states). The server keeps to one core (taskset) and the callers to the others;
each stream waits for its answer before it sends the next request. The requests' bytes are made beforehand, so callers cost
little. `us`: processor time of all the server's threads per request; `of a core`: what a core answers at that price; `wall`:
what was answered. Before anything is timed, the first answers of a stream are compared with those of treadle alone.
"""

import argparse
import json
import os
import pathlib
import queue
import selectors
import socket
import statistics
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import helper

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "services"))

import treadle  # noqa: E402
from triton_server import TritonServer, environment  # noqa: E402

FEATURES, STATES = 40, 64
CONFIG = """name: "lstm"
backend: "treadle"
max_batch_size: 64
input [ { name: "x" data_type: TYPE_FP32 dims: [ 40 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]
sequence_batching { max_sequence_idle_microseconds: 60000000 oldest { max_candidate_sequences: 4096 } }
instance_group [ { count: 1 kind: KIND_CPU } ]
"""


def model() -> bytes:
    """x [B, 40], h [B, 64], c [B, 64] -> y [B, 1], hn, cn."""
    rng = np.random.default_rng(1)

    def weights(name, *shape):
        return onnx.numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32) * 0.1, name)

    def values(*shapes):
        return [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["B", size]) for name, size in shapes]

    initial = [
        weights("W", 1, 4 * STATES, FEATURES), weights("R", 1, 4 * STATES, STATES), weights("V", STATES, 1),
        onnx.numpy_helper.from_array(np.array([0], np.int64), "first"),
    ]  # fmt: skip
    nodes = [helper.make_node("Unsqueeze", [name, "first"], [f"{name}1"]) for name in "xhc"]
    nodes += [
        helper.make_node("LSTM", ["x1", "W", "R", "", "", "h1", "c1"], ["", "Yh", "Yc"], hidden_size=STATES),
        helper.make_node("Squeeze", ["Yh", "first"], ["hn"]),
        helper.make_node("Squeeze", ["Yc", "first"], ["cn"]),
        helper.make_node("MatMul", ["hn", "V"], ["sum"]),
        helper.make_node("Sigmoid", ["sum"], ["y"]),
    ]
    inputs, outputs = (
        values(("x", FEATURES), ("h", STATES), ("c", STATES)),
        values(("y", 1), ("hn", STATES), ("cn", STATES)),
    )
    graph = helper.make_graph(nodes, "lstm", inputs, outputs, initial)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return made.SerializeToString()


CHUNK = np.random.default_rng(2).standard_normal((1, FEATURES)).astype(np.float32)


def http_request(stream: int, start: bool) -> bytes:
    header = json.dumps({
        "parameters": {"sequence_id": stream, "sequence_start": start},
        "inputs": [{"name": "x", "shape": [1, FEATURES], "datatype": "FP32", "parameters": {"binary_data_size": CHUNK.nbytes}}],
        "outputs": [{"name": "y", "parameters": {"binary_data": True}}],
    }).encode()  # fmt: skip
    length = len(header) + CHUNK.nbytes
    lines = ["POST /v2/models/lstm/infer HTTP/1.1", "Host: x", f"Inference-Header-Content-Length: {len(header)}",
             f"Content-Length: {length}", "", ""]  # fmt: skip
    return "\r\n".join(lines).encode() + header + CHUNK.tobytes()


class Http:
    """A connection for each stream."""

    def __init__(self, server: TritonServer, streams: int) -> None:
        host, port = server.http.split(":")
        self.selector = selectors.EpollSelector()
        self.connections = []
        for stream in range(1, streams + 1):
            connection = socket.create_connection((host, int(port)))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            request = http_request(stream, False)
            self.connections.append((connection, request, http_request(stream, True)))
            self.selector.register(connection, selectors.EVENT_READ, request)

    def answer(self, connection: socket.socket) -> bytes:
        """The body of what comes, whole."""
        data = connection.recv(65536)
        head, _, body = data.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(data.decode(errors="replace"))
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        while len(body) < length:
            body += connection.recv(65536)
        return body

    def first_answers(self, count: int) -> list[float]:
        connection, request, start = self.connections[0]
        found = []
        for step in range(count):
            connection.sendall(request if step else start)
            found.append(float(np.frombuffer(self.answer(connection)[-4:], np.float32)[0]))
        return found

    def run(self, seconds: float) -> list[float]:
        """Seconds that each answer took."""
        sent = {}
        for connection, _, start in self.connections:
            connection.sendall(start)
            sent[connection] = time.perf_counter()
        took, end = [], time.perf_counter() + seconds
        while sent:
            for key, _ in self.selector.select():
                self.answer(key.fileobj)
                now = time.perf_counter()
                took.append(now - sent[key.fileobj])
                if now < end:
                    key.fileobj.sendall(key.data)
                    sent[key.fileobj] = now
                else:
                    del sent[key.fileobj]
        return took

    def close(self) -> None:
        for connection, _, _ in self.connections:
            connection.close()


class Grpc:
    """Calls, or one stream of requests, over one channel."""

    def __init__(self, server: TritonServer, streams: int, as_stream: bool) -> None:
        import grpc
        from tritonclient.grpc import service_pb2

        self.messages, self.as_stream = service_pb2, as_stream
        self.channel = grpc.insecure_channel(server.grpc)
        service = "/inference.GRPCInferenceService/"
        self.call = self.channel.unary_unary(service + "ModelInfer")
        self.stream = self.channel.stream_stream(service + "ModelStreamInfer")
        self.requests = [(self.request(n, True), self.request(n, False)) for n in range(1, streams + 1)]

    def request(self, stream: int, start: bool) -> bytes:
        made = self.messages.ModelInferRequest(model_name="lstm", id=str(stream))
        made.parameters["sequence_id"].int64_param = stream
        made.parameters["sequence_start"].bool_param = start
        made.inputs.add(name="x", datatype="FP32", shape=[1, FEATURES])
        made.outputs.add(name="y")
        made.raw_input_contents.append(CHUNK.tobytes())
        return made.SerializeToString()

    def first_answers(self, count: int) -> list[float]:
        start, request = self.requests[0]
        answers = [self.call(request if step else start) for step in range(count)]
        read = [self.messages.ModelInferResponse.FromString(answer).raw_output_contents[0] for answer in answers]
        return [float(np.frombuffer(raw, np.float32)[0]) for raw in read]

    def run(self, seconds: float) -> list[float]:
        return (self.run_stream if self.as_stream else self.run_calls)(seconds)

    def run_calls(self, seconds: float) -> list[float]:
        done: queue.SimpleQueue = queue.SimpleQueue()
        sent = {}

        def send(stream, which):
            sent[stream] = time.perf_counter()
            self.call.future(self.requests[stream][which]).add_done_callback(lambda answer: done.put((stream, answer)))

        for stream in range(len(self.requests)):
            send(stream, 0)
        took, end = [], time.perf_counter() + seconds
        while sent:
            stream, answer = done.get()
            answer.result()
            now = time.perf_counter()
            took.append(now - sent.pop(stream))
            if now < end:
                send(stream, 1)
        return took

    def run_stream(self, seconds: float) -> list[float]:
        to_send: queue.SimpleQueue = queue.SimpleQueue()
        sent = {}
        for stream, (start, _) in enumerate(self.requests):
            sent[stream] = time.perf_counter()
            to_send.put(start)
        took, end = [], time.perf_counter() + seconds
        for answer in self.stream(iter(to_send.get, None)):
            read = self.messages.ModelStreamInferResponse.FromString(answer)
            if read.error_message:
                raise RuntimeError(read.error_message)
            stream, now = int(read.infer_response.id) - 1, time.perf_counter()
            took.append(now - sent.pop(stream))
            if now < end:
                sent[stream] = now
                to_send.put(self.requests[stream][1])
            elif not sent:
                to_send.put(None)
        return took

    def close(self) -> None:
        self.channel.close()


WAYS = {
    "binary": ("HTTP binary", Http),
    "grpc": ("gRPC", lambda server, streams: Grpc(server, streams, as_stream=False)),
    "stream": ("gRPC stream", lambda server, streams: Grpc(server, streams, as_stream=True)),
}


def processor_seconds(process: int) -> float:
    """Of all threads."""
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def check(caller, session: treadle.InferenceSession) -> None:
    stream = session.stream()
    expected = [float(stream.push(x=CHUNK)[0, 0]) for _ in range(5)]
    np.testing.assert_allclose(caller.first_answers(5), expected, rtol=1e-5)


def measure(server: TritonServer, make, streams: int, seconds: float) -> str:
    caller = make(server, streams)
    try:
        caller.run(0.5)  # warm
        before, batches = processor_seconds(server.process.pid), [server.metric("nv_inference_exec_count")]
        started = time.perf_counter()
        took = caller.run(seconds)
        wall = time.perf_counter() - started
        spent = processor_seconds(server.process.pid) - before
    finally:
        caller.close()
    batches.append(server.metric("nv_inference_exec_count"))
    microseconds = spent / len(took) * 1e6
    cuts = statistics.quantiles(took, n=100)
    mean_batch = len(took) / max(1, batches[1] - batches[0])
    return (f"{streams:7} {microseconds:6.1f} {1e6 / microseconds:9,.0f} {len(took) / wall:8,.0f} {cuts[49] * 1e6:9,.0f}"
            f" {cuts[98] * 1e6:9,.0f} {mean_batch:6.1f}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--streams", default="1,32,64,128,256")
    parser.add_argument("--ways", default="binary,grpc,stream")
    parser.add_argument("--core", type=int, default=os.cpu_count() - 1)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    environment()
    others = os.sched_getaffinity(0) - {options.core}
    os.sched_setaffinity(0, others or {options.core})
    with tempfile.TemporaryDirectory() as folder:
        repository = pathlib.Path(folder) / "models"
        (repository / "lstm" / "1").mkdir(parents=True)
        (repository / "lstm" / "1" / "model.onnx").write_bytes(model())
        (repository / "lstm" / "config.pbtxt").write_text(CONFIG)
        with TritonServer(repository, prefix=("taskset", "-c", str(options.core))) as server:
            session = treadle.InferenceSession(model())
            for _ in range(options.rounds):
                for way in options.ways.split(","):
                    name, make = WAYS[way]
                    caller = make(server, 1)
                    check(caller, session)
                    caller.close()
                    print(f"{name}\nstreams     us of a core     wall    p50 us    p99 us  batch")
                    for streams in map(int, options.streams.split(",")):
                        print(measure(server, make, streams, options.seconds), flush=True)


if __name__ == "__main__":
    main()

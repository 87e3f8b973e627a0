"""Calls of tritonclient by one signature, whichever way they go."""

import queue

import numpy as np
from tritonclient import grpc, http, utils

WAYS = ("json", "binary", "grpc", "stream")
Error = utils.InferenceServerException


class Caller:
    """A client of one server; closed when its block is left."""

    def __init__(self, server, way: str) -> None:
        """`way`: JSON or binary over HTTP, or gRPC, a call for each request or a stream of them."""
        self.way = way
        self.kind = grpc if way in ("grpc", "stream") else http
        self.client = self.kind.InferenceServerClient(server.grpc if self.kind is grpc else server.http)
        self.answers: queue.Queue = queue.Queue()
        if way == "stream":
            self.client.start_stream(lambda result, error: self.answers.put((result, error)))

    def __enter__(self) -> "Caller":
        return self

    def __exit__(self, *_: object) -> None:
        if self.way == "stream":
            self.client.stop_stream()
        self.client.close()

    def infer(self, model: str, inputs: dict[str, np.ndarray], outputs=None, **sequence) -> dict[str, np.ndarray]:
        """Outputs by name; raises Error for what the server refuses."""
        given = [self._input(name, array) for name, array in inputs.items()]
        wanted = None if outputs is None else [self._output(name) for name in outputs]
        if self.way == "stream":
            self.client.async_stream_infer(model, given, outputs=wanted, **sequence)
            result, error = self.answers.get(timeout=60)
            if error:
                raise error
        else:
            result = self.client.infer(model, given, outputs=wanted, **sequence)
        return self._arrays(result)

    def _input(self, name, array):
        made = self.kind.InferInput(name, list(array.shape), utils.np_to_triton_dtype(array.dtype))
        if self.kind is http:
            made.set_data_from_numpy(array, binary_data=self.way == "binary")
        else:
            made.set_data_from_numpy(array)
        return made

    def _output(self, name):
        if self.kind is http:
            return http.InferRequestedOutput(name, binary_data=self.way == "binary")
        return grpc.InferRequestedOutput(name)

    def _arrays(self, result) -> dict[str, np.ndarray]:
        answer = result.get_response()
        if self.kind is http:
            return {output["name"]: result.as_numpy(output["name"]) for output in answer.get("outputs", [])}
        return {output.name: result.as_numpy(output.name) for output in answer.outputs}

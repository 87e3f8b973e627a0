"""What the kserve SDK brings, imported so that it leaves the program's command line alone.

The SDK reads `sys.argv` while it is imported, and would end a program that has options of its own.
"""

from __future__ import annotations

import sys

# pyright: reportMissingImports=false
# _sdk.pyi has the types of the imports.
_argv, sys.argv = sys.argv, sys.argv[:1]
try:
    import grpc
    import kserve.model_server
    import prometheus_client
    import prometheus_client.core
    import starlette.responses
    import starlette.routing
    import uvicorn
    from kserve import InferOutput, InferRequest, InferResponse, Model
    from kserve.errors import InvalidInput, ModelNotFound, ModelNotReady
    from kserve.model_repository import ModelRepository
    from kserve.protocol.dataplane import DataPlane
    from kserve.protocol.grpc import grpc_predict_v2_pb2 as pb
    from kserve.protocol.grpc import grpc_predict_v2_pb2_grpc as pb_grpc
    from kserve.protocol.grpc.servicer import InferenceServicer
    from kserve.protocol.infer_type import RequestedOutput, to_http_parameters
    from kserve.protocol.model_repository_extension import ModelRepositoryExtension
    from kserve.protocol.rest.server import RESTServer
except ModuleNotFoundError as e:
    raise ModuleNotFoundError(f"{e}; pip install 'treadle[kserve]' brings what a server needs", name=e.name) from e
finally:
    sys.argv = _argv

APP = "kserve.model_server:app"
app = kserve.model_server.app
Server = uvicorn.Server

__all__ = [
    "APP",
    "DataPlane",
    "InferOutput",
    "InferRequest",
    "InferResponse",
    "InferenceServicer",
    "InvalidInput",
    "Model",
    "ModelNotFound",
    "ModelNotReady",
    "ModelRepository",
    "ModelRepositoryExtension",
    "RESTServer",
    "RequestedOutput",
    "Server",
    "app",
    "grpc",
    "pb",
    "pb_grpc",
    "prometheus_client",
    "starlette",
    "to_http_parameters",
    "uvicorn",
]

"""The command line of `python -m treadle.serving.kserve`."""

from __future__ import annotations

import argparse
import json
import logging
import pathlib
from typing import Any

import numpy as np

from .. import InferenceSession, _errors
from ._repository import Permission
from ._server import Server
from ._signature import DTYPES, element
from ._stream_model import StreamModel, one_thread

ORIGIN = "pages of another site that may use WebSockets, such as https://example.org; * for all"
TOKEN = "a file with a text; callers that send it may load and unload models (without it, no caller may)"
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
REFUSED = tuple(getattr(_errors, name) for name in _errors.__all__)
KINDS = {int: "a whole number", float: "a number", bool: "true or false", dict: "an object", list: "a list"}
LOG_LEVEL = "of Python's logging (WARNING, and one line when the server listens)"


def parser() -> argparse.ArgumentParser:
    """What the command takes."""
    taken = argparse.ArgumentParser(
        prog="python -m treadle.serving.kserve",
        description="Serves live streams by the Open Inference Protocol v2: REST, gRPC and WebSockets.",
        allow_abbrev=False,
    )
    add = taken.add_argument
    add("models", nargs="+", metavar="MODEL", help="a file, or NAME=FILE; one that ends in .json lists models")
    add("--model_name", help="the name of the only model; else that of its file")
    add("--time", action="append", default=[], metavar="INPUT=AXIS", help="the axis that an input is cut along")
    add("--state", action="append", default=[], metavar="INPUT=OUTPUT", help="a state that is carried")
    add("--no_find_state", action="store_true", help="no states but those of --state are looked for")
    add("--bind", action="append", default=[], metavar="INPUT=VALUE", help="an input that stays the same, in JSON")
    add("--hop", type=int, default=0, help="samples of a run, for models over windows")
    add("--context", type=int, default=0, help="samples of the window before that a run sees again")
    add("--capacity", type=int, default=4096, help="streams of each model (%(default)s)")
    add("--idle_s", type=float, default=300.0, help="seconds without a step after which a stream leaves (%(default)s)")
    add("--max_delay_s", type=float, default=0.0, help="seconds that a step may wait for others (%(default)s)")
    add("--sample_rate", type=int, default=16000, help="per second, of the sound that the page sends (%(default)s)")
    add("--no_page", action="store_true", help="no page for browsers at /v2/models/NAME/page")
    add("--allow_origin", action="append", default=[], metavar="ORIGIN", help=ORIGIN)
    add("--host", default="127.0.0.1", help="the address to listen at (%(default)s); 0.0.0.0 for all")
    add("--http_port", type=int, default=8080, help="of REST and WebSockets (%(default)s)")
    add("--grpc_port", type=int, default=8081, help="of gRPC (%(default)s); 0 for none")
    add("--drain_s", type=float, default=10.0, help="seconds to hand streams out at the end (%(default)s)")
    add("--max_message_bytes", type=int, default=16 << 20, help="of a request and of a frame (%(default)s)")
    add("--repository_token_file", metavar="FILE", help=TOKEN)
    add("--log_level", type=str.upper, choices=LEVELS, metavar="LOG_LEVEL", help=LOG_LEVEL)
    return taken


def pairs(texts: list[str], option: str) -> dict[str, str]:
    """NAME=VALUE, each given once; SystemExit for others."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name or name in found:
            raise SystemExit(f"--{option} {text}: expected NAME=VALUE, once for each name")
        found[name] = value
    return found


def read_json(text: str, where: str) -> Any:
    """What a text says in JSON; SystemExit for one that is none."""
    try:
        return json.loads(text)
    except ValueError as e:
        raise SystemExit(f"{where}: no JSON: {e}") from None


def read_token(path: str | None) -> str | None:
    """The text in a file; SystemExit for a file that cannot be read or has no token."""
    if path is None:
        return None
    try:
        token = pathlib.Path(path).read_text(encoding="utf-8").strip()
        Permission(token)
    except (OSError, ValueError) as e:
        raise SystemExit(f"--repository_token_file {path}: {e}") from None
    return token


def listed(path: str) -> list[dict[str, Any]]:
    """The models that a file lists; SystemExit for a file that is none."""
    try:
        found = read_json(pathlib.Path(path).read_text(encoding="utf-8"), path)
    except OSError as e:
        raise SystemExit(f"{path}: {e.strerror}") from None
    if not isinstance(found, list) or not found:
        raise SystemExit(f"{path}: expected a list of models, [{{...}}, ...]")
    for number, entry in enumerate(found):
        if not isinstance(entry, dict) or not all(isinstance(entry.get(key), str) for key in ("name", "model")):
            raise SystemExit(f'{path}: entry {number} is to be an object with the texts "name" and "model"')
    return found


def check_kinds(entry: dict[str, Any], common: dict[str, Any], path: str) -> None:
    """SystemExit where a value is of another kind than the command line gives for the same key."""
    for key in entry.keys() & common.keys():
        kind = type(common[key])
        fits = isinstance(entry[key], (int, float) if kind is float else kind)
        if not fits or isinstance(entry[key], bool) != (kind is bool):
            shown = json.dumps(entry[key])
            raise SystemExit(f"{path}: {key} of model '{entry['name']}' is {shown}, expected {KINDS[kind]}")


def entries(options: argparse.Namespace) -> list[dict[str, Any]]:
    """The models to serve: "name", "model" and the arguments of `StreamModel`."""
    common: dict[str, Any] = {"hop": options.hop, "context": options.context, "capacity": options.capacity}
    common |= {"idle_s": options.idle_s, "max_delay_s": options.max_delay_s, "find_state": not options.no_find_state}
    common |= {"page": not options.no_page, "sample_rate": options.sample_rate}
    common["allow_origins"] = options.allow_origin
    axes = pairs(options.time, "time").items()
    common["time"] = {name: int(axis) if axis.lstrip("-").isdecimal() else axis for name, axis in axes}
    common["state"] = pairs(options.state, "state")
    common["bind"] = {name: read_json(value, f"--bind {name}") for name, value in pairs(options.bind, "bind").items()}
    found = []
    for text in options.models:
        name, equals, path = text.rpartition("=")
        if not equals and path.endswith(".json"):
            folder = pathlib.Path(path).parent
            for entry in listed(path):
                check_kinds(entry, common, path)
                found.append({**common, **entry, "model": str(folder / entry["model"])})
        else:
            found.append({**common, "name": name or pathlib.Path(path).stem, "model": path})
    if options.model_name:
        if len(found) != 1:
            raise SystemExit(f"--model_name is for one model, and there are {len(found)}: write NAME=FILE")
        found[0]["name"] = options.model_name
    if len({entry["name"] for entry in found}) != len(found):
        raise SystemExit(f"models have names of their own, not {', '.join(entry['name'] for entry in found)}")
    return found


def model_of(entry: dict[str, Any], max_request_bytes: int) -> StreamModel:
    """A model as the command line or a file says; values that are bound get the types of their inputs."""
    entry = dict(entry)
    name, path = entry.pop("name"), entry.pop("model")
    if entry["bind"]:
        infos = {info.name: info for info in InferenceSession(path, one_thread()).get_inputs()}
        for key, value in entry["bind"].items():
            if key not in infos:
                raise SystemExit(f"--bind {key}: model '{name}' has the inputs {', '.join(infos)}")
            entry["bind"][key] = np.array(value, DTYPES.get(element(infos[key])))
    return StreamModel(name, path, max_request_bytes=max_request_bytes, **entry)


def made(entry: dict[str, Any], max_request_bytes: int) -> StreamModel:
    """The same; SystemExit, with the path, where the file or an option does not fit."""
    try:
        return model_of(entry, max_request_bytes)
    except (OSError, TypeError, ValueError, *REFUSED) as e:
        raise SystemExit(f"{entry['model']}: {e}") from None


def run(arguments: list[str] | None = None) -> None:
    """Serves until a signal ends it."""
    options = parser().parse_args(arguments)
    logging.basicConfig(level=options.log_level or "WARNING")
    if not options.log_level:
        logging.getLogger("treadle.serving").setLevel("INFO")
    token = read_token(options.repository_token_file)
    models = [made(entry, options.max_message_bytes) for entry in entries(options)]
    server = Server(
        models,
        host=options.host,
        http_port=options.http_port,
        grpc_port=options.grpc_port or None,
        drain_s=options.drain_s,
        max_message_bytes=options.max_message_bytes,
        repository_token=token,
    )
    try:
        server.run()
    except OSError as e:
        raise SystemExit(str(e)) from None

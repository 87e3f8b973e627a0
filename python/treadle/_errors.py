"""The exceptions of onnxruntime, each a direct subclass of Exception, and one of treadle's own.

`code` says in words what kind of failure it was, `place` where it happened: file, path through the bodies, iteration, operator.
"""

__all__ = [
    "DeviceReset",
    "EPFail",
    "EngineError",
    "Fail",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "LimitExceeded",
    "Busy",
    "ModelLoadCanceled",
    "ModelLoaded",
    "ModelRequiresCompilation",
    "NoModel",
    "NoSuchFile",
    "NotFound",
    "NotImplemented",
    "RuntimeException",
]


class Fail(Exception):
    """The run was cancelled, or something went wrong that has no exception of its own."""

    code: str = ""
    place: str = ""


class InvalidArgument(Exception):
    """An input, name or option does not fit."""

    code: str = ""
    place: str = ""


class InvalidGraph(Exception):
    """The model breaks a rule of the specification."""

    code: str = ""
    place: str = ""


class InvalidProtobuf(Exception):
    """The bytes are not a model, or a file that weights are in has changed while it was open (docs/files.md)."""

    code: str = ""
    place: str = ""


class NoSuchFile(Exception):
    """There is no such file."""

    code: str = ""
    place: str = ""


class NotImplemented(Exception):  # noqa: A001 - onnxruntime's name
    """An operator, version or type that treadle does not run."""

    code: str = ""
    place: str = ""


class RuntimeException(Exception):
    """Data made an operator fail: an index out of range, a division by zero."""

    code: str = ""
    place: str = ""


class LimitExceeded(Exception):
    """A limit of the run, or one of the library's own, was reached."""

    code: str = ""
    place: str = ""


class Busy(Exception):
    """Another thread is using the stream."""

    code: str = ""
    place: str = ""


class NoModel(Exception):
    """Never raised by treadle."""


class EngineError(Exception):
    """Never raised by treadle."""


class ModelLoaded(Exception):
    """Never raised by treadle."""


class EPFail(Exception):
    """Never raised by treadle."""


class ModelLoadCanceled(Exception):
    """`SessionOptions.set_load_cancellation_flag` stopped the loading of a model."""

    code: str = ""
    place: str = ""


class ModelRequiresCompilation(Exception):
    """Never raised by treadle."""


class NotFound(Exception):
    """Never raised by treadle."""


class DeviceReset(Exception):
    """Never raised by treadle."""


# What treadle raises about models and runs, for those who catch all of it.
FAILURES: tuple[type[Exception], ...] = (
    Fail,
    InvalidArgument,
    InvalidGraph,
    InvalidProtobuf,
    LimitExceeded,
    NoSuchFile,
    NotImplemented,
    RuntimeException,
)

"""Live streams behind the Open Inference Protocol v2, carried by the kserve SDK.

    python -m treadle.serving.kserve vad.onnx --time input=1 --hop 512 --context 64 --bind sr=16000

serves a model; `StreamModel` is the same for a program that has a server already.
"""

from __future__ import annotations

from ._command import run as main
from ._stream_model import StreamModel

__all__ = ["StreamModel", "main"]


if __name__ == "__main__":
    main()

"""The loop of faster-whisper over its copy of the model. Its other modules, which need a package for tokens, stand by."""

import importlib.util
import pathlib
import sys

import recording

folder = pathlib.Path(importlib.util.find_spec("faster_whisper").origin).parent
recording.stand_in("faster_whisper", __path__=[str(folder)])
recording.stand_in("faster_whisper.utils", get_assets_path=lambda: str(folder / "assets"))

from faster_whisper.vad import SileroVADModel  # noqa: E402

signal = recording.floats()
signal = signal[: len(signal) // 512 * 512].copy()
signal[-64:] = 0  # as the loop does itself before it runs the model
found = SileroVADModel(sys.argv[3])(signal.copy())
recording.save(signal=signal, expected=found.reshape(-1))

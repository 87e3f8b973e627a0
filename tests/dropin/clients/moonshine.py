"""The speech that moonshine-voice finds in its own recording, with the detector in its library."""

import json
import pathlib
import wave

import moonshine_voice
import numpy as np
from moonshine_voice.moonshine_api import ModelArch
from moonshine_voice.transcriber import Transcriber

assets = pathlib.Path(moonshine_voice.__file__).parent / "assets"
with wave.open(str(assets / "two_cities.wav")) as file:
    rate = file.getframerate()
    audio = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768
transcriber = Transcriber(assets / "tiny-en", ModelArch.TINY, options={"skip_transcription": "true"})
found = transcriber.transcribe_without_streaming(audio.tolist(), rate)
print(json.dumps([[line.start_time, line.duration] for line in found.lines]))

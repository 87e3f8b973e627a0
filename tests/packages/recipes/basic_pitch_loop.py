"""The loop of basic-pitch. What makes MIDI of notes stands by."""

import sys

import librosa
import recording

recording.stand_in("pretty_midi", PrettyMIDI=object)
recording.stand_in("basic_pitch.note_creation")

from basic_pitch.inference import run_inference  # noqa: E402

signal, _ = librosa.load(sys.argv[1], sr=22050, mono=True)
recording.save(signal=signal, **run_inference(sys.argv[1], sys.argv[3]))

"""A voice of piper-tts speaks two sentences, without noise."""

import sys

import recording
from piper import PiperVoice, SynthesisConfig

voice = PiperVoice.load(sys.argv[3])
sentences = voice.phonemize("A model that loops runs as one program. Where are the words?")
silent = SynthesisConfig(noise_scale=0, noise_w_scale=0)
spoken = [voice.phoneme_ids_to_audio(voice.phonemes_to_ids(phonemes), silent) for phonemes in sentences]
recording.save(
    **{f"phonemes{i}": phonemes for i, phonemes in enumerate(sentences)},
    **{f"expected{i}": audio for i, audio in enumerate(spoken)},
)

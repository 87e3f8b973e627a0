"""A voice of piper-tts speaks two sentences: VOICE is a network of the same inputs and outputs as real voices."""

import json

import sine_models
from piper import PiperVoice
from piper.phoneme_ids import DEFAULT_PHONEME_ID_MAP

VOICE = f"""g (int64[batch, phonemes] input, int64[batch] input_lengths, float[3] scales) => (float[a, b, c, time] output) {{
  {sine_models.weights("table", 256, 16)}
  {sine_models.weights("w", 2, 128, 16)}
  {sine_models.weights("r", 2, 128, 32)}
  one = Constant <value_ints = [1]> ()
  shape = Constant <value_ints = [1, 1, 1, -1]> ()
  embedded = Gather (table, input)
  steps = Transpose <perm = [1, 0, 2]> (embedded)
  y = LSTM <hidden_size = 32, direction = "bidirectional"> (steps, w, r)
  length = Gather (scales, one)
  scaled = Mul (y, length)
  waves = Tanh (scaled)
  output = Reshape (waves, shape)
}}"""


def speak() -> list:
    path = sine_models.write("voice.onnx", VOICE)
    config = {
        "audio": {"sample_rate": 16000},
        "espeak": {"voice": "en-us"},
        "num_symbols": 256,
        "num_speakers": 1,
        "inference": {},
        "phoneme_id_map": DEFAULT_PHONEME_ID_MAP,
    }
    path.with_suffix(".onnx.json").write_text(json.dumps(config))
    voice = PiperVoice.load(path)
    return [chunk.audio_float_array[::7].tolist() for chunk in voice.synthesize("Programs run unchanged. All of them!")]

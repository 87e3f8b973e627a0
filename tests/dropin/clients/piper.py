"""Vowels that piper-phonemize adds to Arabic, with the model of six loops that it brings."""

import json

import piper_phonemize

TEXTS = ("السلام عليكم ورحمة الله وبركاته", "ذهب الولد إلى المدرسة", "كتاب")
print(json.dumps([piper_phonemize.tashkeel_run(text) for text in TEXTS]))

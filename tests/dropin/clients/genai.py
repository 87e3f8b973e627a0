"""Texts that onnxruntime-genai generates: FOLDER of the model."""

import json
import sys

import numpy as np
import onnxruntime_genai

ONE, TWO = [[1, 5, 9, 13]], [[1, 5, 9, 13], [1, 7, 8, 40]]
model = onnxruntime_genai.Model(sys.argv[1])


def begin(prompts, **options):
    parameters = onnxruntime_genai.GeneratorParams(model)
    parameters.set_search_options(batch_size=len(prompts), **options)
    generator = onnxruntime_genai.Generator(model, parameters)
    generator.append_tokens(np.array(prompts, np.int32))
    return generator


def generate(prompts, **options):
    generator = begin(prompts, **options)
    while not generator.is_done():
        generator.generate_next_token()
    return [generator.get_sequence(i).tolist() for i in range(len(prompts))]


def rewind():
    """Goes back to an earlier token, and on with others than before."""
    generator = begin(ONE, max_length=40)
    for _ in range(10):
        generator.generate_next_token()
    generator.rewind_to(6)
    generator.append_tokens(np.array([[17, 3]], np.int32))
    for _ in range(6):
        generator.generate_next_token()
    return [generator.get_sequence(0).tolist(), float(np.abs(generator.get_output("logits")).sum())]


found = {"beam": generate(TWO, max_length=24, num_beams=4, length_penalty=0.8), "rewind": rewind()}
for shared in (False, True):  # whether the caches of keys and values are read and written in one place
    drawn = {"do_sample": True, "random_seed": 7, "max_length": 30, "past_present_share_buffer": shared}
    found[f"greedy, {shared}"] = generate(TWO, max_length=30, past_present_share_buffer=shared)
    found[f"of the best 20, {shared}"] = generate(TWO, top_k=20, temperature=0.9, **drawn)
    found[f"of 0.8, {shared}"] = generate(ONE, top_p=0.8, temperature=1.3, repetition_penalty=1.2, **drawn)
print(json.dumps(found))

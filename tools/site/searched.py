"""python tools/site/searched.py FOLDER: the site's search finds pages by the words that people search for.

FOLDER is what tools/site/generate.py has written. Sphinx's search ranks the names of C functions and Python classes above
titles, and a heading seldom has the words that a person types. An entry of the index ranks above both where it is what was
typed. So each heading below gets entries of the index, which the page does not show.
"""

from __future__ import annotations

import pathlib
import re
import sys

# For each page: a heading ("" is the page's title), and a search that should find it.
SEARCHED: dict[str, dict[str, str]] = {
    "faq.md": {
        "": "faq, questions, help",
        "Will my model be faster?": "speed, how fast, faster, performance, speedup",
        "Can treadle use a GPU?": "gpu, cuda, tensorrt, accelerator, npu",
        "Does treadle train models?": "training, train, fine tuning",
        "Which operators and which opsets does it have?": "opset, supported operators, unsupported operator, coverage",
        "Why is treadle not on PyPI?": "pypi, pip, pip install",
        "Which platforms: Windows, macOS, ARM, Raspberry Pi?": (
            "raspberry pi, raspberry, arm, arm64, aarch64, windows, macos, mac, android, ios, platforms"
        ),
        "Does treadle need LLVM or a compiler?": "llvm, compiler, dependencies",
        "How much memory does treadle use?": "memory, memory usage, ram, memory leak, too much memory",
        "How many threads does treadle use?": "threads, cores, multithreading, cpu usage",
        "Is it fit for real time and live audio?": "real time, realtime, latency, live audio, microphone",
        "Why is the first run slow?": "slow first run, first run, warm up, warmup, startup, cold start",
        "What is the licence?": "license, licence",
    },
    "howto/choose-a-stream.md": {"": "streaming, stream, live, online inference, chunks, chunked, windows of a signal"},
    "howto/coming-from-onnxruntime.md": {
        "": "onnxruntime, migrate, migration, onnxruntime differences, different results",
        "Results of int8 models": "int8 differences, int8, quantized, quantised, quantization, vnni",
        "NaN": "nan, not a number",
        "Warnings": "warnings, warning, userwarning",
    },
    "howto/compare-engines.md": {
        "": "compare, difference, different results, onnxruntime differs, wrong results, verify, validate, accuracy",
    },
    "howto/deployment.md": {"": "docker, container, deploy, production"},
    "howto/install.md": {"": "install, installation, wheel, wheels, debian"},
    "howto/look-inside.md": {
        "": "debug, debugging, inner values, intermediate values, intermediate outputs, first nan, watch, trace",
    },
    "howto/recipes.md": {
        "": "silero, silero vad, vad, voice activity detection, gtcrn, noise, denoise, wake word, openwakeword, piper, tts, midi, pitch",
    },
    "howto/troubleshooting.md": {
        "": "troubleshooting, error, errors, error message, exception, crash, problem, does not work",
        "The model cannot be opened": "git lfs, git-lfs, external data, corrupt model, cannot load model",
        "Loops that are not native code": "not native, jit, native code",
        "Installation and imports": "importerror, modulenotfounderror, import error, libonnxruntime",
        "nan or inf in the results": "nan, inf, infinity, overflow",
        "An int8 model gives different results on two machines, or in two engines": "int8 differences, wrong results",
    },
    "howto/tuning.md": {
        "": "tuning, optimise, optimize, slow, slow model, performance, faster",
        "1. Why is my loop slow? Measure first": "why is my loop slow, slow loop, loop slow, profile, profiling, bottleneck",
        "2. Native code, its cache, and the slow first run": "slow first run, first run, cache",
        "3. Batch size, pools and threads": "batch size, batch, batching, throughput, threads",
        "4. Fixed sizes, and weights of 16 or 8 bits": "dynamic shapes, dynamic axes, float16, fp16, half precision",
    },
    "howto/which-models-profit.md": {"": "which models, which models profit, is my model faster, speedup, when to use"},
    "gallery.md": {"": "examples, example, demo, samples"},
    "tutorials/browser.md": {"": "browser, browsers, wasm, webassembly, javascript, web page, web audio"},
    "tutorials/wrong-number.md": {
        "": "wrong number, wrong numbers, wrong output, wrong tokens, wrong weight, compare two models, mismatch",
    },
    "limits.md": {"": "timeout, time limit, memory limit, endless loop, infinite loop"},
    "memory.md": {"": "memory, out of memory, oom"},
    "security-model.md": {"": "untrusted models, security"},
}


def entries(words: str) -> str:
    """The directive; with a "!" an entry stands before all other results."""
    return ":::{index} " + ", ".join(f"! {word.strip()}" for word in words.split(",")) + "\n:::\n"


def with_entries(text: str, headings: dict[str, str]) -> str:
    """`text` with entries above its headings, to which a result of the search then leads; ValueError for a heading that is not there."""
    for heading, words in headings.items():
        pattern = rf"^#+ {re.escape(heading)}$" if heading else r"^# .*$"
        above = rf"{entries(words)}\n\g<0>"
        text, count = re.subn(pattern, above, text, count=1, flags=re.MULTILINE)
        if not count:
            raise ValueError(f"there is no heading '{heading}'")
    return text


def main(folder: pathlib.Path) -> None:
    for name, headings in SEARCHED.items():
        page = folder / name
        page.write_text(with_entries(page.read_text(encoding="utf-8"), headings), encoding="utf-8")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))

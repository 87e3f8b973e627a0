"""python build.py MODEL FOLDER: a page that takes noise out of speech, in FOLDER, for a model of spectra.

The model takes a spectrum, as [1,257,1,2] with real and imaginary parts, and gives one; its states are found as every
stream of treadle finds them. Needs treadle, clang 19 and lld 19.
"""

from __future__ import annotations

import argparse
import html
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import wave
from dataclasses import dataclass

import numpy as np
import treadle

HERE = pathlib.Path(__file__).resolve().parent
RECORDING = HERE.parent / "vad" / "recording.wav"
LARGEST = 1_000_000  # bytes of the whole page
EXAMPLE = 8  # seconds
CLANG = ["clang-19", "--target=wasm32", "-std=c11", "-O2", "-msimd128", "-mbulk-memory", "-ffreestanding", "-nostdlib"]
LINK = ["-Wl,--no-entry", "-Wl,--strip-all", "-Wl,-z,stack-size=65536"]
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
MEMBER = re.compile(r'^  (?:const )?float \*(\w+); /\* "(.*)": tensor\(float\)\[([\d,]*)\], (\d+) elements \*/$', re.M)
STATE = re.compile(r"^  state  (.+?) <- (.+?)  ", re.M)


@dataclass
class Member:
    """An input or output of the model as the C has it."""

    name: str
    sizes: list[int]
    elements: int


def members_of(header: str) -> dict[str, Member]:
    """By the model's names."""
    return {
        found[1]: Member(found[0], [int(n) for n in found[2].split(",") if n], int(found[3]))
        for found in MEMBER.findall(header)
    }


def is_spectrum(sizes: list[int]) -> bool:
    """Whether bins have real and imaginary parts side by side, for a window whose length is a power of two."""
    bins = max(sizes, default=0)
    return [n for n in sizes if n != 1] == [bins, 2] and bins > 2 and not (bins - 1) & (bins - 2)


def sizes_and_states(session: treadle.InferenceSession, header: str, rate: int) -> str:
    """states.h: what denoise.c has to know of the model."""
    members = members_of(header)
    states = dict(STATE.findall(str(session.stream())))
    spectra = [value.name for value in session.get_inputs() if value.name not in states]
    results = [value.name for value in session.get_outputs() if value.name not in states.values()]
    known = all(name in members for name in (*spectra, *results, *states, *states.values()))
    if not known or len(spectra) != 1 or len(results) != 1 or not is_spectrum(members[spectra[0]].sizes):
        inputs = ", ".join(f"{value.name}: {value.type}{value.shape}" for value in session.get_inputs())
        sys.exit(f"expected states of floats and one spectrum, such as [1,257,1,2], found {inputs}")
    rows = "".join(
        f" \\\n  STATE({members[before].name}, {members[after].name}, {members[before].elements})"
        for before, after in states.items()
    )
    return f"""#define SPECTRUM {members[spectra[0]].name}
#define CLEAN {members[results[0]].name}
#define BINS {max(members[spectra[0]].sizes)}
#define RATE {rate}
#define STATES(STATE){rows}
"""


def compile_model(model: pathlib.Path, glue: pathlib.Path, out: pathlib.Path, rate: int | None) -> None:
    """The model and the C around it as WebAssembly, which has no fused multiply-add."""
    session = treadle.InferenceSession(model)
    rate = rate or int(session.get_modelmeta().custom_metadata_map.get("sample_rate", 16000))
    source, header = session.write_c("model", fma=False)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "model.c").write_text(source, encoding="utf-8")
        (folder / "model.h").write_text(header, encoding="utf-8")
        (folder / "states.h").write_text(sizes_and_states(session, header, rate), encoding="utf-8")
        include = ["-I", folder, "-I", HERE / "freestanding"]
        command = [*CLANG, *WARNINGS, *include, glue, folder / "model.c", *LINK, "-o", out]
        subprocess.run(list(map(str, command)), check=True)


def write_example(out: pathlib.Path) -> None:
    """Speech with noise of equal power at all frequencies."""
    with wave.open(str(RECORDING)) as file:
        parameters = file.getparams()
        samples = np.frombuffer(file.readframes(EXAMPLE * parameters.framerate), np.int16)
    noisy = samples + np.random.default_rng(1).normal(0, 650, samples.size)
    with wave.open(str(out), "wb") as file:
        file.setparams(parameters)
        file.writeframes(noisy.clip(-32768, 32767).astype(np.int16).tobytes())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument(
        "--rate", type=int, help="samples per second (default: the model's property sample_rate, or 16000)"
    )
    parser.add_argument("--name", help="the model's name on the page (default: its file's)")
    parser.add_argument("--licence", type=pathlib.Path, help="the model's licence, which the page then names")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    compile_model(arguments.model, HERE / "denoise.c", arguments.folder / "denoise.wasm", arguments.rate)
    write_example(arguments.folder / "example.wav")
    for file in (HERE / "page").iterdir():
        shutil.copy(file, arguments.folder)
    licence = ""
    if arguments.licence:
        shutil.copy(arguments.licence, arguments.folder / "licence.txt")
        licence = ' (<a href="licence.txt">licence</a>)'
    page = arguments.folder / "index.html"
    text = page.read_text(encoding="utf-8").replace("@model@", html.escape(arguments.name or arguments.model.stem))
    page.write_text(text.replace("@licence@", licence), encoding="utf-8")
    sizes = {file.name: file.stat().st_size for file in sorted(arguments.folder.iterdir())}
    for name, size in sizes.items():
        print(f"{name:<14}{size:>9,}")
    print(f"{'all':<14}{sum(sizes.values()):>9,} bytes")
    if sum(sizes.values()) > LARGEST:
        sys.exit(f"expected at most {LARGEST:,} bytes")


if __name__ == "__main__":
    main()

"""The code of README.md, of the other pages beside it and of docs/ runs as it stands there.

The blocks of a page run one after the other, in a folder with the files that `folder` says. The word behind a block's
backquotes says what happens with it:

    python    is run; where its first line is `# NAME.py`, it becomes this file instead
    sh        so is every command of the tool, of Python and of the compiler, and what a page has compiled; of ./dev it is
              seen that the command exists: it would build, test or fuzz; pip, apt and git are not called
              Blocks without a word that hold nothing but such commands are of this kind, too
    output    is what the block before it prints, where '...' stands for anything
    c, cpp    is compiled into a program around it (HARNESSES), which is run; where its first line is `// NAME`, it becomes
              this file instead
    onnx      is a model: it is read and checked
    text      is not run: it shows what a program prints, or a grammar

Pages of models with what is said about them have tests of their own (OWN_TESTS).
"""

import contextlib
import importlib.util
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

treadle = pytest.importorskip("treadle", reason="the Python package is not built")

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("TREADLE_BIN_DIR", ROOT / "build" / "bin"))
LIB = ROOT / "build" / "lib"
OWN_TESTS = {
    "audio-plugin.md": "../packages/test_ladspa_page.py",
    "browser.md": "../services/serving/check_noise.py",
    "cluster.md": "../services/test_cluster_page.py",
    "diagnostics.md": "test_diagnostics_page.py",
    "extending.md": "../tools/test_tutorial.py",
    "ray-serve.md": "../services/test_ray_serve.py",
    "strictness.md": "test_strictness_page.py",
    "triton.md": "../services/test_triton_page.py",
}
FOUND = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in FOUND if page.name not in OWN_TESTS]
LANGUAGES = {"python", "sh", "output", "c", "cpp", "onnx", "text"}
OF_PACKAGES = ("arm-none-eabi-", "qemu-system-arm")  # pages with these commands are skipped where they are not there
RUN = (
    "treadle",
    "TREADLE_",
    "python",
    "clang++-19",
    "clang-19",
    "./",
    *OF_PACKAGES,
)  # what commands begin with that are run
MODULES = {"scikit-learn": "sklearn"}  # packages that are imported by another name
NOT_RUN = ("pip ", "apt-get ", "sudo ", "git ", "docker ")
OF_THE_REPOSITORY = ("examples/vad/silero_vad.onnx", "examples/vad/recording.wav", "examples/serving/fleet.py")

# y = tanh(W x + R h): frames along axis 2 of x.
RECURRENT = """<ir_version: 10, opset_import: ["" : 22]>
g (float[1,2,T] x) => (float[1,2,T] y) <float[2] zero = {0, 0}, float[2,2] w = {1, 0.5, 0.25, 1}, int64[1] first = {0}> {
  rows = Squeeze (x, first)
  last, out = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1],
                    body = b (float[2] h, float[2] e) => (float[2] n, float[2] o) {
    p = MatMul (e, w)
    q = Add (p, h)
    n = Tanh (q)
    o = Identity (n)
  }> (zero, rows)
  y = Unsqueeze (out, first)
}"""

# A node that looks back at the sample before, in any number of signals.
BATCHED = """<ir_version: 10, opset_import: ["" : 22]>
g (float[N,2,T] x) => (float[N,2,T] y) <float[2,2,2] w = {1, 0.5, 0.25, 1, -1, 2, 0.5, 1}> {
  y = Conv <pads = [1, 0]> (x, w)
}"""

# A voice detector's signature: a window with its context, the rate, and a state.
WINDOWED = """<ir_version: 10, opset_import: ["" : 22]>
g (float[1,576] input, float[2,1,4] state, int64 sr) => (float[1,1] output, float[2,1,4] stateN) {
  axis = Constant <value = int64[1] {1}> ()
  output = ReduceMean <keepdims = 1> (input, axis)
  stateN = Add (state, output)
}"""


def signal(length=320):
    return np.sin(np.arange(2 * length, dtype=np.float32)).reshape(1, 2, length)


def recurrent_session():
    return treadle.InferenceSession(RECURRENT.encode())


def backend_case(folder):
    """A case in the layout of the ONNX backend tests."""
    data = folder / "case" / "test_data_set_0"
    data.mkdir(parents=True)
    (folder / "case" / "model.onnx").write_bytes(treadle.parse_model(RECURRENT))
    for kind, array in (("input", signal()), ("output", recurrent_session().run(None, {"x": signal()})[0])):
        (data / f"{kind}_0.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())


def names_for(page, number):
    """The names and values that block `number` of the page expects to exist."""
    if page in ("index.md", "choose-a-stream.md"):
        return {"session": recurrent_session(), "x": signal(), "np": np}
    if page == "README.md":
        return {"x": signal(), "source": np.split(signal(), 4, axis=2)}
    if page in ("limits.md", "drop-in.md"):
        return {"x": signal()}
    if page == "progress.md":
        return {"session": recurrent_session(), "x": signal()}
    if page == "native.md":
        return {"session": recurrent_session(), "feed": {"x": signal()}}
    if page == "streams.md" and number == 2:
        samples = np.zeros((1, 2000), np.float32)
        return {"session": treadle.InferenceSession(WINDOWED.encode()), "samples": samples, "numpy": np}
    if page == "streams.md":
        first, second = np.split(signal(), 2, axis=2)
        ticks = [{"a": first}, {"a": second, "b": first}]
        shown = {
            "source": [first, second],
            "ticks": ticks,
            "name": "a",
            "block": np.repeat(first, 32, axis=0),
            "np": np,
        }
        return {"session": treadle.InferenceSession(BATCHED.encode()), **shown}
    return {}


HARNESSES = {
    "c": """
        #include <stdio.h>
        #include <treadle/treadle.h>

        int main(void) {
          treadle_session* session = NULL;
          treadle_options* options = NULL;
          if (treadle_options_create(&options)) return 2;
          if (treadle_session_open("model.onnx", options, &session)) return 3;
          static float samples[2 * 160];
          const int64_t dims[3] = {1, 2, 160};
          treadle_value* chunk = NULL;
          if (treadle_tensor_borrow(1, dims, 3, samples, sizeof samples, false, NULL, NULL, &chunk)) return 4;
          %s
          if (status) fputs(treadle_status_text(status), stderr);
          return status || !outputs[0];
        }""",
    "cpp": """
        #include <treadle/treadle.hpp>

        #include <vector>

        int main() {
          treadle::Session session("model.onnx");
          treadle::Value chunk;
          int left = 3;
          const auto next = [&](treadle::Value& value) {
            value = treadle::Value::of(std::vector<float>(2 * 160).data(), {1, 2, 160});
            return left-- > 0;
          };
          %s
          return frames.size() == 1 ? 0 : 1;
        }""",
}


def blocks(page):
    for language, text in re.findall(
        r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    ):
        commands = all(line.startswith(("treadle ", "./dev ")) for line in text.splitlines())
        yield "sh" if commands and not language else language, text


def file_of(text):
    """The file that a block becomes, or None."""
    name = re.match(r"(?://|#) ([\w.]+\.\w+)\n", text)
    return name[1] if name else None


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Holds the model, one of its inputs, a case and the voice detector, under the names that pages call them by."""
    monkeypatch.chdir(tmp_path)
    pathlib.Path("model.onnx").write_bytes(treadle.parse_model(RECURRENT))
    np.save("x.npy", signal())
    backend_case(tmp_path / "DIR")
    for name in OF_THE_REPOSITORY:
        (tmp_path / pathlib.Path(name).name).symlink_to(ROOT / name)
    return tmp_path


def clean_environment():
    """The environment of a separate program, without the variables that load a sanitizer into Python."""
    return {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "ASAN_OPTIONS", "PYTHONPATH")}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_says_what_it_is(page):
    assert {language for language, _ in blocks(page)} <= LANGUAGES


def pages_with(*languages):
    found = [page for page in PAGES if any(word in languages for word, _ in blocks(page))]
    return pytest.mark.parametrize("page", found, ids=lambda page: str(page.relative_to(ROOT)))


def is_as_shown(printed, shown):
    wanted = ".*".join(re.escape(part) for part in shown.strip().split("..."))
    return re.fullmatch(wanted, printed.strip(), re.DOTALL) is not None


def run_python(text, what, names):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(text, what, "exec"), names)  # noqa: S102 - our own page
    return printed.getvalue()


def run_commands(text):
    """The output of a block's commands, errors included."""
    search = f"{BIN}:{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {**clean_environment(), "PATH": search, "TREADLE_JIT_CACHE": "off", "CHECKOUT": str(ROOT)}
    printed = ""
    for line in text.replace("\\\n", "").splitlines():
        command = line.split(" #")[0].strip()
        if command.startswith("./dev "):
            assert command.split()[1] in dev_commands(), command
        elif not command.startswith(NOT_RUN):
            assert command.startswith(RUN), command
            done = subprocess.run(
                ["bash", "-c", command],
                env=env,
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                check=False,
            )
            assert done.returncode == 0, f"{command}\n{done.stdout}"
            printed += done.stdout
    return printed


def programs_of(page):
    """The programs that the page calls and that packages of the system bring."""
    commands = "\n".join(text for language, text in blocks(page) if language == "sh")
    return {line.split()[0] for line in commands.splitlines() if line.startswith(OF_PACKAGES)}


def packages_of(page):
    """The packages, besides treadle, that the page installs."""
    return re.findall(r"^pip install (?![.]|.*treadle)(.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.fixture
def installed(page, tmp_path_factory, monkeypatch):
    """Longer test runs install the packages that a page needs; shorter ones skip the page where they are not there."""
    for names in packages_of(page):
        target = tmp_path_factory.mktemp("packages")
        if not all(importlib.util.find_spec(MODULES.get(name, name)) for name in names.split()):
            if not os.environ.get("TREADLE_TEST_LONG"):
                pytest.skip(f"{names}: not installed")
            command = [sys.executable, "-m", "pip", "install", "-q", "--no-input", "--target", target, *names.split()]
            if subprocess.run(command, check=False).returncode:
                pytest.skip(f"{names}: cannot be installed")
            monkeypatch.setattr(sys, "path", [*sys.path, str(target)])


def is_the_same_picture(one, other):
    """Drawings whose numbers differ by less than can be seen: instruction sets round differently."""
    number = re.compile(r"-?\d+\.\d+")
    without_pixels = [re.sub(r"base64,[^\"]*", "", text) for text in (one, other)]
    if number.sub("", without_pixels[0]) != number.sub("", without_pixels[1]):
        return False
    a, b = (np.array(number.findall(text), float) for text in without_pixels)
    return np.allclose(a, b, atol=0.3)


@pages_with("python", "sh")
def test_blocks_run(page, folder, installed, monkeypatch):
    if not (BIN / "treadle").exists():
        pytest.skip("the tool is not built")
    if missing := [name for name in sorted(programs_of(page)) if not shutil.which(name)]:
        pytest.skip(f"there is no {' and no '.join(missing)}")
    for examples in (ROOT / "examples", ROOT / "examples" / "vad"):
        monkeypatch.syspath_prepend(examples)
    names, printed, number = {"treadle": treadle}, "", 0
    for language, text in blocks(page):
        if file_of(text):
            (folder / file_of(text)).write_text(text, encoding="utf-8")
        elif language == "python":
            names.update(names_for(page.name, number))
            printed = run_python(text, f"{page.name}, block {number}", names)
            number += 1
        elif language == "sh":
            printed = run_commands(text)
        elif language == "output":
            assert is_as_shown(printed, text), f"{page.name} shows\n{text}\nbut it printed\n{printed}"
    for drawn in folder.glob("*.svg"):
        shown = ROOT / "docs" / "pictures" / drawn.name
        assert is_the_same_picture(drawn.read_text(), shown.read_text()), f"{drawn} is not what {shown} shows"


TROUBLESHOOTING = ROOT / "docs" / "howto" / "troubleshooting.md"
# Messages that Python and pip print.
OF_OTHERS = ("No module named", "cannot import name", "Could not find a version")


def own_text():
    """The sources that print messages, with strings that go on in the next line put together."""
    folders = [ROOT / name for name in ("src", "python", "cli", "dropin")]
    files = [path for folder in folders for path in sorted(folder.rglob("*.*")) if path.suffix in (".cc", ".h", ".py")]
    return re.sub(r'"\s*\n\s*f?"', "", "\n".join(path.read_text(encoding="utf-8") for path in files))


def test_headings_of_troubleshooting_are_messages_that_are_printed():
    sections = re.split(r"^### (.*)\n", TROUBLESHOOTING.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    sources, checked = own_text(), 0
    for heading, section in zip(sections[::2], sections[1::2], strict=True):
        shown = "".join(text for text in re.findall(r"^```output\n(.*?)^```$", section, re.DOTALL | re.MULTILINE))
        for message in re.findall(r"`([^`]+)`", heading):
            if not message.startswith(OF_OTHERS):
                parts = [part.strip() for part in message.split("...") if part.strip()]
                missing = [part for part in parts if part not in (shown or sources)]
                assert not missing, f"{heading}: {missing} is in no {'output below it' if shown else 'source'}"
                checked += 1
    assert checked > 30


def test_every_option_that_limits_names_exists():
    owners = {"SessionOptions": treadle.SessionOptions(), "RunOptions": treadle.RunOptions()}
    for owner, name in re.findall(r"`(SessionOptions|RunOptions)\.(\w+)", (ROOT / "docs" / "limits.md").read_text()):
        assert hasattr(owners[owner], name), name


def dev_commands():
    usage = subprocess.run([ROOT / "dev", "help"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^  (\w+) ", usage, re.MULTILINE))


@pages_with("onnx")
def test_models(page):
    for _, text in filter(lambda block: block[0] == "onnx", blocks(page)):
        assert not [p for p in treadle.check(text.encode(), full=True) if p.severity == "error"]
        onnx.checker.check_model(onnx.load_from_string(treadle.parse_model(text)))


@pytest.mark.parametrize("language", HARNESSES)
def test_compiled(language, folder):
    names = ("cc", "clang-19") if language == "c" else ("c++", "clang++-19")
    compiler = next(filter(None, map(shutil.which, names)), None)
    if not compiler or not (LIB / "libtreadle.so").exists():
        pytest.skip("no compiler, or the library is not built")
    found = [text for page in PAGES for word, text in blocks(page) if word == language and not file_of(text)]
    assert found
    for text in found:
        source = folder / f"example.{language}"
        source.write_text(HARNESSES[language] % text)
        standard = "-std=c11" if language == "c" else "-std=c++20"
        command = [compiler, standard, "-Wall", "-Werror", f"-I{ROOT / 'include'}", source, f"-L{LIB}", "-ltreadle"]
        subprocess.run([*command, f"-Wl,-rpath,{LIB}", "-o", "example"], env=clean_environment(), check=True)
        done = subprocess.run(["./example"], env=clean_environment(), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

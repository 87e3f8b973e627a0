"""Models as C: compilers make vector instructions of the loops, and the code that picks vectors by processor has no warning."""

import pathlib
import re
import shutil
import subprocess
import sys

import pytest
import treadle

sys.path.append(str(pathlib.Path(__file__).parents[1] / "suites"))  # behind the module `models` of these tests
import compiled

COMPILERS = [name for name in ("gcc", "clang-19") if shutil.which(name)]
pytestmark = pytest.mark.skipif(not COMPILERS, reason="there is no C compiler")

HEAD = '<ir_version: 9, opset_import: ["" : 20]>'
CHAIN = f"""{HEAD} g (float[4,256] x, float[256] b) => (float[4,256] y) {{
  a = Mul (x, b)
  t = Tanh (a)
  y = Add (t, x) }}"""
PRODUCT = f"{HEAD} g (float[M,64] x, float[64,48] w) => (float[M,48] y) {{ y = MatMul (x, w) }}"
NUMBERS = ", ".join(f"{k % 13 / 32}" for k in range(128 * 32))
LSTM = f"""{HEAD} g (float[1,1,32] x, float[1,1,32] h, float[1,1,32] c)
  => (float[1,1,1,32] y, float[1,1,32] hn, float[1,1,32] cn) <float[1,128,32] w = {{{NUMBERS}}}> {{
  y, hn, cn = LSTM <hidden_size = 32> (x, w, w, , , h, c) }}"""
MODELS = {"chain": (CHAIN, {}), "product": (PRODUCT, {"M": 16}), "row": (PRODUCT, {"M": 1}), "lstm": (LSTM, {})}
# Between the sums of a step and its activations, products of floats and divisions are all that takes time.
WANTED = {"chain": ["mul", "add", "div"], "product": ["fmadd"], "row": ["fmadd"], "lstm": ["fmadd", "div"]}
PROCESSORS = ("x86-64", "haswell", "skylake-avx512")


def written(folder: pathlib.Path, name: str) -> pathlib.Path:
    text, dims = MODELS[name]
    source, header = treadle.InferenceSession(treadle.parse_model(text)).write_c(dims=dims)
    (folder / "model.h").write_text(header)
    (folder / "model.c").write_text(source)
    return folder / "model.c"


def assembly(source: pathlib.Path, compiler: str, *flags: str) -> str:
    command = [compiler, "-std=c11", "-ffp-contract=off", *compiled.WARNINGS, *flags, "-S", source, "-o", "-"]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return made.stdout


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("level", ["-O3", "-Os"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_arithmetic_is_of_vectors(compiler, level, name, tmp_path):
    code = assembly(written(tmp_path, name), compiler, level, "-march=haswell")
    # GCC looks for loops to make vectors of from -O2 on, but not where it saves space.
    only_products = compiler == "gcc" and level == "-Os"
    for operation in WANTED[name]:
        if only_products and operation != "fmadd":
            continue
        assert re.search(rf"\tv{operation}\w*ps\t.*%ymm", code), f"no vector instruction {operation}"


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_no_processor_has_warnings(compiler, processor, tmp_path):
    for name in MODELS:
        assembly(written(tmp_path, name), compiler, "-O2", f"-march={processor}")


def test_sums_stay_in_registers(tmp_path):
    """In the loop of a product, nothing is stored."""
    for compiler in COMPILERS:
        lines = assembly(written(tmp_path, "product"), compiler, "-O3", "-march=haswell").splitlines()
        products = [k for k, line in enumerate(lines) if re.search(r"\tvfmadd\w+ps\t.*%ymm", line)]
        assert products, "no products of vectors"
        # Of a tile of four rows and two vectors: neighbours without a label or a store between them.
        runs = [lines[k : k + 12] for k in products]
        longest = max(sum("vfmadd" in line for line in run) for run in runs)
        assert longest >= 6, compiler

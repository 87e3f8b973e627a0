"""The native tier beside other users of LLVM and of threads in one process: each has its own, and none sees the others'.

llvmlite and numba are installed if they are missing; torch (hundreds of megabytes) is used only if it is installed.
"""

import importlib.util
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest
import treadle

PRELUDE = """
import sys
sys.path += {folders!r}
import numpy as np, treadle

LOOP = '''<ir_version: 10, opset_import: ["" : 22]>
g (int64 iterations, float[8] x) => (float[8] y) {{
  yes = Constant <value = bool {{1}}> ()
  y = Loop <body = b (int64 i, bool go, float[8] s) => (bool continues, float[8] t) {{
    continues = Identity(go)
    third = Constant <value = float {{0.3}}> ()
    u = Mul(s, third)
    t = Tanh(u)
  }}> (iterations, yes, x)
}}'''
FEEDS = {{"iterations": np.int64(9), "x": np.linspace(-2, 2, 8, dtype=np.float32)}}

def loop(jit):
    options = treadle.SessionOptions()
    options.add_session_config_entry("treadle.jit", jit)
    options.add_session_config_entry("treadle.jit_cache", "off")
    session = treadle.InferenceSession(LOOP.encode(), options)
    y = session.run(None, FEEDS)[0]
    assert session.counters()["compilations"] == (jit == "always")
    return y

def check_ours():
    np.testing.assert_array_equal(loop("always"), loop("off"))
"""

THEIRS = {
    "llvmlite": """
        import llvmlite.binding as llvm
        for start in ("initialize", "initialize_native_target", "initialize_native_asmprinter"):
            try:
                getattr(llvm, start)()
            except RuntimeError:
                pass  # newer ones do this by themselves
        def check_theirs():
            module = llvm.parse_assembly("define i32 @twice(i32 %x) {\\n  %y = add i32 %x, %x\\n  ret i32 %y\\n}")
            machine = llvm.Target.from_default_triple().create_target_machine()
            engine = llvm.create_mcjit_compiler(module, machine)
            engine.finalize_object()
            import ctypes
            assert ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(engine.get_function_address("twice"))(21) == 42
    """,
    "numba": """
        import numba
        def check_theirs():
            @numba.njit
            def total(x):
                s = 0.0
                for i in range(x.shape[0]):
                    s += np.tanh(x[i])
                return s
            x = np.linspace(-1, 2, 1000)
            assert abs(total(x) - np.tanh(x).sum()) < 1e-9
    """,
    "torch": """
        import torch
        def check_theirs():
            unit = torch.jit.CompilationUnit(
                "def steps(x, n: int):\\n  for _ in range(n):\\n    x = torch.tanh(x * 0.3)\\n  return x\\n"
            )
            x = torch.linspace(-2, 2, 8)
            assert torch.allclose(unit.steps(x, 9), torch.tensor(loop("off").tolist()), atol=1e-5)
    """,
}


@pytest.fixture(scope="session")
def folders_of(installed):
    def folders(name: str) -> list[str]:
        if importlib.util.find_spec(name) is not None:
            return []
        if name == "torch":
            pytest.skip("torch is not installed")
        return [str(installed(name))]

    return folders


@pytest.mark.parametrize("order", ("ours first", "theirs first", "in turns"))
@pytest.mark.parametrize("name", THEIRS)
def test_in_one_process(folders_of, name, order):
    folders = [str(pathlib.Path(treadle.__file__).parent.parent), *folders_of(name)]
    checks = {
        "ours first": "check_ours()\n{theirs}\ncheck_theirs()\ncheck_ours()",
        "theirs first": "{theirs}\ncheck_theirs()\ncheck_ours()\ncheck_theirs()",
        "in turns": "{theirs}\nfor _ in range(3):\n    check_theirs()\n    check_ours()",
    }
    code = PRELUDE.format(folders=folders) + checks[order].format(theirs=textwrap.dedent(THEIRS[name]))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr

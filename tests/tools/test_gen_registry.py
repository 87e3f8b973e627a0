"""The generated table of operators."""

import os
import pathlib
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).parents[2] / "tools" / "gen_registry.py"


def generate(ops: pathlib.Path, out: pathlib.Path):
    command = [sys.executable, SCRIPT, "--ops", ops, "--out", out]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def folders(tmp_path):
    (tmp_path / "ops" / "math").mkdir(parents=True)
    return tmp_path / "ops", tmp_path / "generated" / "op_table.cc"


def test_lists_every_block_of_every_file_once(folders):
    ops, out = folders
    (ops / "math" / "add.cc").write_text('TREADLE_OP(Sub, "") {\n}\n\nTREADLE_OP(Add, "") {\n}\n')
    (ops / "scaler.cc").write_text('// TREADLE_OP(Comment, "")\nTREADLE_OP(Add, "ai.onnx.ml") {\n}\n')
    done = generate(ops, out)
    assert done.returncode == 0, done.stderr
    text = out.read_text()
    entries = [line.strip() for line in text.splitlines() if line.strip().startswith("&")]
    records = ['OpRecord<"Add", "">', 'OpRecord<"Add", "ai.onnx.ml">', 'OpRecord<"Sub", "">']
    assert entries == [f"&{record}::make," for record in records]
    for record in records:
        assert text.count(f"void {record}::define(OpBuilder&);") == 1
    assert "Comment" not in text


def test_no_operators_give_an_empty_table(folders):
    ops, out = folders
    assert generate(ops, out).returncode == 0
    assert "return {};" in out.read_text()


def test_an_unchanged_table_keeps_its_time(folders):
    ops, out = folders
    source = ops / "math" / "add.cc"
    source.write_text('TREADLE_OP(Add, "") {\n}\n')
    generate(ops, out)
    os.utime(out, ns=(1, 1))
    source.write_text('// a comment\nTREADLE_OP(Add, "") {\n}\n')
    generate(ops, out)
    assert out.stat().st_mtime_ns == 1
    source.write_text('TREADLE_OP(Add, "") {\n}\nTREADLE_OP(Mul, "") {\n}\n')
    generate(ops, out)
    assert out.stat().st_mtime_ns != 1


@pytest.mark.parametrize(
    "text, complaint",
    [
        ('TREADLE_OP(Add, "") {\n}\nTREADLE_OP(Add, "") {\n}\n', 'Add of domain "" is already defined in math/add.cc'),
        ("TREADLE_OP(Add, kDomain) {\n}\n", "expected TREADLE_OP(Name"),
        ('#define UNARY(name) TREADLE_OP(name, "")\n', "on a line of its own"),
    ],
)
def test_a_wrong_registration_is_an_error(folders, text, complaint):
    ops, out = folders
    (ops / "math" / "add.cc").write_text(text)
    done = generate(ops, out)
    assert done.returncode == 1
    assert complaint in done.stderr
    assert not out.exists()


PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(registry LANGUAGES CXX)
include("{registry}")
add_library(core OBJECT)
treadle_add_registry(core)
"""


def test_the_build_lists_operators_again_when_a_file_is_gone(tmp_path):
    ops = tmp_path / "src" / "ops"
    ops.mkdir(parents=True)
    (tmp_path / "src" / "op").mkdir()
    (tmp_path / "src" / "op" / "op_def.h").write_text("")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "gen_registry.py").symlink_to(SCRIPT)
    registry = SCRIPT.parents[1] / "cmake" / "Registry.cmake"
    (tmp_path / "CMakeLists.txt").write_text(PROJECT.format(registry=registry))
    (ops / "add.cc").write_text('TREADLE_OP(Add, "") {\n}\n')
    (ops / "sub.cc").write_text('TREADLE_OP(Sub, "") {\n}\n')
    build = tmp_path / "build"
    table = build / "generated" / "op_table.cc"

    def list_operators() -> str:
        subprocess.run(["ninja", "-C", build, table], check=True, capture_output=True)
        return table.read_text()

    subprocess.run(["cmake", "-G", "Ninja", "-S", tmp_path, "-B", build], check=True, capture_output=True)
    assert "Sub" in list_operators()
    (ops / "sub.cc").unlink()
    assert "Sub" not in list_operators()
    assert "Add" in table.read_text()

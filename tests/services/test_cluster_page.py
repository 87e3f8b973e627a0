"""docs/howto/cluster.md: its programs run one by one as they stand there, each in an environment that has its engine."""

import pathlib
import shutil
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from engines import RAY, ROOT, TABLES, interpreter, run  # noqa: E402
from pages import is_as_shown, programs  # noqa: E402

NEEDS = {
    "ray_job.py": RAY,
    "ray_resumable_job.py": RAY,
    "dask_job.py": TABLES,
    "spark_job.py": TABLES,
    "daft_job.py": TABLES,
}


PROGRAMS = programs("cluster.md")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """With the model, the table and the programs of the page."""
    made = tmp_path_factory.mktemp("cluster")
    for name in ("silero_vad.onnx", "recording.wav"):
        shutil.copy(ROOT / "examples" / "vad" / name, made)
    for name, (text, _) in PROGRAMS.items():
        (made / name).write_text(text, encoding="utf-8")
    run(interpreter(TABLES), "make_table.py", made)
    return made


def test_every_engine_has_its_program():
    assert set(PROGRAMS) - set(NEEDS) == {"make_table.py", "detector.py", "one_process.py"}


@pytest.mark.parametrize("name", ["one_process.py", *NEEDS])
def test_programs_of_the_page(name, folder):
    if name == "spark_job.py" and not shutil.which("java"):
        pytest.skip("Spark needs Java, which is not installed (openjdk-17-jre-headless)")
    printed = run(interpreter(NEEDS[name]) if name in NEEDS else sys.executable, name, folder)
    shown = PROGRAMS[name][1]
    assert shown is None or is_as_shown(printed, shown), f"the page shows\n{shown}\nbut it printed\n{printed}"
    if name == "ray_resumable_job.py":
        assert list((folder / "speech").glob("*.parquet"))

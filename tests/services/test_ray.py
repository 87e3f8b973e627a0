"""Ray Data carries predictors: two workers over Parquet, workers that die, rows that are unfit, a job that is resumed."""

import json
import pathlib
import shutil
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from engines import RAY, ROOT, interpreter, run  # noqa: E402

# Rows 0 to 127 in 8 files; row i has 1,000 + 37 * i samples of noise that `i` decides. Rows named in `bad` are nothing.
TABLE = """
import pathlib
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

pathlib.Path("table").mkdir()
def audio(i):
    if i in (5, 77):
        return None
    return np.random.default_rng(i).standard_normal(1000 + 37 * i).astype(np.float32) * 0.1
for part in range(8):
    ids = range(16 * part, 16 * part + 16)
    column = pa.array([audio(i) for i in ids], pa.list_(pa.float32()))
    pq.write_table(pa.table({"id": pa.array(ids), "audio": column}), f"table/{part}.parquet")
"""

JOB = """
import json
import os
import pathlib
import sys
import time

import numpy as np
import ray
import treadle
from ray.data.checkpoint import CheckpointConfig
from treadle.batch import Predictor

CASE, TURN = sys.argv[1:]
ROLES = {"time": {"input": 1}, "hop": 512, "context": 64, "bind": {"sr": 16000}}
VAD = {"model": os.path.abspath("silero_vad.onnx"), "inputs": {"input": "audio"}, "outputs": {"output": "speech"},
       "keep": ["id"], "on_error": "column", **ROLES}
FOLDER = pathlib.Path.cwd()


class Poisoned(Predictor):
    \"\"\"Ends its process at row 70, each time.\"\"\"

    def __call__(self, batch):
        if 70 in batch["id"]:
            with open(FOLDER / f"{CASE}-deaths", "a") as file:
                file.write("death\\n")
            os.kill(os.getpid(), 9)
        return super().__call__(batch)


class Spoiled(Predictor):
    \"\"\"Ends its process, or the job, at row 70, for the first time that it comes by; keeps a list of what it has done.\"\"\"

    def __call__(self, batch):
        mark = FOLDER / f"{CASE}-once"
        if 70 in batch["id"] and not mark.exists():
            mark.touch()
            if CASE == "killed":
                os.kill(os.getpid(), 9)
            # What other workers did has to be written before the job ends.
            until = time.monotonic() + 120
            while not list((FOLDER / "checkpoint").rglob("*.parquet")) and time.monotonic() < until:
                time.sleep(0.1)
            raise RuntimeError("the job ends here")
        with open(FOLDER / f"{CASE}-{TURN}-done", "a") as file:
            file.write("".join(f"{i}\\n" for i in batch["id"]))
        return super().__call__(batch)


ray.init(num_cpus=4, include_dashboard=False, logging_level="error", log_to_driver=False, object_store_memory=200 << 20)
context = ray.data.DataContext.get_current()
context.enable_progress_bars = False
context.use_datasource_v2 = False
if CASE == "resumed":
    context.checkpoint_config = CheckpointConfig(id_column="id", checkpoint_path=str(FOLDER / "checkpoint"))
BOUNDS = {
    "restarts": {"max_restarts": 2},
    "retries": {"max_restarts": 100, "max_task_retries": 2},
    "skipped": {"max_restarts": 100, "max_task_retries": 2},
}
kind = Predictor
if CASE != "plain":
    kind = ray.cloudpickle.loads(ray.cloudpickle.dumps(Poisoned if CASE in BOUNDS else Spoiled))
if CASE == "skipped":
    context.max_errored_blocks = 1
table = ray.data.read_parquet("table", override_num_blocks=8).map_batches(
    kind,
    fn_constructor_kwargs=VAD,
    batch_size=16,
    num_cpus=1,
    compute=ray.data.ActorPoolStrategy(size=2),
    **BOUNDS.get(CASE, {}),
)
if CASE in BOUNDS:
    try:
        print(len(table.take_all()), "rows")
    except Exception as e:
        print(type(e).__name__)
else:
    table.write_parquet(f"{CASE}-speech")
"""

# The results, beside each row's own stream.
CHECK = """
import sys

import numpy as np
import pyarrow.parquet as pq
import ray.data  # the types of its tensors
import treadle

found = pq.read_table(f"{sys.argv[1]}-speech")
column = found.column("speech").combine_chunks()
rows = dict(zip(found["id"].to_pylist(), column.to_numpy(zero_copy_only=False), strict=True))
errors = dict(zip(found["id"].to_pylist(), found["error"].to_pylist(), strict=True))
assert len(found) == len(rows) == 128, (len(found), len(rows))
session = treadle.InferenceSession("silero_vad.onnx")
given = pq.read_table("table").to_pydict()
for i, audio in zip(given["id"], given["audio"], strict=True):
    if audio is None:
        assert "found nothing" in errors[i], errors[i]
        continue
    assert errors[i] == ""
    stream = session.stream(time={"input": 1}, hop=512, context=64, bind={"sr": 16000})
    alone = np.concatenate([stream.push(np.float32(audio)[None]), stream.flush()])
    np.testing.assert_allclose(np.asarray(rows[i]).reshape(-1), alone.reshape(-1), atol=1e-4)
print("equal")
"""


@pytest.fixture(scope="module")
def python():
    return interpreter(RAY)


@pytest.fixture
def folder(tmp_path, python):
    for name, text in (("make_table.py", TABLE), ("job.py", JOB), ("check.py", CHECK)):
        (tmp_path / name).write_text(text)
    shutil.copy(ROOT / "examples" / "vad" / "silero_vad.onnx", tmp_path)
    run(python, "make_table.py", tmp_path)
    return tmp_path


def done(folder, case, turn):
    path = folder / f"{case}-{turn}-done"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def test_two_workers_and_rows_that_are_unfit(python, folder):
    run(python, "job.py", folder, "plain", "1")
    assert "equal" in run(python, "check.py", folder, "plain")


def test_a_worker_that_is_killed_loses_nothing(python, folder):
    run(python, "job.py", folder, "killed", "1")
    assert (folder / "killed-once").exists()
    assert "equal" in run(python, "check.py", folder, "killed")


@pytest.mark.parametrize(
    ("case", "printed"),
    [("restarts", "ActorDiedError"), ("retries", "ActorUnavailableError"), ("skipped", "112 rows")],
)
def test_a_row_that_kills_its_worker_each_time(case, printed, python, folder):
    assert printed in run(python, "job.py", folder, case, "1").splitlines()  # Ray prints lines of its own
    assert len((folder / f"{case}-deaths").read_text().split()) == 3


def test_a_restarted_job_runs_the_remaining_rows(python, folder):
    run(python, "job.py", folder, "resumed", "1", check=False)
    kept = json.dumps(sorted(path.name for path in (folder / "resumed-speech").glob("*.parquet")))
    assert (folder / "resumed-once").exists() and kept != "[]"
    run(python, "job.py", folder, "resumed", "2")
    first, second = done(folder, "resumed", 1), done(folder, "resumed", 2)
    assert len(second) == len(set(second)) < 128
    assert set(first) | set(second) == set(range(128))
    assert "equal" in run(python, "check.py", folder, "resumed")

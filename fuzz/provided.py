"""Random control-flow programs in onnxruntime with treadle as its execution provider, beside onnxruntime alone.

    provided.py [--count N] [--seed S] [--opset V ...] [--size K]

Every program (fuzz/programs.py) runs with each of the provider's ways to claim. Where onnxruntime alone gives results,
so does the session with the provider: those of onnxruntime alone, or those of treadle alone where the two disagree.
Programs run in a process of their own. Exit status 1 when some differ.
"""

from __future__ import annotations

import subprocess
import sys

import onnx
import onnxruntime
import onnxruntime_ep_treadle
from programs import attempt, difference, parser_of_programs, run_onnxruntime, run_tier
from random_programs.generator import make_program

NAME = onnxruntime_ep_treadle.get_ep_name()
CLAIMS = ("cost", "loops", "all")


def run_provided(data: bytes, feeds: list[dict], claim: str) -> list[list]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    providers = [(NAME, {"claim": claim}), "CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(data, options, providers=providers, enable_fallback=False)
    session.disable_fallback()
    return [session.run(None, feed) for feed in feeds]


def fault_of(model: onnx.ModelProto, feeds: list[dict], theirs: list | None) -> str:
    """What is wrong with a program, "" for nothing; "unjudged" where onnxruntime gives no results."""
    data = model.SerializeToString()
    if theirs is None:
        return "unjudged"
    ours, _ = attempt(lambda: run_tier(data, [*feeds, feeds[0]], "program"))
    for claim in CLAIMS:
        result, problem = attempt(lambda c=claim: run_provided(data, [*feeds, feeds[0]], c))
        if result is None:
            return f"claim = {claim}: {problem}"
        if found := differs_from_both(result, theirs, ours):
            return f"claim = {claim}: {found}"
    return ""


def differs_from_both(result: list[list], theirs: list[list], ours: list[list] | None) -> str:
    """Output by output, since treadle may have computed some of them and onnxruntime others."""
    for run, outputs in enumerate(result):
        for k, output in enumerate(outputs):
            found = difference(output, theirs[run][k], f"output[{run}][{k}]")
            if found and (ours is None or difference(output, ours[run][k])):
                return found
    return ""


def serve(opsets: list[int], size: int) -> None:
    """Answers each number of a program by two lines: that onnxruntime alone has run it, and what is wrong."""
    onnxruntime.register_execution_provider_library(NAME, onnxruntime_ep_treadle.get_library_path())
    for line in sys.stdin:
        seed = int(line)
        model, feeds = make_program(seed, opsets[seed % len(opsets)], size)
        theirs, _ = attempt(lambda m=model, f=feeds: run_onnxruntime(m.SerializeToString(), [*f, f[0]]))
        print("ran", flush=True)
        print(" ".join(fault_of(model, feeds, theirs).split()), flush=True)


class Runner:
    """A process that is started anew when a program ends it."""

    def __init__(self, arguments: list[str]) -> None:
        self.command = [sys.executable, __file__, "--serve", *arguments]
        self.process: subprocess.Popen | None = None

    def fault_of(self, seed: int) -> str:
        if self.process is None:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
        self.process.stdin.write(f"{seed}\n")
        self.process.stdin.flush()
        lines = [self.process.stdout.readline() for _ in range(2)]
        if lines[1]:
            return lines[1].strip()
        status, self.process = self.process.wait(), None
        return f"the process ended (status {status})" if lines[0] else "unjudged"  # onnxruntime alone ended it

    def close(self) -> None:
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()


def main() -> int:
    arguments = parser_of_programs(__doc__).parse_args()
    if arguments.serve:
        serve(arguments.opset, arguments.size)
        return 0
    counts = {"same": 0, "unjudged": 0, "DIFFERENT": 0}
    runner = Runner(["--opset", *map(str, arguments.opset), "--size", str(arguments.size)])
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        fault = runner.fault_of(seed)
        counts[fault if fault == "unjudged" else "DIFFERENT" if fault else "same"] += 1
        if fault and fault != "unjudged":
            print(f"seed {seed}: {fault}", flush=True)
    runner.close()
    print(", ".join(f"{name} {count}" for name, count in counts.items()))
    return 1 if counts["DIFFERENT"] else 0


if __name__ == "__main__":
    sys.exit(main())

"""The Python half of ./dev: one function per command."""

import argparse
import sys

import affected
import debs
import documenting
import fuzzing
import linting
import releasing
import testing
import training
import wheels
from building import build, build_example
from console import ROOT, Failure, run, say
from environment import PYTHON, ensure_venv


def command_setup(options) -> int:
    say("everything is installed")
    return 0


def command_run(options) -> int:
    script = ROOT / "examples" / "run.py"
    if not script.exists():
        say("./dev run: there is no examples/run.py in this checkout")
        return 1
    build_example()
    return run("examples/run.py", [PYTHON, script, *options.arguments], log="run", show=True, check=False)


def command_build(options) -> int:
    build("dev_build", options.preset, fast=options.fast)
    return 0


def command_bench(options) -> int:
    build("dev_build")
    script = "bench/bench_page.py" if "--page" in options.arguments else "bench/bench.py"
    return run(script, [PYTHON, ROOT / script, *options.arguments], log="bench", show=True, check=False)


ALL = """also longer random runs and published packages that call onnxruntime; every instruction set; debug (C++ tests,
tool); the address and undefined-behaviour sanitizers (C++ tests, tool, Python package); the thread sanitizer (C++ tests,
tool); g++ 12 as a compile check; the steps of docs/extending.md; models as C on other
platforms, by cross compilers and emulators. Some two hours on two cores"""


def parse_arguments():
    parser = argparse.ArgumentParser(prog="./dev")
    commands = parser.add_subparsers(dest="command", required=True)

    def add(name, function, text):
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(function=function)
        return command

    add("setup", command_setup, "install what every command needs")
    add("run", command_run, "run the example; further arguments go to examples/run.py")
    fast = "build kernels for this processor alone: some minutes less, and nothing for other machines"
    command = add("build", command_build, "build the library, the tool and the Python package")
    command.add_argument("--fast", action="store_true", help=fast)
    command.add_argument("--preset", default="release", help="a preset of CMakePresets.json (release)")
    command = add("test", testing.test, "run the tests; the last line says 'N passed, N failed, N skipped'")
    command.add_argument("--all", action="store_true", help=ALL)
    command.add_argument(
        "--only",
        nargs="+",
        choices=testing.CONFIGURATIONS,
        metavar="NAME",
        help=f"of --all only these: {', '.join(testing.CONFIGURATIONS)}",
    )
    command.add_argument("-k", "--match", metavar="TEXT", help="only C++ and Python tests whose name contains TEXT")
    add(
        "bench",
        command_bench,
        "measure beside onnxruntime and onnx: loops, rnn, models, pools, check; arguments go to bench/bench.py; --page: all that the pages show",
    )
    command = add("lint", linting.lint, "check format, includes, clang-tidy on what changed, Python")
    command.add_argument("--all", action="store_true", help="clang-tidy on every file, not only on what changed")
    command.add_argument(
        "--tidy-seconds", type=int, default=300, metavar="N", help="start no clang-tidy after N seconds (300)"
    )
    add("wheels", wheels.command_wheels, "make wheels of the Python package in build/wheels")
    add("debs", debs.command_debs, "make Debian packages in build/debs")
    add("release", releasing.release, "make one folder of all that is published, in build/release-folder")
    add(
        "docs",
        documenting.docs,
        "build the site of docs/ in build/docs/html; warnings and links that lead nowhere are errors",
    )
    add("affected", affected.affected, "make wheels and site where what has changed may break them")
    command = add(
        "train", training.train, "count branches anew for cmake/Profile.cmake, after changes to what it lists"
    )
    command.add_argument("names", nargs="*", metavar="NAME", help=f"of these: {', '.join(training.TRAININGS)} (all)")
    add("fmt", lambda options: linting.fmt(), "format C++ and Python")
    command = add(
        "fuzz",
        fuzzing.fuzz,
        "run libFuzzer targets of fuzz/: all, sharing SECONDS, or one; or a generator, arguments go to it",
    )
    command.add_argument("words", nargs="*", metavar="TARGET | SECONDS")
    options, rest = parser.parse_known_args()
    options.arguments = rest
    if options.arguments and options.command not in ("run", "bench", "fuzz"):
        parser.error(f"unrecognized arguments: {' '.join(options.arguments)}")
    return options


def main() -> int:
    options = parse_arguments()
    try:
        ensure_venv()
        return options.function(options)
    except Failure as failure:
        say(f"./dev {options.command}: {failure}: failed")
        return 1
    except KeyboardInterrupt:
        say(f"./dev {options.command}: interrupted")
        return 130


if __name__ == "__main__":
    sys.exit(main())

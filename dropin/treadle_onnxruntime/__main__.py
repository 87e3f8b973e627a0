"""The command: where the library is, and into which installed packages it is put."""

import argparse
import sys

from treadle_onnxruntime import get_library_path
from treadle_onnxruntime._packages import Library, Refused, libraries_of


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="treadle-onnxruntime",
        description="Puts treadle's libonnxruntime.so into installed packages that carry onnxruntime's. "
        "Without a command: prints where the library is.",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, text in (
        ("install", "put the library in the place of a package's own, which is kept beside it"),
        ("remove", "give a package its own library back"),
        ("status", "say whose library a package has"),
    ):
        command = commands.add_parser(name, help=text, description=text[0].upper() + text[1:])
        command.add_argument("packages", nargs="+", metavar="PACKAGE", help="as pip calls it, or the path of a library")
        command.add_argument("--path", action="append", metavar="FOLDER", help="where the packages are installed")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    if options.command is None:
        print(get_library_path())
        return 0
    action = {"install": Library.install, "remove": Library.remove, "status": Library.state}[options.command]
    status = 0
    for package in options.packages:
        try:
            for library in libraries_of(package, options.path):
                print(f"{library.path}: {action(library)}")
        except (Refused, OSError) as error:
            print(f"treadle-onnxruntime: {error}", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())

"""The files beside this one are imported by their plain names; `--update-expect` writes the sections that test_plans.py
compares.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))


def pytest_addoption(parser):
    parser.addoption(
        "--update-expect", action="store_true", help="write the 'expect' section of every case as it is now"
    )

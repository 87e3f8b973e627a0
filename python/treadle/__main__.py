"""The command-line tool as `python -m treadle`."""

from __future__ import annotations

import sys

from treadle_tool import main

if __name__ == "__main__":
    sys.exit(main())

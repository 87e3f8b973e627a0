"""An engine for run_cases.py: treadle's sessions under the options that TREADLE_SUITE_OPTIONS asks for ("tier=reference").

`threads` is the number of threads; every other name is a session option of treadle's.
"""

import os

import treadle


class InferenceSession(treadle.InferenceSession):
    def __init__(self, path):
        options = treadle.SessionOptions()
        for entry in os.environ["TREADLE_SUITE_OPTIONS"].split():
            name, value = entry.split("=")
            if name == "threads":
                options.intra_op_num_threads = int(value)
            else:
                options.add_session_config_entry(f"treadle.{name}", value)
        super().__init__(path, options)

"""Models over tables: a callable that Ray Data, Dask, Daft and Spark hand batches of rows to.

    from treadle.batch import Predictor
    predict = Predictor("vad.onnx", inputs={"input": "audio"}, outputs={"output": "speech"}, keep=["id"],
                        time={"input": 1}, hop=512, context=64, bind={"sr": 16000})
    table = predict({"id": ids, "audio": recordings})  # {"id": ..., "speech": ...}

The module needs numpy alone (docs/cluster.md).
"""

from __future__ import annotations

from ._arrow import ArrowFunction, arrow
from ._predictor import Predictor

__all__ = ["ArrowFunction", "Predictor", "arrow"]

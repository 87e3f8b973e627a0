"""Measures treadle beside onnxruntime in one process, one thread each, alternating: bench.py [loops] [rnn] [models]
[recurrent] [functions] [operators] [products] [products8] [convolutions] [networks] [pools] [check] [growth] [random]
[stops] [costs] [explain] [passes] [table] [provider] [searches] [engines] [gallery] [looking] [realtime] [jitter]
[compiled].

    loops      nanoseconds per iteration of both tiers, onnxruntime, jax where it is installed, and hand-written C++
    rnn        recurrent operators beside onnxruntime and the machine's roof
    recurrent  LSTM and GRU beside onnxruntime, over a grid of batches and widths
    functions  elementwise functions: time of an element, and errors
    operators  single operators of common sizes and types beside onnxruntime
    products   products of float32 matrices and transformers beside onnxruntime and the machine's roof, one thread and two
    products8  products and convolutions of bytes beside onnxruntime and the machine's roof
    convolutions  convolutions of floats beside onnxruntime and the machine's roof
    networks   convolutional networks of real sizes beside onnxruntime, one thread and two
    models     real models of SHARED/models (a folder beside the repository, or $TREADLE_SHARED), where it is there
    table      calls by the function table of libonnxruntime.so, treadle's and onnxruntime's own
    searches   searches for tokens over small decoders beside onnxruntime
    gallery    the models of docs/gallery.md beside onnxruntime
    engines    how many models each engine that is installed runs with the right results
    provider   treadle as an execution provider inside onnxruntime, beside onnxruntime alone
    pools      many streams at once, beside a batch made by hand for onnxruntime
    check      checking and inferring models, beside the onnx package
    growth     load and first run of models of many nodes, beside onnxruntime
    random     random operators beside onnxruntime
    costs      what the engine, kernels and operators take, beside the estimates in src/*/costs.h, and prices of
               convolutions; --write puts the measured values there
    explain    what `explain` estimates loops to take, beside what they take
    looking    planted faults and differences that must be found, models to reduce, what traces cost, and how fast reports open
    passes     what each rewrite of graphs changes, gains and costs, over all models at hand
    realtime   nanoseconds of a sample from C, in blocks of 1, 32 and 256, beside onnxruntime, RTNeural and NAM's core
    jitter     the latest of a million pushes, page faults and context switches, beside onnxruntime
    compiled   models as C by `treadle compile`: bytes, and time beside the engine, onnxruntime and emx-onnx-cgen
    stops      how late each operator hears that it should stop

docs/benchmarks.md tells what the figures mean.
"""

from __future__ import annotations

import argparse
import pathlib

import record
from bench_check import bench_check
from bench_compiled import bench_compiled
from bench_convolutions import bench_convolutions
from bench_costs import bench_costs
from bench_engines import bench_engines
from bench_explain import bench_explain
from bench_functions import bench_functions
from bench_gallery import bench_gallery
from bench_growth import bench_growth
from bench_looking import bench_looking
from bench_loops import bench_loops
from bench_networks import bench_networks
from bench_operators import bench_operators
from bench_passes import bench_passes
from bench_pools import bench_pools
from bench_products import bench_products
from bench_products8 import bench_products8
from bench_provider import bench_provider
from bench_random import bench_random
from bench_real import bench_real
from bench_realtime import bench_jitter, bench_realtime
from bench_recurrent import bench_recurrent
from bench_rnn import bench_rnn
from bench_searches import bench_searches
from bench_stops import bench_stops
from bench_table import bench_table


def main() -> None:
    kinds = {
        "loops": bench_loops,
        "rnn": bench_rnn,
        "recurrent": bench_recurrent,
        "functions": bench_functions,
        "operators": bench_operators,
        "products": bench_products,
        "products8": bench_products8,
        "convolutions": bench_convolutions,
        "networks": bench_networks,
        "models": bench_real,
        "pools": bench_pools,
        "check": bench_check,
        "growth": bench_growth,
        "looking": bench_looking,
        "random": bench_random,
        "stops": bench_stops,
        "costs": bench_costs,
        "explain": bench_explain,
        "passes": bench_passes,
        "table": bench_table,
        "searches": bench_searches,
        "provider": bench_provider,
        "engines": bench_engines,
        "gallery": bench_gallery,
        "realtime": bench_realtime,
        "jitter": bench_jitter,
        "compiled": bench_compiled,
    }
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", nargs="*", choices=[[], *kinds], default=list(kinds))
    parser.add_argument("--seconds", type=float, help="per measurement of an engine (loops, rnn: 0.005; else 0.5)")
    parser.add_argument("--rounds", type=int, default=9, help="how often the engines take turns at a loop")
    parser.add_argument(
        "--match",
        default="",
        metavar="TEXT",
        help="of loops, operators, costs, growing models, rewrites and parts of looking, those with TEXT in the name",
    )
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the figures there, too")
    parser.add_argument(
        "--write", action="store_true", help="costs: replace estimates that are far from what is measured, and prices"
    )
    parser.add_argument(
        "--times",
        type=pathlib.Path,
        metavar="FILE",
        help="costs: times of convolutions to fit prices to; written if there is no such file",
    )
    options = parser.parse_args()
    for kind in options.kind:
        kinds[kind](options)
    if options.json:
        record.write(options.json)


if __name__ == "__main__":
    main()

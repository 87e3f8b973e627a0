#pragma once
// Costs of the engine itself, apart from computing in kernels. Planning uses these estimates to decide which loops to
// compile, how often to poll and how large strips are; reports use the same estimates. What kernels and operators take
// per element stands in kernels/costs.h and ops/costs.h.
//
// Times are in nanoseconds on a machine of about 3 GHz. `bench/bench.py costs` measures the costs of the first two
// groups and prints them beside these constants. The comment of each constant names its row of that table, or another
// benchmark.

#include <cstddef>
#include <cstdint>

namespace treadle::costs {

// --- Interpreted

inline constexpr double kIterationNs = 8;         // of a loop's back edge ("iteration")
inline constexpr double kInstructionNs = 4;       // of an instruction ("group of operations")
inline constexpr double kOperationNs = 2;         // of each operation of a group ("operation of a group")
inline constexpr double kKernelNs = 20;           // of any other kernel, with what prepares its operands ("kernel")
inline constexpr double kChainIterationNs = 1.5;  // of a loop that is one instruction ("iteration of a chain")
inline constexpr double kChainOperationNs = 1.2;  // of each operation of such a loop ("operation of a chain")
inline constexpr double kDynamicNs = 200;         // of an instruction that looks at sizes first ("guarded kernel")
inline constexpr double kDynamicKernelNs = 45;    // the same where its kernel takes any sizes (bench.py loops, sizes)
// Per byte that a kernel without an estimate of its own reads or writes: in cache for planned sizes, out of cache for
// run-time sizes ("guarded kernel" with large operands).
inline constexpr double kPlannedByteNs = 0.03, kDynamicByteNs = 0.25;

// --- Native

inline constexpr double kNativeIterationNs = 0.3;  // of a back edge ("native iteration")
inline constexpr double kNativeCallNs = 4;         // of a kernel that native code calls ("native call")
// Work of native code on elements in registers other than arithmetic (reductions, small products, moves): per
// instruction, and per 64 bytes read or written. Arithmetic reaches a share of the machine's peak (`bench.py loops`,
// with jit = always).
inline constexpr double kNativeMoveNs = 1.5, kNativeMovedLineNs = 2;
inline constexpr double kReachedShare = 0.75;
// What native code saves in an interpreted loop ("saved by native code"): per back edge, per instruction that stays a
// call, per elementwise group, per kernel that is written out, and per inner loop that begins and ends. And per
// operation on an element: in short rows, which stay in registers, and in each pass over a long row.
inline constexpr double kSavedIterationNs = 4, kSavedInstructionNs = 2, kSavedGroupNs = 6, kSavedKernelNs = 16;
inline constexpr double kSavedProductNs = 40;    // in place of kSavedKernelNs for a row times a matrix
inline constexpr double kSavedPositionNs = 0.5;  // per element that is searched for the position of an extreme
inline constexpr double kTileStepNs = 8;         // per step of a group that runs tile by tile: a call (kernels/fused.h)
inline constexpr double kInnerLoopNs = 45, kSavedInnerLoopNs = 35;
inline constexpr double kSavedElementNs = 0.02, kSavedPassNs = 0.08;
// Of a whole iteration, native code saves at most the first share, and pays only above the second.
inline constexpr double kMostSaved = 0.8, kLeastSaved = 0.01;
// Time that LLVM takes: per loop, and per operation and vector of the loop. Above a number of operations, code uses
// narrower vectors (jit/code_shape.h) and takes no longer ("compiling").
inline constexpr double kCompileNs = 3e6, kCompileOperationNs = 60e3;
inline constexpr double kMostCompileNs = 12e6, kFreeOperations = 200;

// --- Products

// A product of one row with at most so many weights takes as long inside of a native loop as outside with its result
// handed in (`bench.py loops`, rows with a projection, with jit = always).
inline constexpr int64_t kFewWeights = 2048;
// With fewer rows, loading a product's weights into the cache takes longer than using them. The first is for a stage of
// a pipeline, which likely has its weights in cache; the second for a strip of a product in front of a loop (`bench.py
// rnn`, stacked layers and long sequences). The third is for such a strip with weights that take more than half of the
// second-level cache, and so do not stay there until the next strip (`bench.py recurrent`, H=512 and 1024).
inline constexpr int64_t kLeastStageRows = 12, kLeastStripRows = 64, kLeastFarStripRows = 256;
inline constexpr double kProductFlopsPerNs = 100;  // of a large product on one thread (treadle_bench, gemm)

// --- Images with their channels last (opt/channels_last.cc)

// Per element that a Transpose moves to or from the last axis (`bench.py networks`, `treadle profile` of its models).
inline constexpr double kTransposedElementNs = 0.35;

// --- Strips of iterations

// What runs before a loop is cut into strips only if it makes at least so many bytes for all iterations: less stays in
// cache anyway (`bench.py rnn`, long sequences).
inline constexpr size_t kLeastStripMinedBytes = size_t{1} << 20;
inline constexpr size_t kStripsInCache = 4;  // a strip takes this fraction of the second-level cache
// The length of a strip of a product that threads share, chosen long against the time to wake them (`bench.py rnn` with
// several threads).
inline constexpr double kSharedStripNs = 4e6;
inline constexpr size_t kMostSharedStripBytes = size_t{2} << 20;
// The least length of a strip in a stage of a pipeline, long against the time to hand over a stage (`bench.py rnn`,
// stacked layers).
inline constexpr double kLeastStageNs = 10e3;

}  // namespace treadle::costs

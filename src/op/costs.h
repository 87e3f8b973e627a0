#pragma once
// What the engine itself takes, beside what kernels compute: estimates for who plans (where is compiling worth it, how
// long may a run go without a look at its limits, how large are blocks) and for who explains. One home for all of them,
// so that plans and reports agree. What a kernel takes per element is said where the kernel is
// (PrepareContext::cost_ns, OpDef::work).
//
// Times are in nanoseconds on a machine of about 3 GHz. `bench/bench.py costs` measures those of the first two groups
// and prints them beside what stands here; the row of that table, or another benchmark, is named with each.

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
// Of a byte that a kernel without an estimate of its own reads or writes: in cache, where its sizes are planned; out of
// cache, where only the run knows them ("guarded kernel" with large operands).
inline constexpr double kPlannedByteNs = 0.03, kDynamicByteNs = 0.25;

// --- Native

inline constexpr double kNativeIterationNs = 0.3;  // of a back edge ("native iteration")
inline constexpr double kNativeCallNs = 4;         // of a kernel that native code calls ("native call")
// Of what native code does to elements in registers beside arithmetic (reductions, small products, moves): of each
// instruction, and of each 64 bytes that it reads or writes. Arithmetic reaches a share of what the machine can do
// (`bench.py loops`, with jit = always).
inline constexpr double kNativeMoveNs = 1.5, kNativeMovedLineNs = 2;
inline constexpr double kReachedShare = 0.75;
// What native code saves of an interpreted loop: at a back edge, at an instruction that stays a call, at an elementwise
// group, at a kernel that is written out, and where a loop inside begins and ends ("saved by native code"). Of each
// operation on an element: of short rows, which stay in registers, and of each pass over a long one.
inline constexpr double kSavedIterationNs = 4, kSavedInstructionNs = 2, kSavedGroupNs = 6, kSavedKernelNs = 16;
inline constexpr double kSavedProductNs = 40;    // instead, of a row times a matrix
inline constexpr double kSavedPositionNs = 0.5;  // of each element that a position of an extreme is looked for in
inline constexpr double kTileStepNs = 8;         // a step of a group that runs tile by tile: a call (kernels/fused.h)
inline constexpr double kInnerLoopNs = 45, kSavedInnerLoopNs = 35;
inline constexpr double kSavedElementNs = 0.02, kSavedPassNs = 0.08;
// Of a whole iteration: never more than a share, and a share that is worth it.
inline constexpr double kMostSaved = 0.8, kLeastSaved = 0.01;
// What LLVM takes: for a loop, and for each operation and vector of it; from some operations on, code gets less wide
// (jit/code_shape.h), so that it takes no longer ("compiling").
inline constexpr double kCompileNs = 3e6, kCompileOperationNs = 60e3;
inline constexpr double kMostCompileNs = 12e6, kFreeOperations = 200;

// --- Products

// Weights of a product of one row that takes as long inside of a loop, written out by native code, as outside with its
// result handed in (`bench.py loops`, rows with a projection, with jit = always).
inline constexpr int64_t kFewWeights = 2048;
// Rows below which bringing a product's weights into the cache takes longer than using them: of one stage of a
// pipeline, whose weights are likely there, and of a block of a product in front of a loop (`bench.py rnn`, stacked
// layers and long sequences); of such a block whose weights do not stay in the second-level cache from one block to the
// next, since they take more than half of it (`bench.py recurrent`, H=512 and 1024).
inline constexpr int64_t kLeastStageRows = 12, kLeastBlockRows = 64, kLeastFarBlockRows = 256;
inline constexpr double kProductFlopsPerNs = 100;  // of a large product on one thread (treadle_bench, gemm)

// --- Images with their channels last (opt/channels_last.cc)

// Of an element that a Transpose takes to the last axis, or back; of one that a convolution turns while it reads or
// stores, in cache; of one that a kernel of 1x1 packs; and, of a depthwise convolution's results, what lanes that hold
// positions cost more for each tap (`bench.py networks`, `treadle profile` of its models).
inline constexpr double kTransposedElementNs = 0.35, kTurnedElementNs = 0.15, kPackedElementNs = 0.08;
inline constexpr double kDepthwiseTapNs = 0.012;

// --- Blocks of iterations

// What is made for all iterations at once stays whole up to this: more than a cache gladly holds (`bench.py rnn`, long
// sequences).
inline constexpr size_t kLeastBlockedBytes = size_t{1} << 20;
inline constexpr size_t kBlocksInCache = 4;  // so many would fit the second-level cache
// Of a product that threads share: long beside what it takes to wake them (`bench.py rnn` with several threads).
inline constexpr double kSharedBlockNs = 4e6;
inline constexpr size_t kMostSharedBlockBytes = size_t{2} << 20;
// Of a stage of a pipeline: long beside taking and giving it back (`bench.py rnn`, stacked layers).
inline constexpr double kLeastStageNs = 10e3;

}  // namespace treadle::costs

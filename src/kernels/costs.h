#pragma once
// What kernels take, in nanoseconds per element, step or word on one thread. From these estimates it follows how work
// is shared among threads (base/thread_pool.h), how often a kernel asks whether to stop (base/stop.h), and what plans
// think that a node takes. An estimate that is too low makes stops come late; one that is too high cuts work into
// pieces that are too small to share.
//
// The comment of each constant is the name of its row in the table of `./dev bench costs`, which measures it. `./dev
// bench costs --write` replaces constants that are far from what it measured; bench/kernel_costs.py has the rows. The
// costs of operators stand in ops/costs.h, those of the engine in op/costs.h.
//
// Measured on Intel(R) Xeon(R) Processor, AVX2, AVX-512, VNNI.

namespace treadle::costs {

// --- Moving and converting elements

inline constexpr double kMovedElementNs = 0.69;     // "element of a short line, moved"
inline constexpr double kMovedByteNs = 0.083;       // "byte of a long line, moved"
inline constexpr double kPaddedElementNs = 0.56;    // "element of a border, repeated"
inline constexpr double kConvertedElementNs = 0.3;  // "element converted"
inline constexpr double kNumberedTextNs = 2;        // "text numbered"
inline constexpr double kTextNs = 80;               // "text made"

// --- Elementwise

inline constexpr double kElementwiseByteNs = 0.02;  // "byte of an operand of an elementwise node"
inline constexpr double kElementwiseNs = 0.055;     // "element of a sum, apart from bytes"
inline constexpr double kFunctionElementNs = 1;     // "element of a function, apart from bytes"
inline constexpr double kFusedElementNs = 0.076;    // "operation of a fused chain, on an element"

// --- Along an axis

inline constexpr double kReducedElementNs = 0.23;    // "element reduced"
inline constexpr double kScanStepNs = 0.67;          // "step of a running sum"
inline constexpr double kScanElementNs = 0.33;       // "element of a step of running sums"
inline constexpr double kExtremeElementNs = 0.2;     // "element searched for an extreme"
inline constexpr double kExtremeConvertedNs = 0.3;   // "element converted and searched for an extreme"
inline constexpr double kNormalizedElementNs = 0.5;  // "element normalised"
inline constexpr double kRecurrenceLaneNs = 0.5;     // "lane of a step of a linear recurrence"
inline constexpr double kComparisonNs = 8.1;         // "comparison of a sort"

// --- Windows

inline constexpr double kPoolTapNs = 0.069;     // "tap of a pool"
inline constexpr double kPoolIndexTapNs = 0.4;  // "tap of a pool with indices"

// --- Weights that are packed or analysed

inline constexpr double kByteRowElementNs = 0.086;  // "byte of a row of a product, widened"
inline constexpr double kBlockWordNs = 1.2;         // "word of block weights, packed"
inline constexpr double kFoldWeightNs = 14;         // "weight of a filter, read for folding"
inline constexpr double kFoldPairNs = 20;           // "pair of weights of a filter, compared"

}  // namespace treadle::costs

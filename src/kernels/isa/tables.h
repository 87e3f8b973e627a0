#pragma once
// The kernel table of one instruction set, and the functions with which each source of isa/ fills in its part.

#include "base/cpu.h"
#include "kernels/chain.h"
#include "kernels/isa/each.h"
#include "kernels/isa/reduce_table.h"
#include "kernels/table.h"

namespace treadle::kernels {

inline constexpr int kWidthCount = 5;  // 1, 2, 4, 8, 16 bytes

struct KernelTable {
  ElementwiseRows elementwise[kElementwiseOpCount][kComputeTypeCount];
  WhereRow where[kWidthCount];  // by log2 of the width

  ConvertRow load[kElementTypeCount];               // storage -> its compute type; null where they are the same
  ConvertRow store[kElementTypeCount];              // compute type -> storage; float8 saturates, float8e8m0 rounds up
  ConvertRow store_unsaturated[kElementTypeCount];  // float8 only
  ConvertRow store_e8m0[2][3];                      // [saturate][E8m0Rounding]
  ConvertRow cast[kComputeTypeCount][kComputeTypeCount];
  ConvertRow direct[kElementTypeCount][kElementTypeCount];  // conversions of several steps in one; most are null
  ConvertRow f64_to_f32_odd;  // rounds to odd, so that rounding again to a narrower float is correct
  ConvertRow complex64_to_128;
  ConvertRow complex128_to_64;

  ReduceTable reduce;
  const ChainTable* chain;
};

TREADLE_IN_EACH_ISA(const KernelTable& kernel_table();)

#ifdef TREADLE_ISA_NAMESPACE
namespace TREADLE_ISA_NAMESPACE {
void add_f32_rows(KernelTable& table);
void add_f64_rows(KernelTable& table);
void add_32_bit_rows(KernelTable& table);
void add_64_bit_rows(KernelTable& table);
void add_bool_rows(KernelTable& table);
void add_conversions(KernelTable& table);
void add_reductions(KernelTable& table);
const ChainTable& chain_table();
}  // namespace TREADLE_ISA_NAMESPACE
#endif

}  // namespace treadle::kernels

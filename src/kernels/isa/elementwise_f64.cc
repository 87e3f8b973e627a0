#include "kernels/isa/rows.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

void add_f64_rows(KernelTable& table) {
  add_elementwise_rows<double>(table, ComputeType::kF64);
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE

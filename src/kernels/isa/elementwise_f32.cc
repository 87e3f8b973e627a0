#include "kernels/isa/rows.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

void add_f32_rows(KernelTable& table) {
  add_elementwise_rows<float>(table, ComputeType::kF32);
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE

#include "kernels/isa/tables.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

void add_reductions(KernelTable&) {}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE

#include "kernels/gemm.h"

#include "base/knobs.h"
#include "kernels/isa/each.h"
#include "kernels/isa/entry.h"

namespace treadle::kernels {

std::vector<std::string_view> gemm_walks() {
  return TREADLE_OF_ISA(preferred_isa(), gemm_walks)();
}

std::string_view GemmWalkChoice::of_process() {
  static const char* const wanted = environment("TREADLE_GEMM");
  return wanted == nullptr ? "" : wanted;
}

GemmPlan prepare_gemm(ComputeType type, const GemmShape& shape) {
  return TREADLE_OF_ISA(preferred_isa(), prepare_gemm)(type, shape, ScopedGemmWalk::current());
}

}  // namespace treadle::kernels

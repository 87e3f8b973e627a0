#include "kernels/gemm.h"

#include "base/knobs.h"
#include "kernels/isa/each.h"
#include "kernels/isa/entry.h"

namespace treadle::kernels {

namespace {

thread_local std::string_view scoped_walk;

std::string_view wanted_walk() {
  static const char* const wanted = environment("TREADLE_GEMM");
  return !scoped_walk.empty() || wanted == nullptr ? scoped_walk : wanted;
}

}  // namespace

std::vector<std::string_view> gemm_walks() {
  return TREADLE_OF_ISA(preferred_isa(), gemm_walks)();
}

ScopedGemmWalk::ScopedGemmWalk(std::string_view name) : before_(scoped_walk) {
  scoped_walk = name;
}

ScopedGemmWalk::~ScopedGemmWalk() {
  scoped_walk = before_;
}

GemmPlan prepare_gemm(ComputeType type, const GemmShape& shape) {
  return TREADLE_OF_ISA(preferred_isa(), prepare_gemm)(type, shape, wanted_walk());
}

}  // namespace treadle::kernels

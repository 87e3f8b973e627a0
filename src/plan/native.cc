#include "plan/native.h"

namespace treadle::plan {

NativeRequest describe_loop(const Program& program, uint32_t index) {
  NativeRequest request;
  request.program = &program;
  request.loop = index;
  const Loop& loop = program.loops[index];
  for (uint32_t pc = loop.first + 1; pc < loop.last; ++pc) {
    if (auto code = dynamic_code(program, pc)) request.dynamic.emplace(pc, std::move(*code));
  }
  return request;
}

}  // namespace treadle::plan

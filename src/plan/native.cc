#include "plan/native.h"

#include <algorithm>
#include <cmath>

#include "op/costs.h"
#include "op/op_def.h"

namespace treadle::plan {

NativeGain expected_gain(const Program& program, uint32_t index) {
  constexpr double kVectorBytes = 64, kMostVectors = 10, kTileVectors = 4;  // written out; of longer ones, in a loop
  const Loop& loop = program.loops[index];
  NativeGain gain{costs::kCompileNs, static_cast<double>(loop.schedule.weight) * kPollUnitNs, 0};
  double all_operations = 0;
  for (uint32_t pc = loop.first; pc <= loop.last; ++pc) {
    double operations = 1, vectors = 1;
    gain.saved_ns += costs::kSavedInstructionNs;
    const ir::Node* node = program.node_of[pc];
    const bool computes = program.code[pc].code == OpCode::kKernel && node && !node->outputs.empty();
    if (computes && nodes_of(program, pc).size() > 1) node = nodes_of(program, pc)[0];  // a reduction may be the last
    if (computes && node->outputs[0] && node->op->elementwise) {
      operations = static_cast<double>(nodes_of(program, pc).size());
      const auto count = static_cast<double>(element_count_unchecked(known_dims(node->outputs[0]->type.shape)));
      gain.saved_ns += costs::kSavedGroupNs + costs::kSavedElementNs * count * operations;
      const auto width = static_cast<double>(byte_width(node->outputs[0]->type.element));
      vectors = std::max(1.0, std::ceil(count * width / kVectorBytes));
      if (vectors > kMostVectors) vectors = kTileVectors;
    }
    all_operations += operations;
    gain.compile_ns += costs::kCompileOperationNs * operations * vectors;
  }
  const double most =
      costs::kMostCompileNs + costs::kCompileOperationNs * std::max(0.0, all_operations - costs::kFreeOperations);
  gain.compile_ns = std::min(gain.compile_ns, most);
  gain.saved_ns = std::min(gain.saved_ns, costs::kMostSaved * gain.trip_ns);
  return gain;
}

std::optional<NativeRequest> describe_loop(const Program& program, uint32_t index, std::string& why) {
  const Loop& loop = program.loops[index];
  if (!loop.step.simple) {
    why = "a state, scan input or scan output has a size that is known only at run time";
    return std::nullopt;
  }
  NativeRequest request;
  request.program = &program;
  request.loop = index;
  return request;
}

}  // namespace treadle::plan

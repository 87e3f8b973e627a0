// Inserts the pipelines into a complete program.

#include "plan/pipelines.h"
#include "plan/planner.h"
#include "plan/roles.h"

namespace treadle::plan {

void Planner::add_pipelines() {
  p_.pipelines = find_pipelines(p_);
  fresh_.resize(p_.slots.size());
  for (uint32_t i = 0; i < p_.pipelines.size(); ++i) {
    Pipeline& pipeline = p_.pipelines[i];
    insert_code(OpCode::kPipeline, pipeline.first, i, true);
    insert_code(OpCode::kPipelineEnd, pipeline.last + 1, i, false);
    pipeline.first -= 1;
    pipeline.last += 1;
    p_.code[pipeline.first].target = pipeline.last;
  }
}

void Planner::insert_code(OpCode code, uint32_t at, uint32_t index, bool takes_jumps) {
  const auto offset = static_cast<std::ptrdiff_t>(at);
  Instruction made;
  made.code = code;
  made.index = index;
  p_.code.insert(p_.code.begin() + offset, made);
  p_.node_of.insert(p_.node_of.begin() + offset, nullptr);
  for (Instruction& in : p_.code) in.target += in.target > at || (in.target == at && !takes_jumps);
  for_each_position(p_, [at](uint32_t& place) { place += place >= at; });
}

}  // namespace treadle::plan

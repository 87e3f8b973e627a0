// Waves into the code, once all instructions are there.

#include "plan/planner.h"
#include "plan/waves.h"

namespace treadle::plan {

void Planner::add_waves() {
  p_.waves = find_waves(p_, operands_);
  fresh_.resize(p_.slots.size());
  for (uint32_t i = 0; i < p_.waves.size(); ++i) {
    Wave& wave = p_.waves[i];
    insert_code(OpCode::kWave, wave.first, i, true);
    insert_code(OpCode::kWaveEnd, wave.last + 1, i, false);
    wave.first -= 1;
    wave.last += 1;
    p_.code[wave.first].target = wave.last;
  }
}

void Planner::insert_code(OpCode code, uint32_t at, uint32_t index, bool takes_jumps) {
  const auto offset = static_cast<std::ptrdiff_t>(at);
  Instruction made;
  made.code = code;
  made.index = index;
  p_.code.insert(p_.code.begin() + offset, made);
  operands_.emplace(operands_.begin() + offset);
  p_.node_of.insert(p_.node_of.begin() + offset, nullptr);
  const auto moved = [&](uint32_t& place) { place += place >= at; };
  for (Instruction& in : p_.code) in.target += in.target > at || (in.target == at && !takes_jumps);
  for (Loop& loop : p_.loops) moved(loop.first), moved(loop.last);
  for (auto& [place, group] : groups_) moved(place);
  std::map<uint32_t, FusedNodes> fused;
  for (auto& [place, nodes] : p_.fused) fused.emplace(place + (place >= at), std::move(nodes));
  p_.fused = std::move(fused);
  for (Wave& wave : p_.waves) {
    moved(wave.first), moved(wave.last);
    for (uint32_t& place : wave.before) moved(place);
    for (uint32_t& place : wave.after) moved(place);
    for (WaveStage& stage : wave.stages) {
      for (RowKernel& kernel : stage.kernels) moved(kernel.at);
    }
  }
}

}  // namespace treadle::plan

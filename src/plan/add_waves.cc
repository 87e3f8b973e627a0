// Waves into the code, once all instructions are there.

#include "plan/planner.h"
#include "plan/roles.h"
#include "plan/waves.h"

namespace treadle::plan {

void Planner::add_waves() {
  p_.waves = find_waves(p_);
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
  p_.node_of.insert(p_.node_of.begin() + offset, nullptr);
  for (Instruction& in : p_.code) in.target += in.target > at || (in.target == at && !takes_jumps);
  for_each_position(p_, [at](uint32_t& place) { place += place >= at; });
}

}  // namespace treadle::plan

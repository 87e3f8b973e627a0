// Completes fused groups once every operand has its slot: a group becomes a chain or a kernel over tiles.

#include <algorithm>
#include <cstring>

#include "op/parallel.h"
#include "plan/planner.h"
#include "plan/reduced_group.h"
#include "type/make_tensor.h"

namespace treadle::plan {

void Planner::finish_groups() {
  find_padded();
  for (auto& [index, group] : groups_) {
    KernelCall& call = p_.kernels[index];
    if (!group.reductions.empty()) {
      finish_reduced(call, group);
    } else if (!finish_chain(call, group)) {
      finish_tiles(call, group);
    }
  }
  // The two pieces of memory of a state are swapped, so both need the larger size.
  for (const Loop& loop : p_.loops) {
    for (const LoopState& state : loop.states) {
      if (!state.planned) continue;
      size_t& in = p_.slots[state.in].bytes;
      size_t& out = p_.slots[state.out].bytes;
      in = out = std::max(in, out);
    }
  }
}

void Planner::find_padded() {
  padded_.resize(p_.slots.size());
  auto pad = [&](uint32_t s) { padded_[s] = p_.slots[s].storage == Storage::kArena; };
  for (const Loop& loop : p_.loops) {
    for (const LoopState& state : loop.states) {
      if (!state.planned) continue;
      late_.insert(state.in);
      pad(state.in);
    }
  }
  for (const auto& [index, group] : groups_) {
    if (!group.builder.chain_shape() || !group.reductions.empty()) continue;
    for (size_t i = 0; i < group.outputs.size(); ++i) pad(p_.kernels[index].operands[group.inputs.size() + i]);
  }
}

bool Planner::finish_chain(KernelCall& call, const FusedGroup& group) {
  std::vector<kernels::FusedBuilder::Bound> bound;
  std::vector<const ir::Value*> values = group.inputs;
  values.insert(values.end(), group.outputs.begin(), group.outputs.end());
  for (size_t i = 0; i < values.size(); ++i) {
    const uint32_t s = call.operands[i];
    bound.push_back({values[i]->is_constant() ? values[i]->constant.raw() : nullptr, padded_[s], late_.contains(s)});
  }
  std::optional<kernels::FusedChain> made = group.builder.chain(bound);
  if (!made) return false;
  for (size_t i = 0; i < values.size(); ++i) {
    size_t& bytes = p_.slots[call.operands[i]].bytes;
    if (bound[i].padded) bytes = std::max(bytes, made->padded_bytes(values[i]->type.element));
  }
  for (const auto& extra : made->extras) call.operands.push_back(new_extra(extra));
  for (kernels::ChainStep& step : made->steps) {
    for (uint32_t& place : step.in) place = call.operands[place];
    step.out = call.operands[step.out];
  }
  const auto* chain = p_.states.make<kernels::FusedChain>(std::move(*made));
  call.kernel = {chain->run, chain->steps.data(), nullptr, {}};
  call.chain = chain->steps.data();
  return true;
}

uint32_t Planner::new_extra(const kernels::FusedChain::Extra& extra) {
  if (extra.contents.empty()) return new_scratch(extra.bytes);
  const uint32_t s = new_slot(Storage::kConstant, {});
  Tensor contents = make_tensor(ElementType::kUint8, {static_cast<int64_t>(extra.contents.size())});
  std::memcpy(contents.mutable_raw(), extra.contents.data(), extra.contents.size());
  p_.slots[s].constant = std::move(contents);
  return s;
}

void Planner::finish_tiles(KernelCall& call, FusedGroup& group) {
  const auto* plan = p_.states.make<kernels::FusedPlan>(group.builder.finish());
  call.operands.push_back(
      new_scratch(plan->scratch_bytes() * scratch_parts(plan->tile_count(), plan->tile_ns(), p_.threads)));
  call.kernel = {run_fused, plan, nullptr, {}};
}

void Planner::finish_reduced(KernelCall& call, FusedGroup& group) {
  const auto* made = p_.states.make<ReducedGroup>(make_reduced_group(group));
  call.operands.push_back(
      new_scratch(made->scratch_bytes() * scratch_parts(made->strips(), made->strip_ns(), p_.threads)));
  call.kernel = {run_reduced_group, made, nullptr, {}};
}

}  // namespace treadle::plan

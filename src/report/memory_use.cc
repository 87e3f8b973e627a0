#include "report/memory_use.h"

#include <algorithm>
#include <tuple>

#include "base/json.h"
#include "op/loop_view.h"
#include "plan/roles.h"

namespace treadle::report {

namespace {

using plan::Program;
using plan::Slot;
using plan::SlotUse;
using plan::Storage;

constexpr size_t kMostSteps = 1000, kMostHolders = 5;
constexpr size_t kMostNamed = 100;  // of the values that are live at the peak

class Looker {
 public:
  explicit Looker(const run::Profile::Run& run) : run_(run), p_(*run.program) {}

  MemoryUse look() {
    MemoryUse use;
    use.arena_bytes = p_.arena_bytes;
    const std::vector<size_t> planned = planned_bytes();
    uint32_t peak = 0;
    size_t most = 0;
    std::vector<MemoryStep> steps;
    for (uint32_t pc = 0; pc < p_.code.size(); ++pc) {
      if (run_.sums[pc].count == 0 || p_.code[pc].code == plan::OpCode::kEnd) continue;
      const size_t held = planned[pc] + run_.sums[pc].held;
      if (steps.empty() || held > most) {
        most = held;
        peak = pc;
        use.peak = steps.size();
      }
      const ir::Node* const node = p_.node_of[pc];
      steps.push_back({.node = node ? std::string(node->name) : "",
                       .op = node ? plan::op_names(p_, pc) : "",
                       .planned = planned[pc],
                       .held = run_.sums[pc].held});
    }
    thin(steps, use);
    use.holders = holders_at(peak);
    return use;
  }

 private:
  bool has_place(const Slot& slot) const { return slot.storage == Storage::kArena && slot.first != UINT32_MAX; }

  std::vector<size_t> planned_bytes() const {
    std::vector<size_t> begun(p_.code.size() + 1), ended(p_.code.size() + 1), bytes(p_.code.size());
    for (const Slot& slot : p_.slots) {
      if (!has_place(slot)) continue;
      begun[slot.first] += slot.bytes;
      ended[slot.last + 1] += slot.bytes;
    }
    size_t now = 0;
    for (size_t pc = 0; pc < bytes.size(); ++pc) {
      now = now + begun[pc] - ended[pc];
      bytes[pc] = now;
    }
    return bytes;
  }

  // Keeps, of each stretch of steps, the one that holds most.
  static void thin(std::vector<MemoryStep>& steps, MemoryUse& use) {
    const size_t stretch = (steps.size() + kMostSteps - 1) / kMostSteps;
    const auto holds = [](const MemoryStep& a, const MemoryStep& b) { return a.planned + a.held < b.planned + b.held; };
    for (size_t begin = 0; begin < steps.size(); begin += stretch) {
      const auto first = steps.begin() + static_cast<std::ptrdiff_t>(begin);
      const auto last = steps.begin() + static_cast<std::ptrdiff_t>(std::min(begin + stretch, steps.size()));
      use.steps.push_back(std::move(*std::max_element(first, last, holds)));
    }
    if (stretch > 0) use.peak /= stretch;
  }

  std::vector<HeldValue> holders_at(uint32_t pc) const {
    std::vector<std::pair<size_t, uint32_t>> live;  // bytes, slot
    size_t unnamed = run_.sums.empty() ? 0 : run_.sums[pc].held;
    for (uint32_t s = 0; s < p_.slots.size(); ++s) {
      const Slot& slot = p_.slots[s];
      const bool is_here = slot.first <= pc && pc <= slot.last;
      const size_t bytes = has_place(slot) ? slot.bytes : slot.storage == Storage::kHandle ? run_.value_bytes[s] : 0;
      if (!is_here || bytes == 0) continue;
      live.emplace_back(bytes, s);
      if (!has_place(slot)) unnamed -= std::min(unnamed, bytes);
    }
    std::ranges::sort(live, [](const auto& a, const auto& b) { return a.first > b.first; });
    live.resize(std::min(live.size(), kMostNamed));
    std::vector<HeldValue> holders;
    for (const auto& [bytes, s] : live) add(holders, bytes, s);
    if (unnamed > 0) {
      holders.push_back(
          {.name = "", .what = "scratch and spare memory", .node = "", .bytes = unnamed, .planned = false});
    }
    std::ranges::sort(holders, [](const HeldValue& a, const HeldValue& b) {
      return std::tie(b.bytes, a.node, a.name) < std::tie(a.bytes, b.node, b.name);
    });
    holders.resize(std::min(holders.size(), kMostHolders));
    return holders;
  }

  // Memory without a name counts together, node by node.
  void add(std::vector<HeldValue>& holders, size_t bytes, uint32_t slot) const {
    HeldValue value = named(slot);
    value.bytes = bytes;
    value.planned = has_place(p_.slots[slot]);
    const auto same = std::ranges::find_if(holders, [&](const HeldValue& other) {
      return value.name.empty() && other.name.empty() && other.what == value.what && other.node == value.node;
    });
    if (same == holders.end()) {
      holders.push_back(std::move(value));
    } else {
      same->bytes += bytes;
    }
  }

  // Names a slot by the first instruction that writes it, or that uses it as memory of its own.
  HeldValue named(uint32_t slot) const {
    if (const plan::RowKernel* const rows = rows_of(slot)) {
      const ir::Node& node = *p_.node_of[rows->at];
      const bool is_result = rows->operands[rows->operand_count - 2].slot == slot;
      return {.name = is_result ? std::string(node.outputs[0]->name.view()) : "",
              .what = is_result ? "output" : "scratch",
              .node = std::string(node.name)};
    }
    HeldValue found;
    for (uint32_t pc = p_.slots[slot].first; pc < p_.code.size() && found.what.empty(); ++pc) {
      plan::for_each_slot(p_, pc, [&](const SlotUse& use) {
        const bool reads = use.role == plan::Role::kReads || use.role == plan::Role::kReadsValue;
        if (use.slot == slot && !reads && found.what.empty()) found = named(pc, use);
      });
    }
    return found;
  }

  // The kernel that makes rows in this slot for strips of iterations, or uses it as scratch for them; null: none.
  const plan::RowKernel* rows_of(uint32_t slot) const {
    const plan::RowKernel* found = nullptr;
    const auto look = [&](const std::vector<plan::RowKernel>& kernels) {
      for (const plan::RowKernel& rows : kernels) {
        const auto operands = std::span(rows.operands).first(rows.operand_count);
        for (const auto& operand : operands.last(2)) {
          if (operand.slot == slot) found = &rows;
        }
      }
    };
    for (const plan::Loop& loop : p_.loops) look(loop.schedule.strips.kernels);
    for (const plan::Pipeline& pipeline : p_.pipelines) {
      for (const plan::PipelineStage& stage : pipeline.stages) look(stage.kernels);
    }
    return found;
  }

  HeldValue named(uint32_t pc, const SlotUse& use) const {
    HeldValue value{.name = "", .what = use.name, .node = ""};
    if (plan::info(p_.code[pc].code).index == plan::IndexOf::kLoop) {
      const ir::Node& node = *p_.loops[p_.code[pc].index].node;
      value.node = node.name;
      const ir::Value* const part = part_of(LoopView(node), use);
      if (part) value.name = part->name.view();
      return value;
    }
    const auto nodes = plan::nodes_of(p_, pc);
    if (nodes.empty()) return value;
    value.node = nodes.back()->name;
    const auto& outputs = nodes.back()->outputs;
    if (value.what == "output" && use.number < outputs.size() && outputs[use.number]) {
      value.name = outputs[use.number]->name.view();
    }
    return value;
  }

  static const ir::Value* part_of(const LoopView& view, const SlotUse& use) {
    const std::string_view what = use.name;
    if (what == "state") return view.state(use.number).before;
    if (what == "next state") return view.state(use.number).after;
    if (what == "final state") return view.state(use.number).final;
    if (what == "scan output") return view.scan_output(use.number).whole;
    return nullptr;
  }

  const run::Profile::Run& run_;
  const Program& p_;
};

}  // namespace

MemoryUse memory_use_of(const run::Profile::Run& run) {
  return Looker(run).look();
}

std::string to_json(const MemoryUse& use) {
  std::vector<std::string> steps, holders;
  for (const MemoryStep& step : use.steps) {
    steps.push_back(JsonObject()
                        .text("node", step.node)
                        .text("op", step.op)
                        .integer("planned", step.planned)
                        .integer("held", step.held)
                        .str());
  }
  for (const HeldValue& value : use.holders) {
    holders.push_back(JsonObject()
                          .text("name", value.name)
                          .text("what", value.what)
                          .text("node", value.node)
                          .integer("bytes", value.bytes)
                          .boolean("planned", value.planned)
                          .str());
  }
  return JsonObject()
      .integer("arena_bytes", use.arena_bytes)
      .raw("steps", json_array(steps))
      .integer("peak", use.peak)
      .raw("holders", json_array(holders))
      .str();
}

}  // namespace treadle::report

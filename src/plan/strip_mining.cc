// Walks from each loop backwards, over code that runs whenever the loop does. A kernel joins if only the loop's scan
// inputs, and kernels that have joined, read its result, row by row.
#include "plan/strip_mining.h"

#include <algorithm>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "base/caches.h"
#include "op/costs.h"
#include "op/effects.h"
#include "op/op_def.h"
#include "plan/roles.h"
#include "plan/row_kernels.h"

namespace treadle::plan {

namespace {

constexpr int64_t kLeastStrips = 2;  // one strip is the whole

class StripMiner {
 public:
  explicit StripMiner(Program& program) : p_(program), targets_(branch_targets(program)) {
    for (const Pipeline& pipeline : p_.pipelines) {
      for (const PipelineStage& stage : pipeline.stages) in_pipeline_.insert(stage.loop);
    }
    count_uses();
    find_makers();
    find_stretches();
  }

  void run() {
    for (uint32_t i = 0; i < p_.loops.size(); ++i) {
      if (fits(p_.loops[i]) && !in_pipeline_.contains(i)) cut(i);
    }
  }

 private:
  bool fits(const Loop& loop) const {
    if (!loop.is_scan || !loop.step.simple || loop.in_loop || loop.step.grows || loop.continues != kNoSlot)
      return false;
    const bool reverse = !loop.scan_inputs.empty() && loop.scan_inputs[0].reverse;
    const bool is_one_way = std::all_of(loop.scan_inputs.begin(), loop.scan_inputs.end(),
                                        [&](const ScanInput& s) { return s.reverse == reverse; });
    return loop.known_iterations > 1 && is_one_way && !(reverse && loop.masked);
  }

  void count_uses() {
    uses_.resize(p_.slots.size());
    for (uint32_t at = 0; at < p_.code.size(); ++at) {
      for_each_slot(p_, at, [this](const SlotUse& use) { ++uses_[use.slot]; });
    }
    for (const Output& output : p_.outputs) ++uses_[output.slot];
  }

  void find_makers() {
    made_at_.resize(p_.slots.size());
    for (uint32_t at = 0; at < p_.code.size(); ++at) {
      const KernelCall* call = kernel_of(p_, at);
      const ir::Node* node = p_.node_of[at];
      if (!call || !node || !call->group.empty() || call->operands.size() <= node->inputs.size()) continue;
      const uint32_t result = call->operands[node->inputs.size()];
      if (result != kNoSlot) made_at_[result].push_back(at);
    }
  }

  // Finds stretches of straight code, whole loops included, within which an instruction may be moved behind the others.
  void find_stretches() {
    stretch_.resize(p_.code.size());
    around_.resize(p_.code.size());
    std::vector<uint32_t> open{PipelineStage::kNoLoop};
    for (uint32_t at = 0; at < p_.code.size(); ++at) {
      around_[at] = open.back();
      const Instruction& in = p_.code[at];
      if (at == 0 || targets_.contains(at)) {
        stretch_[at] = at;
      } else if (const Instruction& before = p_.code[at - 1]; before.code == OpCode::kLoopEnd) {
        stretch_[at] = stretch_[p_.loops[before.index].first];
      } else {
        stretch_[at] = passes(before.code) ? stretch_[at - 1] : at;
      }
      if (in.code == OpCode::kLoopBegin) open.push_back(in.index);
      if (in.code == OpCode::kLoopEnd) open.pop_back();
    }
  }

  void cut(uint32_t index) {
    Loop& loop = p_.loops[index];
    std::unordered_map<uint32_t, size_t> known;  // slot -> its uses row by row, writes included
    for (size_t i = loop.masked ? 1 : 0; i < loop.scan_inputs.size(); ++i) ++known[loop.scan_inputs[i].whole];
    std::priority_queue<uint32_t> makers;  // makers of known slots, the last instruction first
    const auto add_makers = [&](uint32_t slot, uint32_t before) {
      for (const uint32_t at : made_at_[slot]) {
        if (at >= stretch_[loop.first] && at < before && around_[at] == around_[loop.first]) makers.push(at);
      }
    };
    for (const auto& [slot, count] : known) add_makers(slot, loop.first);
    std::vector<RowKernel> kernels;
    while (!makers.empty()) {
      const uint32_t at = makers.top();
      while (!makers.empty() && makers.top() == at) makers.pop();
      const auto rows = joining(at, loop.known_iterations, known);
      if (!rows) continue;
      kernels.push_back(*rows);
      for (size_t i = 0; i + 1 < rows->operand_count; ++i) {
        if (rows->operands[i].row_bytes > 0) add_makers(rows->operands[i].slot, at);
      }
    }
    std::reverse(kernels.begin(), kernels.end());
    if (!kernels.empty()) put(index, std::move(kernels));
  }

  // Whether the instruction does nothing but its own work, so that a kernel before it may run behind it.
  static bool passes(OpCode code) {
    const auto& [name, index, flow] = info(code);
    return flow == Flow::kNext && (index != IndexOf::kLoopOf || code == OpCode::kInStrips) &&
           index != IndexOf::kPipelineOf;
  }

  std::optional<RowKernel> joining(uint32_t at, int64_t iterations, std::unordered_map<uint32_t, size_t>& known) const {
    if (p_.code[at].code != OpCode::kKernel || !p_.node_of[at] || can_fail(*p_.node_of[at])) return {};
    auto rows = rows_of_iterations(p_, at, iterations);
    if (!rows) return {};
    const size_t inputs = rows->operand_count - 1u;
    const uint32_t result = rows->operands[inputs].slot;
    const auto read = known.find(result);
    if (read == known.end() || p_.slots[result].storage != Storage::kArena || read->second + 1 != uses_[result]) {
      return {};
    }
    for (size_t i = 0; i < inputs; ++i) {
      if (rows->operands[i].row_bytes > 0) ++known[rows->operands[i].slot];
    }
    return rows;
  }

  void put(uint32_t index, std::vector<RowKernel> kernels) {
    Loop& loop = p_.loops[index];
    size_t row_bytes = 0;  // of all results, for one iteration
    size_t weight_bytes = 0;
    int64_t rows = INT64_MAX;
    for (const RowKernel& kernel : kernels) {
      row_bytes += kernel.operands[kernel.operand_count - 1].row_bytes;
      weight_bytes += bytes_of_weights(kernel);
      rows = std::min(rows, p_.node_of[kernel.at]->outputs[0]->type.shape[0].value() / loop.known_iterations);
    }
    if (rows == 0) return;  // an empty batch
    const size_t cache = caches().second;
    const int64_t least_rows = weight_bytes > cache / 2 ? costs::kLeastFarStripRows : costs::kLeastStripRows;
    const int64_t least = (least_rows + rows - 1) / rows;
    const size_t strip_bytes = cache / costs::kStripsInCache;
    int64_t iterations = std::max(static_cast<int64_t>(strip_bytes / std::max<size_t>(row_bytes, 1)), least);
    if (p_.threads > 1) iterations = std::max(iterations, shared_iterations(kernels, loop.known_iterations, row_bytes));
    const bool is_large =
        row_bytes > 0 && static_cast<size_t>(loop.known_iterations) >= costs::kLeastStripMinedBytes / row_bytes;
    if (!is_large || loop.known_iterations < kLeastStrips * iterations) return;
    const int64_t rest = (loop.known_iterations - 1) % iterations + 1;
    for (RowKernel& kernel : kernels) {
      if (!prepare_rows(p_, kernel, loop.known_iterations, iterations, rest, p_.threads)) return;
    }
    for (const RowKernel& kernel : kernels) take(kernel, index, iterations);
    shrink(kernels);
    loop.schedule.strips = {iterations, std::move(kernels), {}};
    for (uint32_t i = 0; i < loop.scan_inputs.size(); ++i) {
      if (shrunk_.contains(loop.scan_inputs[i].whole)) loop.schedule.strips.inputs.push_back(i);
    }
  }

  // Bytes of the operands that all iterations of a kernel read.
  size_t bytes_of_weights(const RowKernel& kernel) const {
    const ir::Node& node = *p_.node_of[kernel.at];
    size_t bytes = 0;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ir::Value* input = node.inputs[i];
      if (!input || kernel.operands[i].row_bytes > 0) continue;
      bytes += static_cast<size_t>(known_element_count(input->type.shape)) * byte_width(input->type.element);
    }
    return bytes;
  }

  // Iterations of a strip that gives all threads enough work; 0 if it would be too large for the cache.
  int64_t shared_iterations(const std::vector<RowKernel>& kernels, int64_t all_iterations, size_t row_bytes) const {
    double flops = 0;  // operations of an iteration's products
    for (const RowKernel& kernel : kernels) {
      const ir::Node& node = *p_.node_of[kernel.at];
      if (node.op->elementwise) continue;
      const auto made = known_element_count(node.outputs[0]->type.shape);
      const Shape& rows = node.inputs[0]->type.shape;
      flops += 2.0 * static_cast<double>(made / all_iterations) * static_cast<double>(rows[rows.size() - 1].value());
    }
    const double iterations = costs::kSharedStripNs * costs::kProductFlopsPerNs / std::max(flops, 1.0);
    return iterations * static_cast<double>(row_bytes) <= static_cast<double>(costs::kMostSharedStripBytes)
               ? static_cast<int64_t>(iterations)
               : 0;
  }

  // Takes over the instruction, and shrinks its result's memory to a strip.
  void take(const RowKernel& kernel, uint32_t index, int64_t iterations) {
    Instruction& in = p_.code[kernel.at];
    in.code = OpCode::kInStrips;
    in.index = index;
    const auto& [s, row_bytes] = kernel.operands[p_.node_of[kernel.at]->inputs.size()];
    Slot& slot = p_.slots[s];
    slot.bytes = static_cast<size_t>(iterations) * row_bytes;
    slot.type.shape[0] = slot.type.shape[0].value() / p_.loops[index].known_iterations * iterations;
    shrunk_.insert(s);
  }

  void shrink(std::vector<RowKernel>& kernels) const {
    for (RowKernel& kernel : kernels) {
      for (RowKernel::Operand& operand : kernel.operands) {
        if (shrunk_.contains(operand.slot)) operand.row_bytes = 0;
      }
    }
  }

  Program& p_;
  const std::unordered_set<uint32_t> targets_;
  std::unordered_set<uint32_t> in_pipeline_;    // loops
  std::vector<size_t> uses_;                    // by slot; writes count
  std::vector<std::vector<uint32_t>> made_at_;  // by slot: the kernels that write it
  std::vector<uint32_t> stretch_;               // by instruction: the first one of its straight code
  std::vector<uint32_t> around_;                // by instruction: the innermost loop around it
  std::unordered_set<uint32_t> shrunk_;         // slots with memory for a strip
};

}  // namespace

void strip_mine(Program& program) {
  if (!program.loops.empty()) StripMiner(program).run();
}

}  // namespace treadle::plan

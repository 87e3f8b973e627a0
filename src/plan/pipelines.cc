// A straight stretch of code is split into items (an instruction, or a loop with its body). Loops become stages, and so
// do kernels that can compute their rows strip by strip. Items that need no stage run before the stages, the others
// behind them. A stretch ends before a loop that needs an item behind the stages. A kernel that only one stage reads
// joins that stage, so that a strip's projection is in the cache of the core that needs it.
#include "plan/pipelines.h"

#include <algorithm>
#include <bit>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/thread_pool.h"
#include "op/costs.h"
#include "plan/roles.h"
#include "plan/row_kernels.h"

namespace treadle::plan {

namespace {

constexpr size_t kMostStages = 64;  // the bits of the masks in is_parallel
// Limit of the memory that a pipeline keeps at once, where a program without the pipeline would reuse memory.
constexpr size_t kMostBytes = size_t{64} << 20;
// The last stage begins when the first one has done a strip. Of two equal stages each then waits a tenth of its time.
constexpr int64_t kWantedStrips = 10;

struct Item {
  enum class Kind : uint8_t { kLoop, kRows, kOther };
  struct Use {
    uint32_t slot = kNoSlot;
    bool by_rows = false;  // reads or writes the rows of an iteration in that iteration's strip
  };
  Kind kind = Kind::kOther;
  uint32_t first = 0, last = 0;  // instructions
  uint32_t loop = PipelineStage::kNoLoop;
  std::vector<Use> reads, writes;
  RowKernel rows;
};

Item item_of(uint32_t at) {
  Item item;
  item.first = item.last = at;
  return item;
}

class PipelineFinder {
 public:
  explicit PipelineFinder(Program& program) : p_(program), targets_(branch_targets(program)) {}

  std::vector<Pipeline> find() {
    for (uint32_t at = 0; at < p_.code.size();) {
      if (targets_.contains(at)) end_stretch();
      if (!take(at)) end_stretch();
      at = p_.code[at].code == OpCode::kLoopBegin ? p_.loops[p_.code[at].index].last + 1 : at + 1;
    }
    end_stretch();
    return std::move(pipelines_);
  }

 private:
  // --- items

  // Adds the instruction as an item; false if a pipeline must not contain it.
  bool take(uint32_t at) {
    switch (p_.code[at].code) {
      case OpCode::kPoll:
        return true;
      case OpCode::kLoopBegin:
        return take_loop(p_.code[at].index);
      case OpCode::kKernel:
      case OpCode::kCopy:
      case OpCode::kRow:
        items_.push_back(item_at(at));
        return true;
      default:
        return false;
    }
  }

  bool take_loop(uint32_t index) {
    const Loop& loop = p_.loops[index];
    if (!fits(loop)) return false;
    expect_iterations(loop.known_iterations);
    const bool reverse = is_reverse(loop);
    Item item = item_of(loop.first);
    item.last = loop.last;
    item.kind = Item::Kind::kLoop;
    item.loop = index;
    for_each_slot(loop, [&](const SlotUse& use) {
      const bool is_mask = loop.masked && use.number == 0;  // searched for the last iteration before the loop begins
      if (use.role == Role::kReadsRows) item.reads.push_back({use.slot, !reverse && !is_mask});
      if (use.role == Role::kWritesRows) item.writes.push_back({use.slot, !reverse});
      if (use.role == Role::kReads && use.when == When::kBegin) item.reads.push_back({use.slot});
      if (use.when == When::kEnd && use.slot != kNoSlot) item.writes.push_back({use.slot});
    });
    for (uint32_t at = loop.first + 1; at + 1 < loop.last; ++at) {
      for_each_slot(p_, at, [&](const SlotUse& use) { item.reads.push_back({use.slot}); });
    }
    items_.push_back(std::move(item));
    return true;
  }

  static bool is_reverse(const Loop& loop) { return !loop.scan_inputs.empty() && loop.scan_inputs[0].reverse; }

  // Whether it is a loop of a known number of iterations over planned memory, whose body is a few kernels.
  bool fits(const Loop& loop) const {
    if (!loop.is_scan || !loop.step.straight || loop.step.grows || loop.known_iterations < 2 ||
        loop.continues != kNoSlot)
      return false;
    const bool reverse = is_reverse(loop);
    const bool inputs = std::all_of(loop.scan_inputs.begin(), loop.scan_inputs.end(), [&](const ScanInput& s) {
      return s.reverse == reverse && p_.slots[s.whole].storage != Storage::kHandle;
    });
    const bool outputs = std::all_of(loop.scan_outputs.begin(), loop.scan_outputs.end(),
                                     [&](const ScanOutput& s) { return s.reverse == reverse && s.whole_planned; });
    if (!inputs || !outputs) return false;
    for (uint32_t at = loop.first + 1; at + 1 < loop.last; ++at) {
      if (is_random(at)) return false;
    }
    return true;
  }

  bool is_random(uint32_t at) const { return p_.node_of[at] && p_.node_of[at]->op->effects == Effects::kRandom; }

  // Whether the item's kernel can run strip by strip; then sets its rows.
  bool find_rows(Item& item) const {
    auto rows = rows_of_iterations(p_, item.first, iterations_);
    if (!rows) return false;
    item.rows = *rows;
    item.reads.clear();
    const size_t inputs = item.rows.operand_count - 1u;
    for (size_t i = 0; i < inputs; ++i) {
      const RowKernel::Operand& in = item.rows.operands[i];
      if (in.slot != kNoSlot) item.reads.push_back({in.slot, in.row_bytes > 0});
    }
    item.writes = {{item.rows.operands[inputs].slot, true}};
    return true;
  }

  Item item_at(uint32_t at) const {
    Item item = item_of(at);
    for_each_slot(p_, at, [&](const SlotUse& use) {
      const bool is_read = use.role == Role::kReads || use.role == Role::kReadsRows;
      if (use.slot != kNoSlot) (is_read ? item.reads : item.writes).push_back({use.slot});
    });
    return item;
  }

  // --- a stretch

  // Begins a new stretch if the number of iterations differs. Loops of one pipeline have the same number, but earlier
  // items may become a pipeline.
  void expect_iterations(int64_t iterations) {
    if (iterations_ == iterations) return;
    while (cut_pipeline()) {
    }
    iterations_ = iterations;
  }

  void end_stretch() {
    while (cut_pipeline()) {
    }
    items_.clear();
    iterations_ = 0;
  }

  // Turns the items up to the last loop that fits into one pipeline, and keeps the rest. False if there is no loop.
  bool cut_pipeline() {
    if (iterations_ == 0) return false;
    Parts parts = sort_items();
    const size_t end = parts.end;
    if (end > 0) make_pipeline(parts);
    items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(end));
    for (Item& item : items_) {
      if (item.kind == Item::Kind::kRows) item = item_at(item.first);
    }
    return end > 0 && !items_.empty();
  }

  enum class Part : uint8_t { kBefore, kStage, kAfter };
  struct Parts {
    std::vector<Part> of;                       // by item
    std::unordered_map<uint32_t, size_t> made;  // slot -> the item that writes it
    size_t end = 0;                             // behind the last loop
  };

  Parts sort_items() {
    Parts parts;
    const size_t count = items_.size();
    parts.of.assign(count, Part::kStage);
    const auto writer = [&](const Item::Use& use) {
      const auto it = parts.made.find(use.slot);
      return it == parts.made.end() ? count : it->second;
    };
    std::vector<bool> needs_loop(count), early(count), late(count);
    for (size_t i = 0; i < count; ++i) {
      Item& item = items_[i];
      if (item.kind == Item::Kind::kOther && find_rows(item)) item.kind = Item::Kind::kRows;
      for (const Item::Use& use : item.reads) {
        const size_t from = writer(use);
        if (from < i) needs_loop[i] = needs_loop[i] || needs_loop[from] || items_[from].kind == Item::Kind::kLoop;
      }
      for (const Item::Use& use : item.writes) parts.made.emplace(use.slot, i);
    }
    // Items that are not cut into rows and wait for no loop run first, with all items that lead to them.
    for (size_t i = count; i-- > 0;) {
      if (items_[i].kind == Item::Kind::kOther && !needs_loop[i]) early[i] = true;
      if (!early[i]) continue;
      for (const Item::Use& use : items_[i].reads) {
        if (writer(use) < i) early[writer(use)] = true;
      }
    }
    for (size_t i = 0; i < count; ++i) {
      const Item& item = items_[i];
      for (const Item::Use& use : item.reads) late[i] = late[i] || (writer(use) < i && late[writer(use)]);
      if (item.kind == Item::Kind::kLoop) {
        if (late[i]) break;
        parts.end = i + 1;
      } else if (early[i]) {
        parts.of[i] = Part::kBefore;
      } else if (late[i] || item.kind == Item::Kind::kOther) {
        late[i] = true;
        parts.of[i] = Part::kAfter;
      }
    }
    return parts;
  }

  // A value that an item of a stage passes to another.
  struct Edge {
    size_t to;
    bool all;  // not row by row
  };

  void make_pipeline(Parts& parts) {
    const size_t end = parts.end;
    std::vector<std::vector<Edge>> users(end);
    for (size_t i = 0; i < end; ++i) {
      if (parts.of[i] != Part::kStage) continue;
      for (const Item::Use& use : items_[i].reads) {
        const auto made = parts.made.find(use.slot);
        if (made == parts.made.end() || made->second >= i || parts.of[made->second] != Part::kStage) continue;
        users[made->second].push_back({i, !(use.by_rows && writes_by_rows(made->second, use.slot))});
      }
    }
    // Each stage is numbered by its last item. Items that no loop needs run behind the stages.
    std::vector<size_t> stage_of(end);
    for (size_t i = end; i-- > 0;) {
      stage_of[i] = i;
      std::erase_if(users[i], [&](const Edge& edge) { return parts.of[edge.to] != Part::kStage; });
      if (parts.of[i] != Part::kStage || items_[i].kind == Item::Kind::kLoop) continue;
      if (users[i].empty()) {
        parts.of[i] = Part::kAfter;
        continue;
      }
      const size_t stage = stage_of[users[i][0].to];
      const bool joins = std::all_of(users[i].begin(), users[i].end(),
                                     [&](const Edge& edge) { return !edge.all && stage_of[edge.to] == stage; });
      if (joins) stage_of[i] = stage;
    }
    Pipeline pipeline;
    pipeline.iterations = iterations_;
    std::unordered_map<size_t, uint32_t> number;
    for (size_t i = 0; i < end; ++i) {
      if (parts.of[i] != Part::kStage || stage_of[i] != i) continue;
      number[i] = static_cast<uint32_t>(pipeline.stages.size());
      pipeline.stages.emplace_back().loop = items_[i].loop;
    }
    const auto begin =
        static_cast<size_t>(std::find(parts.of.begin(), parts.of.end(), Part::kStage) - parts.of.begin());
    for (size_t i = begin; i < end; ++i) {
      if (parts.of[i] == Part::kBefore) pipeline.before.push_back(items_[i].first);
      if (parts.of[i] == Part::kAfter) pipeline.after.push_back(items_[i].first);
      if (parts.of[i] != Part::kStage) continue;
      const uint32_t stage = number.at(stage_of[i]);
      if (items_[i].kind == Item::Kind::kRows) pipeline.stages[stage].kernels.push_back(items_[i].rows);
      for (const Edge& edge : users[i]) {
        const uint32_t user = number.at(stage_of[edge.to]);
        if (user != stage) pipeline.stages[user].needs.push_back({stage, edge.all});
      }
    }
    pipeline.first = items_[begin].first;
    pipeline.last = items_[end - 1].last;
    if (is_parallel(pipeline) && choose_strip(pipeline) && fits_memory(begin, end) && prepare_kernels(pipeline)) {
      pipelines_.push_back(std::move(pipeline));
    }
  }

  bool writes_by_rows(size_t item, uint32_t slot) const {
    const auto& writes = items_[item].writes;
    return std::any_of(writes.begin(), writes.end(), [&](const Item::Use& w) { return w.slot == slot && w.by_rows; });
  }

  // Whether two of its loops can run at the same time.
  static bool is_parallel(const Pipeline& pipeline) {
    const size_t count = pipeline.stages.size();
    if (count < 2 || count > kMostStages) return false;
    std::vector<uint64_t> needed(count),
        finished(count);  // stages that it needs; stages that finish before it begins
    uint64_t loops = 0;
    for (size_t s = 0; s < count; ++s) {
      for (const PipelineStage::Need& need : pipeline.stages[s].needs) {
        needed[s] |= needed[need.stage] | uint64_t{1} << need.stage;
        finished[s] |= need.all ? needed[need.stage] | uint64_t{1} << need.stage : finished[need.stage];
      }
      if (pipeline.stages[s].loop == PipelineStage::kNoLoop) continue;
      if (loops & ~finished[s]) return true;
      loops |= uint64_t{1} << s;
    }
    return false;
  }

  bool choose_strip(Pipeline& pipeline) const {
    double iteration_ns = 0, most_ns = 0;
    int64_t least_rows = INT64_MAX;
    for (const PipelineStage& stage : pipeline.stages) {
      for (const RowKernel& kernel : stage.kernels) {
        const int64_t rows = p_.node_of[kernel.at]->outputs[0]->type.shape[0].value() / iterations_;
        least_rows = std::min(least_rows, rows);
      }
      if (stage.loop == PipelineStage::kNoLoop) continue;
      const double ns = static_cast<double>(p_.loops[stage.loop].schedule.weight) * kPollUnitNs;
      iteration_ns += ns;
      most_ns = std::max(most_ns, ns);
    }
    if (iteration_ns * static_cast<double>(iterations_) < 2 * kMinThreadNs) return false;
    const auto up = [](double x) { return static_cast<int64_t>(x) + 1; };
    int64_t strip = std::max((iterations_ + kWantedStrips - 1) / kWantedStrips, up(costs::kLeastStageNs / most_ns));
    if (least_rows != INT64_MAX)
      strip = std::max(strip, (costs::kLeastStageRows + least_rows - 1) / std::max<int64_t>(least_rows, 1));
    // A run checks between strips whether to stop.
    strip = std::min(strip, up(kStopCheckNs / most_ns));
    pipeline.strip = strip;
    return strip < iterations_;
  }

  // Every value that is written in a pipeline keeps its memory to the end of the pipeline.
  bool fits_memory(size_t begin, size_t end) const {
    std::set<uint32_t> slots;
    for (size_t i = begin; i < end; ++i) {
      for (const Item::Use& use : items_[i].writes) slots.insert(use.slot);
      for (uint32_t at = items_[i].first; at <= items_[i].last; ++at) {
        for_each_slot(p_, at, [&](const SlotUse& use) { slots.insert(use.slot); });
      }
    }
    size_t bytes = 0;
    for (const uint32_t s : slots) bytes += p_.slots[s].storage == Storage::kArena ? p_.slots[s].bytes : 0;
    return bytes <= kMostBytes;
  }

  bool prepare_kernels(Pipeline& pipeline) {
    const int64_t rest = iterations_ - (pipeline.strips() - 1) * pipeline.strip;
    for (PipelineStage& stage : pipeline.stages) {
      for (RowKernel& rows : stage.kernels) {
        if (!prepare_rows(p_, rows, iterations_, pipeline.strip, rest, 1)) return false;
      }
    }
    return true;
  }

  Program& p_;
  const std::unordered_set<uint32_t> targets_;
  std::vector<Item> items_;  // items of the stretch
  int64_t iterations_ = 0;   // iterations of its loops; 0: no loop yet
  std::vector<Pipeline> pipelines_;
};

}  // namespace

std::vector<Pipeline> find_pipelines(Program& program) {
  // Most programs have fewer than two loops.
  if (program.loops.size() < 2) return {};
  return PipelineFinder(program).find();
}

}  // namespace treadle::plan

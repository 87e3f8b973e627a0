// Straight stretches of code are taken item by item (an instruction, or a loop with its body) and sorted: loops and
// kernels whose rows can be had one block at a time become stages; of the rest, what needs nothing of a stage runs
// before them, the others behind. A stretch ends where a loop needs one of the latter. Kernels that serve one stage
// alone join it, so that a block's projection is in the cache of the core that needs it.
#include "plan/waves.h"

#include <algorithm>
#include <bit>
#include <set>
#include <unordered_map>

#include "base/thread_pool.h"
#include "plan/row_kernels.h"

namespace treadle::plan {

namespace {

constexpr size_t kMostStages = 64;
// What a wave keeps in memory at once, where a program without would use memory again.
constexpr size_t kMostBytes = size_t{64} << 20;
constexpr int64_t kWantedBlocks = 10;
// Of a product: below this many, bringing its weights into cache takes longer than using them.
constexpr int64_t kLeastRows = 12;
constexpr double kLeastBlockNs = 10'000;

struct Item {
  enum class Kind : uint8_t { kLoop, kRows, kOther };
  struct Use {
    uint32_t slot = kNoSlot;
    bool by_rows = false;  // rows of a trip in the block of that trip
  };
  Kind kind = Kind::kOther;
  uint32_t first = 0, last = 0;  // instructions
  uint32_t loop = WaveStage::kNoLoop;
  std::vector<Use> reads, writes;
  RowKernel rows;
};

Item item_of(uint32_t at) {
  Item item;
  item.first = item.last = at;
  return item;
}

class WaveFinder {
 public:
  WaveFinder(Program& program, const std::vector<std::vector<uint32_t>>& operands) : p_(program), operands_(operands) {
    for (const Instruction& in : p_.code) {
      if (in.code == OpCode::kJump || in.code == OpCode::kBranchUnless) targets_.insert(in.target);
    }
  }

  std::vector<Wave> find() {
    for (uint32_t at = 0; at < p_.code.size();) {
      if (targets_.contains(at)) end_stretch();
      if (!take(at)) end_stretch();
      at = p_.code[at].code == OpCode::kLoopBegin ? p_.loops[p_.code[at].index].last + 1 : at + 1;
    }
    end_stretch();
    return std::move(waves_);
  }

 private:
  // --- items

  // False: nothing of a wave may stand here.
  bool take(uint32_t at) {
    const Instruction& in = p_.code[at];
    switch (in.code) {
      case OpCode::kPoll:
        return true;
      case OpCode::kLoopBegin:
        if (!take_loop(in.index)) return false;
        return true;
      case OpCode::kKernel:
        items_.push_back(kernel_item(at));
        return true;
      case OpCode::kCopy: {
        Item item = item_of(at);
        item.reads.push_back({p_.copies[in.index].from});
        item.writes.push_back({p_.copies[in.index].to});
        items_.push_back(std::move(item));
        return true;
      }
      case OpCode::kRow: {
        Item item = item_of(at);
        item.reads = {{p_.rows[in.index].from}, {p_.rows[in.index].index}};
        item.writes.push_back({p_.rows[in.index].to});
        items_.push_back(std::move(item));
        return true;
      }
      default:
        return false;
    }
  }

  bool take_loop(uint32_t index) {
    const Loop& loop = p_.loops[index];
    if (!fits(loop)) return false;
    expect_trips(loop.known_trips);
    const bool reverse = is_reverse(loop);
    Item item = item_of(loop.first);
    item.last = loop.last;
    item.kind = Item::Kind::kLoop;
    item.loop = index;
    for (const LoopState& state : loop.states) {
      item.reads.push_back({state.initial});
      if (state.final != kNoSlot) item.writes.push_back({state.final});
    }
    for (size_t i = 0; i < loop.scan_inputs.size(); ++i) {
      const bool is_mask = loop.masked && i == 0;  // looked through for the last trip
      item.reads.push_back({loop.scan_inputs[i].whole, !reverse && !is_mask});
    }
    for (const ScanOutput& scan : loop.scan_outputs) item.writes.push_back({scan.whole, !reverse});
    for (uint32_t at = loop.first + 1; at + 1 < loop.last; ++at) {
      for (const uint32_t s : operands_[at]) item.reads.push_back({s});
      if (p_.code[at].code == OpCode::kCopy) item.reads.push_back({p_.copies[p_.code[at].index].from});
    }
    items_.push_back(std::move(item));
    return true;
  }

  static bool is_reverse(const Loop& loop) { return !loop.scan_inputs.empty() && loop.scan_inputs[0].reverse; }

  // Loops of a known number of trips over planned memory, whose bodies are a few kernels.
  bool fits(const Loop& loop) const {
    if (!loop.is_scan || !loop.simple || loop.grows || loop.known_trips < 2 || loop.go_on != kNoSlot) return false;
    const bool reverse = is_reverse(loop);
    const bool inputs = std::all_of(loop.scan_inputs.begin(), loop.scan_inputs.end(), [&](const ScanInput& s) {
      return s.reverse == reverse && p_.slots[s.whole].storage != Storage::kHandle;
    });
    const bool outputs = std::all_of(loop.scan_outputs.begin(), loop.scan_outputs.end(),
                                     [&](const ScanOutput& s) { return s.reverse == reverse && s.whole_planned; });
    if (!inputs || !outputs) return false;
    for (uint32_t at = loop.first + 1; at + 1 < loop.last; ++at) {
      const bool plain = p_.code[at].code == OpCode::kKernel || p_.code[at].code == OpCode::kCopy;
      if (!plain || is_random(at)) return false;
    }
    return true;
  }

  bool is_random(uint32_t at) const { return p_.node_of[at] && p_.node_of[at]->op->effects == Effects::kRandom; }

  // Whether an item's kernel can be had by blocks of trips; then it is known by its rows.
  bool find_rows(Item& item) const {
    auto rows = rows_of_trips(p_, operands_, item.first, trips_);
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

  Item kernel_item(uint32_t at) {
    Item item = item_of(at);
    const auto fused = p_.fused.find(at);
    const ir::Node& node = *p_.node_of[at];
    const size_t inputs = fused != p_.fused.end() ? fused->second.inputs.size() : node.inputs.size();
    for (size_t i = 0; i < operands_[at].size(); ++i) {
      if (operands_[at][i] != kNoSlot) (i < inputs ? item.reads : item.writes).push_back({operands_[at][i]});
    }
    return item;
  }

  // --- a stretch

  // Loops of another number of trips are no part of a wave, but what stands in front of them may lead to one.
  void expect_trips(int64_t trips) {
    if (trips_ == trips) return;
    while (cut_wave()) {
    }
    trips_ = trips;
  }

  void end_stretch() {
    while (cut_wave()) {
    }
    items_.clear();
    trips_ = 0;
  }

  // Takes the items up to the last loop that can be part of one wave, and leaves the rest. False: there is no loop.
  bool cut_wave() {
    if (trips_ == 0) return false;
    Roles roles = sort_items();
    const size_t end = roles.end;
    if (end > 0) make_wave(roles);
    items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(end));
    for (Item& item : items_) {
      if (item.kind == Item::Kind::kRows) item = kernel_item(item.first);
    }
    return end > 0 && !items_.empty();
  }

  enum class Role : uint8_t { kBefore, kStage, kAfter };
  struct Roles {
    std::vector<Role> of;                       // by item
    std::unordered_map<uint32_t, size_t> made;  // slot -> the item that writes it
    size_t end = 0;                             // behind the last loop
  };

  Roles sort_items() {
    Roles roles;
    const size_t count = items_.size();
    roles.of.assign(count, Role::kStage);
    const auto writer = [&](const Item::Use& use) {
      const auto it = roles.made.find(use.slot);
      return it == roles.made.end() ? count : it->second;
    };
    std::vector<bool> needs_loop(count), early(count), late(count);
    for (size_t i = 0; i < count; ++i) {
      Item& item = items_[i];
      if (item.kind == Item::Kind::kOther && find_rows(item)) item.kind = Item::Kind::kRows;
      for (const Item::Use& use : item.reads) {
        const size_t from = writer(use);
        if (from < i) needs_loop[i] = needs_loop[i] || needs_loop[from] || items_[from].kind == Item::Kind::kLoop;
      }
      for (const Item::Use& use : item.writes) roles.made.emplace(use.slot, i);
    }
    // What is not cut into rows and waits for no loop runs first, with all that leads to it.
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
        roles.end = i + 1;
      } else if (early[i]) {
        roles.of[i] = Role::kBefore;
      } else if (late[i] || item.kind == Item::Kind::kOther) {
        late[i] = true;
        roles.of[i] = Role::kAfter;
      }
    }
    return roles;
  }

  // Where items of stages hand on what they make.
  struct Edge {
    size_t to;
    bool all;  // not row by row
  };

  void make_wave(Roles& roles) {
    const size_t end = roles.end;
    std::vector<std::vector<Edge>> users(end);
    for (size_t i = 0; i < end; ++i) {
      if (roles.of[i] != Role::kStage) continue;
      for (const Item::Use& use : items_[i].reads) {
        const auto made = roles.made.find(use.slot);
        if (made == roles.made.end() || made->second >= i || roles.of[made->second] != Role::kStage) continue;
        users[made->second].push_back({i, !(use.by_rows && writes_by_rows(made->second, use.slot))});
      }
    }
    // Each stage is named by its last item. What no loop needs runs behind them.
    std::vector<size_t> stage_of(end);
    for (size_t i = end; i-- > 0;) {
      stage_of[i] = i;
      std::erase_if(users[i], [&](const Edge& edge) { return roles.of[edge.to] != Role::kStage; });
      if (roles.of[i] != Role::kStage || items_[i].kind == Item::Kind::kLoop) continue;
      if (users[i].empty()) {
        roles.of[i] = Role::kAfter;
        continue;
      }
      const size_t stage = stage_of[users[i][0].to];
      const bool joins = std::all_of(users[i].begin(), users[i].end(),
                                     [&](const Edge& edge) { return !edge.all && stage_of[edge.to] == stage; });
      if (joins) stage_of[i] = stage;
    }
    Wave wave;
    wave.trips = trips_;
    std::unordered_map<size_t, uint32_t> number;
    for (size_t i = 0; i < end; ++i) {
      if (roles.of[i] != Role::kStage || stage_of[i] != i) continue;
      number[i] = static_cast<uint32_t>(wave.stages.size());
      wave.stages.emplace_back().loop = items_[i].loop;
    }
    const auto begin =
        static_cast<size_t>(std::find(roles.of.begin(), roles.of.end(), Role::kStage) - roles.of.begin());
    for (size_t i = begin; i < end; ++i) {
      if (roles.of[i] == Role::kBefore) wave.before.push_back(items_[i].first);
      if (roles.of[i] == Role::kAfter) wave.after.push_back(items_[i].first);
      if (roles.of[i] != Role::kStage) continue;
      const uint32_t stage = number.at(stage_of[i]);
      if (items_[i].kind == Item::Kind::kRows) wave.stages[stage].kernels.push_back(items_[i].rows);
      for (const Edge& edge : users[i]) {
        const uint32_t user = number.at(stage_of[edge.to]);
        if (user != stage) wave.stages[user].needs.push_back({stage, edge.all});
      }
    }
    wave.first = items_[begin].first;
    wave.last = items_[end - 1].last;
    if (is_parallel(wave) && choose_block(wave) && fits_memory(begin, end) && prepare_kernels(wave)) {
      waves_.push_back(std::move(wave));
    }
  }

  bool writes_by_rows(size_t item, uint32_t slot) const {
    const auto& writes = items_[item].writes;
    return std::any_of(writes.begin(), writes.end(), [&](const Item::Use& w) { return w.slot == slot && w.by_rows; });
  }

  // Whether two of its loops can be at work at a time.
  static bool is_parallel(const Wave& wave) {
    const size_t count = wave.stages.size();
    if (count < 2 || count > kMostStages) return false;
    std::vector<uint64_t> needed(count),
        finished(count);  // stages that it depends on; that are through before it begins
    uint64_t loops = 0;
    for (size_t s = 0; s < count; ++s) {
      for (const WaveStage::Need& need : wave.stages[s].needs) {
        needed[s] |= needed[need.stage] | uint64_t{1} << need.stage;
        finished[s] |= need.all ? needed[need.stage] | uint64_t{1} << need.stage : finished[need.stage];
      }
      if (wave.stages[s].loop == WaveStage::kNoLoop) continue;
      if (loops & ~finished[s]) return true;
      loops |= uint64_t{1} << s;
    }
    return false;
  }

  bool choose_block(Wave& wave) const {
    double trip_ns = 0, most_ns = 0;
    int64_t least_rows = INT64_MAX;
    for (const WaveStage& stage : wave.stages) {
      for (const RowKernel& kernel : stage.kernels) {
        const int64_t rows = p_.node_of[kernel.at]->outputs[0]->type.shape[0].value() / trips_;
        least_rows = std::min(least_rows, rows);
      }
      if (stage.loop == WaveStage::kNoLoop) continue;
      const double ns = static_cast<double>(p_.loops[stage.loop].weight) * kPollUnitNs;
      trip_ns += ns;
      most_ns = std::max(most_ns, ns);
    }
    if (trip_ns * static_cast<double>(trips_) < 2 * kMinThreadNs) return false;
    const auto up = [](double x) { return static_cast<int64_t>(x) + 1; };
    int64_t block = std::max((trips_ + kWantedBlocks - 1) / kWantedBlocks, up(kLeastBlockNs / most_ns));
    if (least_rows != INT64_MAX)
      block = std::max(block, (kLeastRows + least_rows - 1) / std::max<int64_t>(least_rows, 1));
    // Between blocks a run looks whether it should stop.
    block = std::min(block, up(kStopCheckNs / most_ns));
    wave.block = block;
    return block < trips_;
  }

  // Everything that is written in a wave keeps its memory to the end of it.
  bool fits_memory(size_t begin, size_t end) const {
    std::set<uint32_t> slots;
    for (size_t i = begin; i < end; ++i) {
      for (const Item::Use& use : items_[i].writes) slots.insert(use.slot);
      for (uint32_t at = items_[i].first; at <= items_[i].last; ++at) {
        slots.insert(operands_[at].begin(), operands_[at].end());
      }
    }
    size_t bytes = 0;
    for (const uint32_t s : slots) bytes += p_.slots[s].storage == Storage::kArena ? p_.slots[s].bytes : 0;
    return bytes <= kMostBytes;
  }

  bool prepare_kernels(Wave& wave) {
    const int64_t rest = trips_ - (wave.blocks() - 1) * wave.block;
    for (WaveStage& stage : wave.stages) {
      for (RowKernel& rows : stage.kernels) {
        if (!prepare_rows(p_, rows, trips_, wave.block, rest, 1)) return false;
      }
    }
    return true;
  }

  Program& p_;
  const std::vector<std::vector<uint32_t>>& operands_;
  std::set<uint32_t> targets_;  // instructions that are jumped to
  std::vector<Item> items_;     // of the stretch
  int64_t trips_ = 0;           // of its loops; 0: none was found yet
  std::vector<Wave> waves_;
};

}  // namespace

std::vector<Wave> find_waves(Program& program, const std::vector<std::vector<uint32_t>>& operands) {
  return WaveFinder(program, operands).find();
}

}  // namespace treadle::plan

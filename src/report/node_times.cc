#include "report/node_times.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <tuple>

namespace treadle::report {

namespace {

using plan::OpCode;
using plan::Program;
using run::Profile;

// Another process that gets the processor keeps it for a millisecond or more. A node that finds its data and branches
// evicted takes up to twice as long.
constexpr double kInterruptionNs = 500e3, kVariation = 2;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

class Table {
 public:
  explicit Table(const std::vector<const Profile::Run*>& runs) : program_(*runs.back()->program) {
    for (const Profile::Run* run : runs) {
      if (run->program.get() == &program_) runs_.push_back(run);
    }
    interrupted_.resize(runs_.size());
  }

  void fill(ProfileTimes& times) {
    add_rows();
    for (auto& [key, row] : rows_) settle(row, times);
    std::sort(times.nodes.begin(), times.nodes.end(), [](const NodeTime& a, const NodeTime& b) {
      return std::tie(b.ns, a.loop, a.node) < std::tie(a.ns, b.loop, b.node);
    });
    times.interrupted_runs = static_cast<size_t>(std::count(interrupted_.begin(), interrupted_.end(), true));
    times.shown = shown();
  }

 private:
  struct Row {
    NodeTime node;
    std::vector<double> ns;       // by run
    std::vector<int64_t> counts;  // by run
  };

  // Instructions of one node are one row.
  void add_rows() {
    const std::vector<int> loops = run::innermost_loops(program_);
    for (uint32_t pc = 0; pc < program_.code.size(); ++pc) {
      const auto ran = [pc](const Profile::Run* run) { return run->sums[pc].count > 0; };
      if (std::none_of(runs_.begin(), runs_.end(), ran)) continue;
      Row& row = row_of(pc, loops[pc] < 0 ? "" : program_.loops[static_cast<size_t>(loops[pc])].node->name);
      for (size_t i = 0; i < runs_.size(); ++i) {
        row.ns[i] += runs_[i]->sums[pc].ns;
        row.counts[i] += runs_[i]->sums[pc].count;
      }
    }
  }

  Row& row_of(uint32_t pc, const std::string& loop) {
    const bool glue = !is_timed_alone(program_.code[pc].code) || !program_.node_of[pc];
    const std::string name = glue ? "" : std::string(program_.node_of[pc]->name);
    const std::string op = glue ? "" : plan::op_names(program_, pc);
    const std::string method(glue ? "" : plan::method_of(program_, pc));
    Row& row = rows_[{name, op + method, loop, glue}];
    if (row.ns.empty()) {
      row.node = {.node = name, .op = op, .method = method, .loop = loop, .is_glue = glue};
      row.ns.resize(runs_.size());
      row.counts.resize(runs_.size());
    }
    return row;
  }

  // The limit above which a time counts as interrupted. A node that runs more often in one run than in another takes
  // longer there, so it has no limit.
  static double limit_of(const Row& row, double least) {
    const auto differs = std::adjacent_find(row.counts.begin(), row.counts.end(), std::not_equal_to<>());
    return differs == row.counts.end() ? kVariation * least + kInterruptionNs : std::numeric_limits<double>::infinity();
  }

  void settle(Row& row, ProfileTimes& times) {
    const double least = *std::min_element(row.ns.begin(), row.ns.end()), limit = limit_of(row, least);
    std::vector<double> kept;
    for (size_t i = 0; i < row.ns.size(); ++i) {
      if (row.ns[i] <= limit) {
        kept.push_back(row.ns[i]);
        continue;
      }
      interrupted_[i] = true;
      times.interrupted_ns = std::max(times.interrupted_ns, row.ns[i] - least);
    }
    row.node.count = row.counts.back();
    row.node.ns = median(kept);
    row.node.least_ns = least;
    row.node.most_ns = *std::max_element(kept.begin(), kept.end());
    times.total_ns += row.node.ns;
    times.nodes.push_back(std::move(row.node));
  }

  const Profile::Run* shown() const {
    const auto is_faster = [](const Profile::Run* a, const Profile::Run* b) { return a->total_ns < b->total_ns; };
    std::vector<const Profile::Run*> whole;
    for (size_t i = 0; i < runs_.size(); ++i) {
      if (!interrupted_[i]) whole.push_back(runs_[i]);
    }
    if (whole.empty()) return *std::min_element(runs_.begin(), runs_.end(), is_faster);
    std::sort(whole.begin(), whole.end(), is_faster);
    return whole[whole.size() / 2];
  }

  const Program& program_;
  std::vector<const Profile::Run*> runs_;
  std::vector<bool> interrupted_;  // by run
  std::map<std::tuple<std::string, std::string, std::string, bool>, Row> rows_;
};

}  // namespace

bool is_timed_alone(OpCode code) {
  return code == OpCode::kKernel || code == OpCode::kInStrips || code == OpCode::kGuarded || code == OpCode::kCompute ||
         code == OpCode::kRow;
}

ProfileTimes times_of(const std::vector<const Profile::Run*>& runs) {
  ProfileTimes times;
  times.runs = runs.size();
  const auto by_time = [](const Profile::Run* a, const Profile::Run* b) { return a->total_ns < b->total_ns; };
  const auto [fastest, slowest] = std::minmax_element(runs.begin(), runs.end(), by_time);
  times.fastest_ns = (*fastest)->total_ns;
  times.slowest_ns = (*slowest)->total_ns;
  Table(runs).fill(times);
  return times;
}

}  // namespace treadle::report

#include "stream/state_pairs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "stream/state_names.h"
#include "stream/state_paths.h"

namespace treadle::stream {

namespace {

class PairFinder {
 public:
  PairFinder(const Session& session, Unpaired unpaired) : session_(session), unpaired_(std::move(unpaired)) {}

  std::vector<FoundPair> find() {
    for (const bool numbers : {false, true}) {
      read_names(numbers);
      pair_where([&](size_t in, size_t out) { return inputs_[in].stem == outputs_[out].stem; },
                 [&](size_t in, size_t out) { return by_name(inputs_[in].roles, outputs_[out].roles); });
    }
    read_names(false);
    pair_where([&](size_t in,
                   size_t out) { return has_one_word_more(inputs_[in].stem, outputs_[out].stem) && becomes(in, out); },
               [](size_t, size_t) { return "by a name with one word more, and the graph makes the one of the other"; });
    pair_where([&](size_t in, size_t out) { return feeds_besides(in) && gives_besides(out) && becomes(in, out); },
               [](size_t, size_t) { return "in the graph, which makes the one of the other; names say nothing"; });
    return std::move(found_);
  }

 private:
  void read_names(bool numbers) {
    inputs_.clear();
    outputs_.clear();
    for (const IoInfo& info : session_.inputs()) inputs_.push_back(StateName::of(info.name, numbers));
    for (const IoInfo& info : session_.outputs()) outputs_.push_back(StateName::of(info.name, numbers));
  }

  // Whether their types allow a pair.
  bool may_pair(size_t in, size_t out) const {
    return unpaired_.inputs[in] && unpaired_.outputs[out] &&
           compatible(session_.inputs()[in].type, session_.outputs()[out].type);
  }

  // Whether the graph computes the output from the input.
  bool becomes(size_t in, size_t out) {
    const ir::Graph& graph = session_.graph();
    if (!paths_) paths_.emplace(graph);
    const auto& inputs = graph.top().inputs;
    const auto at = std::find_if(inputs.begin(), inputs.end(),
                                 [&](const ir::Value* v) { return v->name == session_.inputs()[in].name; });
    return paths_->becomes(static_cast<size_t>(at - inputs.begin()), out);
  }

  // Whether another input remains to be fed if `in` is a state.
  bool feeds_besides(size_t in) const {
    if (unpaired_.is_fed) return true;
    for (size_t i = 0; i < unpaired_.inputs.size(); ++i) {
      if (i != in && unpaired_.inputs[i]) return true;
    }
    return false;
  }

  // Whether another output remains if `out` is a state.
  bool gives_besides(size_t out) const {
    for (size_t i = 0; i < unpaired_.outputs.size(); ++i) {
      if (i != out && unpaired_.outputs[i]) return true;
    }
    return false;
  }

  // The only candidate, or the only candidate for which `sure` is true.
  template <class Sure>
  static std::optional<size_t> only(const std::vector<size_t>& candidates, Sure&& sure) {
    if (candidates.size() == 1) return candidates[0];
    std::optional<size_t> left;
    for (const size_t candidate : candidates) {
      if (!sure(candidate)) continue;
      if (left) return std::nullopt;
      left = candidate;
    }
    return left;
  }

  // The only output that fits `in` and fits no other input. If several fit, the graph decides.
  template <class Fits>
  std::optional<size_t> partner(size_t in, Fits&& fits) {
    std::vector<size_t> outs, ins;
    for (size_t out = 0; out < outputs_.size(); ++out) {
      if (may_pair(in, out) && fits(in, out)) outs.push_back(out);
    }
    const std::optional<size_t> out = only(outs, [&](size_t o) { return becomes(in, o); });
    if (!out) return std::nullopt;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (may_pair(i, *out) && fits(i, *out)) ins.push_back(i);
    }
    return only(ins, [&](size_t i) { return becomes(i, *out); }) == in ? out : std::nullopt;
  }

  template <class Fits, class How>
  void pair_where(Fits&& fits, How&& how) {
    for (size_t in = 0; in < inputs_.size(); ++in) {
      const std::optional<size_t> out = partner(in, fits);
      if (!out) continue;
      found_.push_back({in, *out, how(in, *out)});
      unpaired_.inputs[in] = unpaired_.outputs[*out] = 0;
    }
  }

  static std::string by_name(std::vector<std::string> before, const std::vector<std::string>& after) {
    before.insert(before.end(), after.begin(), after.end());
    return before.empty() ? "by name" : fmt::format("by name, without '{}'", fmt::join(before, "', '"));
  }

  const Session& session_;
  Unpaired unpaired_;
  std::vector<StateName> inputs_, outputs_;
  std::optional<StatePaths> paths_;
  std::vector<FoundPair> found_;
};

}  // namespace

bool compatible(const Type& a, const Type& b) {
  if (!same_structure(a, b)) return false;
  if (!a.has_shape || !b.has_shape) return true;
  if (a.rank() != b.rank()) return false;
  for (size_t i = 0; i < a.shape.size(); ++i) {
    if (a.shape[i].is_known() && b.shape[i].is_known() && !same(a.shape[i], b.shape[i])) return false;
  }
  return true;
}

std::vector<FoundPair> find_state_pairs(const Session& session, Unpaired unpaired) {
  return PairFinder(session, std::move(unpaired)).find();
}

}  // namespace treadle::stream

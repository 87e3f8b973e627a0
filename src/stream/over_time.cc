#include "stream/over_time.h"

#include <algorithm>
#include <optional>

#include "plan/specialize.h"

namespace treadle {

namespace {

// Of a bound input whose contents may decide a branch or shape: more than the 64 axes of a tensor are no shape
// (op/rank.h).
constexpr int64_t kMaxKnownElements = 64;

using Bound = std::vector<std::pair<std::string, AnyValue>>;

// The treatment of sizes beside time.
enum class Batch : uint8_t {
  kAny,      // as in the model
  kOne,      // 1 for the first open size
  kEntries,  // stream::kBatchSymbol, which marks the entries of a batch
};

// The model with types that follow from the types of its inputs and from bound inputs.
class Decider {
 public:
  Decider(const Session& session, const std::vector<stream::TimedInput>& timed,
          const std::vector<std::string_view>& carried, const Bound& bound, const Dim& samples)
      : graph_(session.graph()), timed_(timed), carried_(carried), bound_(bound), samples_(samples) {}

  Result<std::unique_ptr<ir::Graph>> decide(Batch batch) const {
    const std::vector<std::string> names = batch_names(batch == Batch::kEntries);
    std::vector<plan::InputSpec> knowledge;
    for (size_t i = 0; i < graph_.top().inputs.size(); ++i) {
      const ir::Value& v = *graph_.top().inputs[i];
      plan::InputSpec known{v.type, {}};
      for (size_t d = 0; d < known.type.shape.size(); ++d) {
        Dim& size = known.type.shape[d];
        const std::string name = size_name(v, d);
        const bool of_batch = std::find(names.begin(), names.end(), name) != names.end() ||
                              (batch == Batch::kEntries && is_only_open(v, d));
        if (of_batch && batch == Batch::kEntries) {
          size = Dim::symbol(stream::kBatchSymbol);
        } else if (!size.is_known()) {
          size = of_batch && batch == Batch::kOne ? Dim(1) : Dim::symbol(name);
        }
      }
      if (const stream::TimedInput* input = timed(v); input && known.type.has_shape) {
        known.type.shape[static_cast<size_t>(input->axis)] = samples_;
      } else if (const AnyValue* value = bound(v); value && value->is_tensor()) {
        known.type = value->type();
        if (value->tensor().element_count() <= kMaxKnownElements) known.contents = value->tensor();
      } else if (i < graph_.input_defaults.size() && graph_.input_defaults[i].defined()) {
        known.contents = graph_.input_defaults[i];
        known.type = Type::tensor(known.contents.type(), to_shape(known.contents.dims()));
      }
      knowledge.push_back(std::move(known));
    }
    return plan::decide(graph_, knowledge);
  }

  bool has_open_batch() const { return !batch_names(false).empty(); }

 private:
  const stream::TimedInput* timed(const ir::Value& input) const {
    const auto it =
        std::find_if(timed_.begin(), timed_.end(), [&](const stream::TimedInput& t) { return input.name == t.name; });
    return it == timed_.end() ? nullptr : &*it;
  }

  const AnyValue* bound(const ir::Value& input) const {
    for (const auto& [name, value] : bound_) {
      if (input.name == name) return &value;
    }
    return nullptr;
  }

  static std::string size_name(const ir::Value& input, size_t axis) {
    const std::string_view symbol = input.type.shape[axis].symbol_name();
    return symbol.empty() ? input.name + "." + std::to_string(axis) : std::string(symbol);
  }

  // Whether each push gives the input, in a stream without timed inputs.
  bool is_given(size_t input) const {
    const ir::Value& v = *graph_.top().inputs[input];
    const bool has_default = input < graph_.input_defaults.size() && graph_.input_defaults[input].defined();
    return timed_.empty() && !has_default && !bound(v) &&
           std::find(carried_.begin(), carried_.end(), v.name.view()) == carried_.end();
  }

  // Names of the inputs' sizes beside time: of all open sizes; if `entries`, of the first open one, or else of the
  // first one that is 1.
  std::vector<std::string> batch_names(bool entries) const {
    std::vector<std::string> names;
    for (size_t k = 0; k < graph_.top().inputs.size(); ++k) {
      const ir::Value* v = graph_.top().inputs[k];
      const stream::TimedInput* input = timed(*v);
      if (!input && !is_given(k)) continue;
      std::optional<std::string> open, one;
      for (size_t i = 0; i < v->type.shape.size(); ++i) {
        if (input && static_cast<int64_t>(i) == input->axis) continue;
        if (!v->type.shape[i].is_known()) {
          if (!entries) names.push_back(size_name(*v, i));
          if (!open) open = size_name(*v, i);
        } else if (v->type.shape[i].is_known(1) && !one) {
          one = size_name(*v, i);
        }
      }
      if (entries && (open || one)) names.push_back(open ? *open : *one);
    }
    return names;
  }

  // Whether this is the only open size of a carried state, and has no name.
  bool is_only_open(const ir::Value& v, size_t axis) const {
    if (std::find(carried_.begin(), carried_.end(), v.name.view()) == carried_.end()) return false;
    if (v.type.shape[axis].is_known() || !v.type.shape[axis].symbol_name().empty()) return false;
    return std::count_if(v.type.shape.begin(), v.type.shape.end(), [](const Dim& d) { return !d.is_known(); }) == 1;
  }

  const ir::Graph& graph_;
  const std::vector<stream::TimedInput>& timed_;
  const std::vector<std::string_view>& carried_;
  const Bound& bound_;
  const Dim samples_;  // samples of each timed input
};

Dim whole_signal() {
  return Dim::symbol(stream::kSamplesSymbol);
}

// Pushes come in a few sizes; pushes of one size make blocks of two sizes if it is no whole number of hops.
constexpr int kExactPlans = 4;

SessionOptions options_of(const Session& session) {
  SessionOptions options = session.options();
  options.dimension_overrides.clear();
  options.exact_plans = kExactPlans;
  return options;
}

void take_counts(stream::Streamed& streamed, OverTime& made) {
  made.hop = streamed.hop;
  made.first = streamed.first;
  made.delay = streamed.delay;
  made.outputs = std::move(streamed.outputs);
  made.states = std::move(streamed.states);
  made.running = std::move(streamed.running);
  made.begins_with_zeros = streamed.begins_with_zeros;
}

}  // namespace

Result<std::shared_ptr<const OverTime>> OverTime::make(const Session& session,
                                                       const std::vector<stream::TimedInput>& timed,
                                                       const std::vector<std::string_view>& carried,
                                                       const std::vector<std::pair<std::string, AnyValue>>& bound) {
  const Decider decider(session, timed, carried, bound, whole_signal());
  TREADLE_ASSIGN(const auto decided, decider.decide(Batch::kAny));
  auto streamed = stream::stream_over_time(*decided, timed, carried);
  if (!streamed.ok() && decider.has_open_batch()) {
    // Some models merge batch and time into one axis; with a batch of 1 they can be streamed.
    TREADLE_ASSIGN(const auto single, decider.decide(Batch::kOne));
    streamed = stream::stream_over_time(*single, timed, carried);
  }
  if (!streamed.ok()) return std::move(streamed).status();
  auto made = std::make_shared<OverTime>();
  const SessionOptions options = options_of(session);
  TREADLE_ASSIGN(made->start, Session::from_graph(std::move(streamed->start), options));
  TREADLE_ASSIGN(made->steady, Session::from_graph(std::move(streamed->steady), options));
  TREADLE_ASSIGN(made->last, Session::from_graph(std::move(streamed->last), options));
  take_counts(*streamed, *made);
  return std::shared_ptr<const OverTime>(std::move(made));
}

Result<std::shared_ptr<const OverTime>> OverTime::make_batched(
    const Session& session, const std::vector<stream::TimedInput>& timed, const std::vector<std::string_view>& carried,
    const std::vector<std::pair<std::string, AnyValue>>& bound) {
  TREADLE_ASSIGN(const auto decided, Decider(session, timed, carried, bound, whole_signal()).decide(Batch::kEntries));
  TREADLE_ASSIGN(stream::Streamed streamed, stream::stream_over_time(*decided, timed, carried));
  auto made = std::make_shared<OverTime>();
  TREADLE_ASSIGN(made->batch, stream::find_batch_axes(*streamed.steady->clone()));
  TREADLE_ASSIGN(made->steady, Session::from_graph(std::move(streamed.steady), options_of(session)));
  const auto of_first = stream::find_batch_axes(*streamed.start->clone());
  made->first_has_batch = of_first.ok() && of_first->outputs == made->batch.outputs;
  TREADLE_ASSIGN(made->start, Session::from_graph(std::move(streamed.start), options_of(session)));
  take_counts(streamed, *made);
  return std::shared_ptr<const OverTime>(std::move(made));
}

Result<std::shared_ptr<const BatchedModel>> BatchedModel::make(
    const Session& session, const std::vector<stream::TimedInput>& timed, const std::vector<std::string_view>& carried,
    const std::vector<std::pair<std::string, AnyValue>>& bound, int64_t window) {
  TREADLE_ASSIGN(auto decided, Decider(session, timed, carried, bound, window).decide(Batch::kEntries));
  auto made = std::make_shared<BatchedModel>();
  TREADLE_ASSIGN(made->batch, stream::find_batch_axes(*decided->clone()));
  // Inference found sizes for any batch; the session infers its own.
  TREADLE_ASSIGN(made->session, Session::from_graph(std::move(decided), options_of(session)));
  return std::shared_ptr<const BatchedModel>(std::move(made));
}

}  // namespace treadle

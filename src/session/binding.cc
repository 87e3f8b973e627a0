#include "session/binding.h"

#include <algorithm>
#include <utility>

namespace treadle::session {

namespace {

bool overlap(const AnyValue& a, const AnyValue& b) {
  if (!a.is_tensor() || !b.is_tensor()) return false;
  const auto *at = static_cast<const char*>(a.tensor().raw()), *other = static_cast<const char*>(b.tensor().raw());
  return at < other + b.tensor().byte_size() && other < at + a.tensor().byte_size();
}

}  // namespace

Status check_apart(std::span<const Feed> feeds, std::span<AnyValue* const> outputs,
                   std::span<const std::string> names) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (const Feed& feed : feeds) {
      if (!overlap(*feed.value, *outputs[i])) continue;
      return error(Code::kInvalidArgument, "output '{}' has memory of input '{}': expected memory of its own", names[i],
                   feed.name);
    }
    for (size_t k = 0; k < i; ++k) {
      if (!overlap(*outputs[k], *outputs[i])) continue;
      return error(Code::kInvalidArgument, "outputs '{}' and '{}' have the same memory", names[k], names[i]);
    }
  }
  return {};
}

Result<std::unique_ptr<Binding>> Binding::make(std::shared_ptr<const Session> session, std::span<const Feed> feeds,
                                               std::span<const size_t> outputs, std::span<AnyValue* const> places,
                                               const RunOptions& options) {
  std::unique_ptr<Binding> made(new Binding);
  made->names_.reserve(feeds.size());  // feeds refer to them
  for (const Feed& feed : feeds) {
    made->names_.emplace_back(feed.name);
    made->feeds_.push_back({made->names_.back(), feed.value});
  }
  made->outputs_.assign(outputs.begin(), outputs.end());
  const size_t count = session->outputs().size();
  for (size_t i = 0; i < count && outputs.empty(); ++i) made->outputs_.push_back(i);
  for (const size_t i : outputs) {
    if (i >= count) return error(Code::kInvalidArgument, "output {} of {} was asked for", i, count);
  }
  made->places_.assign(places.begin(), places.end());
  made->options_ = options;
  made->session_ = std::move(session);
  std::vector<std::string> names;
  for (const size_t i : made->outputs_) names.push_back(made->session_->outputs()[i].name);
  TREADLE_TRY(check_apart(feeds, places, names));
  TREADLE_TRY(made->settle());
  return made;
}

Status Binding::settle() {
  std::vector<AnyValue> results;
  TREADLE_TRY(session_->run(feeds_, outputs_, results, options_));
  RepeatedRun run;
  const std::vector<ir::Value*>& inputs = session_->graph().top().inputs;
  run.inputs.resize(inputs.size());
  run.outputs.resize(session_->outputs().size());
  bool tensors = true;
  for (const Feed& feed : feeds_) {
    const auto it =
        std::find_if(inputs.begin(), inputs.end(), [&](const ir::Value* v) { return v->name == feed.name; });
    const auto at = static_cast<size_t>(it - inputs.begin());
    tensors &= feed.value->is_tensor();
    run.inputs[at] = feed.value;
    taken_.push_back({at, feed.value, {feed.value->tensor().type(), feed.value->tensor().dims()}});
  }
  for (size_t i = 0; i < results.size(); ++i) {
    tensors &= results[i].is_tensor() && !is_string(results[i].tensor().type()) && !run.outputs[outputs_[i]];
    run.outputs[outputs_[i]] = &results[i];
  }
  if (session_->options().tier == Tier::kReference) {
    why_ = "the reference interpreter runs the model";
  } else if (!tensors) {
    why_ = "an input or an output is no tensor of numbers, or an output is asked for twice";
  } else if (Status status = session_->run(run, options_); !status.ok()) {
    why_ = status.to_string();  // a scalar that is given as a tensor of one element
  } else {
    TREADLE_TRY(bind(run));
  }
  for (size_t i = 0; i < places_.size(); ++i) {
    const bool fits = places_[i]->is_tensor() && results[i].is_tensor() && places_[i]->tensor().exclusive() &&
                      TensorKind{results[i].tensor().type(), results[i].tensor().dims()}.is_of(*places_[i]);
    if (!fits) *places_[i] = std::move(results[i]);
  }
  return {};
}

Status Binding::bind(RepeatedRun& run) {
  std::vector<uint8_t> varies(run.inputs.size(), 0), is_taken(run.outputs.size(), 0);
  for (const Taken& taken : taken_) varies[taken.input] = 1;
  TREADLE_ASSIGN(std::unique_ptr<BoundRun> bound, session_->bind(run, varies, options_, why_));
  if (!bound) return {};
  for (size_t i = 0; i < run.inputs.size(); ++i) bound->read_from(i, run.inputs[i]->tensor().raw());
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const TensorKind kind = bound->kind_of(outputs_[i]);
    if (element_count_unchecked(kind.dims) == 0) {
      why_ = "an output has no elements";
      return {};
    }
    is_taken[outputs_[i]] = 1;
    given_.push_back({outputs_[i], places_[i], kind});
  }
  TREADLE_TRY(bound->keep_others(is_taken));
  run_ = std::move(bound);
  return {};
}

bool Binding::is_as_bound() const {
  for (const Taken& taken : taken_) {
    if (!taken.kind.is_of(*taken.value)) return false;
  }
  for (const Given& given : given_) {
    if (!given.kind.is_of(*given.place) || !given.place->tensor().exclusive()) return false;
  }
  return true;
}

Status Binding::run_bound() {
  for (const Taken& taken : taken_) run_->read_from(taken.input, taken.value->tensor().raw());
  for (const Given& given : given_) run_->write_to(given.output, given.place->tensor().mutable_raw());
  return run_->run();
}

}  // namespace treadle::session

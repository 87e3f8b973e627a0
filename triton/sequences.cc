#include "sequences.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "literals.h"

namespace backend {

namespace {

constexpr int64_t kCapacity = 4096;
// The server forgets idle sequences itself, so their streams can be dropped a little later.
constexpr double kLeastIdle = 10, kTimesServerIdle = 2;

double idle_seconds(const Config& config) {
  const double otherwise = std::max(kLeastIdle, kTimesServerIdle * config.server_idle_s);
  const double seconds = config.seconds("idle_s", otherwise);
  if (config.in_sequences && seconds < config.server_idle_s) {
    throw InvalidArgument(
        fmt::format("parameter 'idle_s' is {}, and the server takes requests of a sequence for {} s "
                    "(max_sequence_idle_microseconds): a stream is not to leave before that",
                    seconds, config.server_idle_s));
  }
  return seconds;
}

// Puts the sequence's name into the message: the caller does not know the stream's number.
Failure failure_of_step(const treadle::Error& error, int64_t id, const SequenceName& name) {
  Failure failure = failure_of(error);
  const std::string text = failure.what(), own = fmt::format("stream {}: ", id);
  if (!text.starts_with(own)) return failure;
  return {failure.code, fmt::format("sequence {}: {}", name.shown(), text.substr(own.size()))};
}

// Joins two results of a stream along an axis. Errors: Failure if they do not fit each other.
treadle::Value joined(const std::string& name, const treadle::Value& first, const treadle::Value& second,
                      int64_t axis) {
  const std::vector<int64_t> a = first.dims(), b = second.dims();
  const auto at = static_cast<size_t>(axis);
  bool fits =
      first.kind() == TREADLE_TENSOR && second.kind() == TREADLE_TENSOR && a.size() == b.size() && at < a.size();
  for (size_t i = 0; fits && i < a.size(); ++i) fits = i == at || a[i] == b[i];
  const size_t width = fits ? treadle::element_width(first.element()) : 0;
  if (!fits || width == 0) {
    throw Failure(
        TRITONSERVER_ERROR_UNSUPPORTED,
        fmt::format("what the last step gives of output '{}' ({}) and what the end of the sequence gives ({}) "
                    "make no tensor along axis {}",
                    name, first.type_text(), second.type_text(), axis));
  }
  std::vector<int64_t> dims = a;
  dims[at] += b[at];
  treadle::Value whole = treadle::Value::tensor(first.element(), dims);
  size_t rows = 1, inner = width;
  for (size_t i = 0; i < a.size(); ++i) (i < at ? rows : inner) *= i == at ? 1 : static_cast<size_t>(a[i]);
  const size_t of_first = inner * static_cast<size_t>(a[at]), of_second = inner * static_cast<size_t>(b[at]);
  char* to = whole.mutable_data<char>();
  for (size_t row = 0; row < rows; ++row) {
    if (of_first > 0) std::memcpy(to, first.data<char>() + row * of_first, of_first);
    if (of_second > 0) std::memcpy(to + of_first, second.data<char>() + row * of_second, of_second);
    to += of_first + of_second;
  }
  return whole;
}

}  // namespace

std::string SequenceName::shown() const {
  return text.empty() ? std::to_string(number) : "'" + text + "'";
}

Sequences::Sequences(TRITONBACKEND_ModelInstance* instance, const Model& model, const MetricFamilies& families,
                     const std::string& name)
    : Runner(instance),
      model_(model),
      metrics_(families, model.config.model, model.version, name),
      options_(stream_options(model)),
      fresh_(model.session, options_),
      pool_(model.session, options_, static_cast<size_t>(model.config.integer("capacity", kCapacity, 1))),
      output_names_(fresh_.output_names()),
      is_timed_(model.config.parameter("time") || model.config.parameter("hop")),
      capacity_(static_cast<size_t>(model.config.integer("capacity", kCapacity, 1))),
      idle_(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(idle_seconds(model.config)))) {
  const Signature signature(model.config, model.session);
  for (size_t i = 0; i < output_names_.size(); ++i) {
    axes_.push_back(fresh_.output_axis(i));
    is_stacked_.push_back(axes_[i] == 0 && model.config.parameter("hop") &&
                          signature.output(output_names_[i])->rank() >= 0);
  }
  const std::string* time = model.config.parameter("time");
  for (const std::string& input : model.fed) {
    const auto is_input = [&](const auto& timed) { return timed.first == input; };
    if (time && std::ranges::none_of(assignments("time", *time), is_input)) given_.push_back(names_.size());
    names_.push_back(input.c_str());
  }
  TREADLE_LOG(INFO, fmt::format("{}, instance '{}': room for {} streams{}\n{}", model.label, name, capacity_,
                                pool_.why_single().empty() ? "" : ", which run one by one: " + pool_.why_single(),
                                fresh_.text()));
}

SequenceName Sequences::name_of(TRITONBACKEND_Request* request) {
  SequenceName name;
  const char* text = nullptr;
  // Two functions read numbers and texts; each refuses the other kind. Callers rarely mix them.
  for (int attempt = 0; attempt < 2; ++attempt, has_text_names_ = !has_text_names_) {
    TRITONSERVER_Error* error = has_text_names_ ? TRITONBACKEND_RequestCorrelationIdString(request, &text)
                                                : TRITONBACKEND_RequestCorrelationId(request, &name.number);
    if (!error) {
      if (text) name.text = text;
      return name;
    }
    TRITONSERVER_ErrorDelete(error);
  }
  throw Failure(TRITONSERVER_ERROR_INTERNAL, "the request's correlation id is neither a number nor a text");
}

void Sequences::leave_idle(Clock::time_point now) {
  while (!live_.empty() && live_.front().last + idle_ < now) {
    TREADLE_LOG(VERBOSE, fmt::format("{}: sequence {} had no request for idle_s and has left", model_.label,
                                     live_.front().name.shown()));
    metrics_.count(Measure::kIdle);
    drop(live_.begin());
  }
}

void Sequences::drop(Place live) {
  if (pool_.contains(live->id)) pool_.leave(live->id);
  by_name_.erase(live->name);
  live_.erase(live);
}

void Sequences::join_from_snapshot(const Live& live, const Arrived& snapshot) {
  const std::string bytes = bytes_of(snapshot);
  treadle::Stream stream = fresh_;
  try {
    stream.load(bytes);
    pool_.join(live.id, stream);
  } catch (const treadle::Error& error) {
    throw InvalidArgument(
        fmt::format("input 'treadle_state' is no snapshot of a stream of this model: {}", error.what()));
  }
  metrics_.count(Measure::kResumed);
}

void Sequences::start_stream(Step& step, const SequenceName& name) {
  if (const auto found = by_name_.find(name); found != by_name_.end()) {
    TREADLE_LOG(WARN, fmt::format("{}: sequence {} lives and is started again; what it was is dropped", model_.label,
                                  name.shown()));
    drop(found->second);
  }
  if (live_.size() >= capacity_) {
    metrics_.count(Measure::kRefused);
    throw Failure(TRITONSERVER_ERROR_UNAVAILABLE,
                  fmt::format("{} has no room for sequence {}: all of its {} streams live (parameter 'capacity'); they "
                              "leave with END, or when they are idle",
                              model_.label, name.shown(), capacity_));
  }
  live_.push_back({.name = name, .id = ++next_id_, .last = {}});
  step.live = std::prev(live_.end());
  by_name_.emplace(name, step.live);
  try {
    if (const Arrived* snapshot = step.work->input(kSnapshot)) join_from_snapshot(*step.live, *snapshot);
  } catch (const Failure&) {
    drop(step.live);
    throw;
  }
  metrics_.count(Measure::kStarted);
}

void Sequences::find_stream(Step& step, const SequenceName& name) {
  if (step.starts()) return start_stream(step, name);
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) {
    throw InvalidArgument(
        fmt::format("inference request for sequence {} to model '{}' must specify the START flag on the "
                    "first request of the sequence",
                    name.shown(), model_.config.model));
  }
  step.live = found->second;
  if (step.work->input(kSnapshot)) {
    throw InvalidArgument("input 'treadle_state' goes with the START flag: a sequence that lives has a state already");
  }
  live_.splice(live_.end(), live_, step.live);
}

treadle::Value Sequences::input_value(const Work& work, const char* input, const SequenceName& name) const {
  const Arrived* arrived = work.input(input);
  if (!arrived) throw InvalidArgument(fmt::format("the request lacks input '{}'", input));
  const auto& of_name = model_.config.correlation;
  if (!of_name || of_name->name != input) return tensor_of(*arrived);
  // The control that the server writes is valid if the kinds agree. A text has meaningless bytes behind it.
  const bool takes_text = of_name->element == element_of(TRITONSERVER_TYPE_BYTES);
  if (takes_text) {
    const std::string text = name.text.empty() ? std::to_string(name.number) : name.text;
    return treadle::Value::texts({text}, {arrived->dims.begin(), arrived->dims.end()});
  }
  if (!name.text.empty()) {
    throw InvalidArgument(
        fmt::format("sequence {} is named by a text, and the model's input '{}' takes numbers", name.shown(), input));
  }
  return tensor_of(*arrived);
}

// Adds the request to `steps`. False: it has to wait, since `steps` has another request of the same sequence.
bool Sequences::begin(Work& work, std::vector<Step>& steps) {
  Step step;
  step.work = &work;
  SequenceName name;
  name.number = static_cast<uint64_t>(next_id_) + 1;
  if (model_.way == Model::Way::kSequences) {
    check(TRITONBACKEND_RequestFlags(work.request, &step.flags));
    name = name_of(work.request);
  } else {
    step.flags = TRITONSERVER_REQUEST_FLAG_SEQUENCE_START | TRITONSERVER_REQUEST_FLAG_SEQUENCE_END;
  }
  // The server warms up by requests without a name. A request without a name and without outputs fills an empty slot of
  // the direct strategy; no caller waits for its answer.
  if (name.is_none() && work.asked.empty()) throw InvalidArgument("the request belongs to no sequence");
  if (name.is_none()) step.flags = TRITONSERVER_REQUEST_FLAG_SEQUENCE_START | TRITONSERVER_REQUEST_FLAG_SEQUENCE_END;
  for (const Step& other : steps) {
    if (other.live->name == name) return false;
  }
  const auto end_after_failure = [&] {
    const auto found = by_name_.find(name);
    if (step.ends() && found != by_name_.end()) drop(found->second);
  };
  try {
    for (const char* input : names_) {
      step.values.push_back(input_value(work, input, name));
    }
    find_stream(step, name);
  } catch (...) {
    end_after_failure();
    throw;
  }
  step.live->last = Clock::now();
  steps.push_back(std::move(step));
  return true;
}

// Makes one push of all steps. False: it has failed, and no stream has changed.
bool Sequences::push(std::span<Step> steps) {
  std::vector<int64_t> ids;
  std::vector<const treadle_value*> values;
  for (const Step& step : steps) {
    ids.push_back(step.live->id);
    for (const treadle::Value& value : step.values) values.push_back(value.get());
  }
  const size_t outputs = output_names_.size();
  std::vector<treadle_value*> results(steps.size() * outputs, nullptr);
  if (treadle_status* status = treadle_pool_push(pool_.get(), nullptr, ids.data(), ids.size(), names_.data(),
                                                 names_.size(), values.data(), results.data())) {
    const treadle::Error error(status);
    if (steps.size() == 1) steps[0].work->failure = failure_of_step(error, steps[0].live->id, steps[0].live->name);
    return false;
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    steps[i].results.resize(outputs);
    for (size_t o = 0; o < outputs; ++o) steps[i].results[o] = treadle::Value(results[i * outputs + o]);
  }
  return true;
}

void Sequences::push_each(std::span<Step> steps) {
  for (Step& step : steps) push({&step, 1});
}

// The results of a flush.
std::vector<treadle::Value> Sequences::flushed(const Step& step) {
  std::vector<treadle_value*> handles(output_names_.size(), nullptr);
  if (given_.empty()) {
    check(treadle_pool_flush(pool_.get(), nullptr, step.live->id, handles.data()));
  } else {
    std::vector<const char*> names;
    std::vector<const treadle_value*> values;
    for (const size_t i : given_) {
      names.push_back(names_[i]);
      values.push_back(step.values[i].get());
    }
    const treadle::Stream stream = pool_.fork(step.live->id);
    check(treadle_stream_flush(stream.get(), nullptr, names.data(), values.data(), names.size(), handles.data(),
                               nullptr));
  }
  return {handles.begin(), handles.end()};
}

void Sequences::flush(Step& step) {
  std::vector<treadle::Value> tail = flushed(step);
  const size_t outputs = output_names_.size();
  for (size_t i = 0; i < outputs; ++i) {
    if (tail[i].kind() == TREADLE_NONE) continue;
    const bool is_alone = axes_[i] < 0 || step.results[i].kind() == TREADLE_NONE;
    step.results[i] = is_alone ? std::move(tail[i]) : joined(output_names_[i], step.results[i], tail[i], axes_[i]);
  }
}

// Adds the snapshot, and ends the stream, if requested.
void Sequences::finish(Step& step) {
  Work& work = *step.work;
  try {
    if (!work.failure && work.requests_output(kSnapshot)) {
      step.snapshot = pool_.fork(step.live->id).save();
      metrics_.count(Measure::kSnapshots);
    }
    if (!work.failure && step.ends() && is_timed_) flush(step);
  } catch (const Failure& failure) {
    work.failure = failure;
  } catch (const treadle::Error& error) {
    work.failure = failure_of(error);
  }
  if (step.ends() || (step.starts() && work.failure)) drop(step.live);
}

std::vector<int64_t> Sequences::dims_on_wire(size_t output, const treadle_value* value) const {
  const int64_t* begin = treadle_tensor_dims(value);
  std::vector<int64_t> dims(begin, begin + treadle_tensor_rank(value));
  // Runs are stacked in front of the batch, which has size 1. Responses have the batch first.
  if (is_stacked_[output] && model_.config.max_batch > 0 && dims.size() > 1 && dims[1] == 1)
    std::swap(dims[0], dims[1]);
  return dims;
}

void Sequences::respond(Step& step) {
  answer(*step.work, [&](TRITONBACKEND_Response* response) {
    for (size_t i = 0; i < output_names_.size(); ++i) {
      const treadle::Value& value = step.results[i];
      if (value.kind() == TREADLE_NONE || !step.work->requests_output(output_names_[i])) continue;
      const bool is_tensor = value.kind() == TREADLE_TENSOR;
      add_output(response, {output_names_[i].c_str(), value.get(),
                            is_tensor ? dims_on_wire(i, value.get()) : std::vector<int64_t>()});
    }
    if (!step.work->requests_output(kSnapshot)) return;
    std::vector<int64_t> dims = {static_cast<int64_t>(step.snapshot.size())};
    if (model_.config.max_batch > 0) dims.insert(dims.begin(), 1);
    add_bytes(response, kSnapshot, step.snapshot, dims);
  });
}

void Sequences::run_steps(std::span<Step> steps) {
  if (steps.empty()) return;
  begin_compute();
  if (!push(steps) && steps.size() > 1) push_each(steps);
  for (Step& step : steps) finish(step);
  end_compute();
  for (Step& step : steps) respond(step);
}

void Sequences::run(std::span<Work> works) {
  leave_idle(Clock::now());
  std::vector<Step> steps;
  for (Work& work : works) {
    try {
      if (!work.failure && !begin(work, steps)) {
        run_steps(steps);
        steps.clear();
        begin(work, steps);
      }
    } catch (const Failure& failure) {
      work.failure = failure;
    } catch (const treadle::Error& error) {
      work.failure = failure_of(error);
    }
    if (work.failure) answer(work, {});
  }
  run_steps(steps);
  metrics_.set(Measure::kStreams, live_.size());
}

}  // namespace backend

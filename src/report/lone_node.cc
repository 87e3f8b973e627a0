#include "report/lone_node.h"

#include <algorithm>
#include <filesystem>

#include "model/export.h"
#include "model/value_file.h"
#include "report/series.h"
#include "session/exposed_model.h"
#include "session/plan_cache.h"
#include "wire/write_file.h"

namespace treadle::report {

namespace fs = std::filesystem;

namespace {

constexpr size_t kMostBytes = size_t{256} << 20;  // of the model and its inputs

size_t bytes_of(const AnyValue& value) {
  switch (value.kind()) {
    case AnyValue::Kind::kTensor:
      return value.tensor().byte_size();
    case AnyValue::Kind::kSequence: {
      size_t bytes = 0;
      for (const AnyValue& element : value.sequence().elements()) bytes += bytes_of(element);
      return bytes;
    }
    case AnyValue::Kind::kOptional:
      return value.optional().value ? bytes_of(*value.optional().value) : 0;
    case AnyValue::Kind::kMap:
      return value.map().keys.byte_size() + value.map().values.byte_size();
    case AnyValue::Kind::kNone:
      break;
  }
  return 0;
}

bool has_sought(const AnyValue& value, const Sought& sought) {
  switch (value.kind()) {
    case AnyValue::Kind::kTensor:
      return sought.is_in(statistics_of(value.tensor()));
    case AnyValue::Kind::kSequence: {
      const auto elements = value.sequence().elements();
      return std::any_of(elements.begin(), elements.end(), [&](const AnyValue& v) { return has_sought(v, sought); });
    }
    case AnyValue::Kind::kOptional:
      return value.optional().value && has_sought(*value.optional().value, sought);
    case AnyValue::Kind::kMap:
      return sought.is_in(statistics_of(value.map().values));
    case AnyValue::Kind::kNone:
      break;
  }
  return false;
}

// Keeps the contents that values had when the node of a place ran.
class Inputs {
 public:
  Inputs(const FoundPlace& place, size_t count) : place_(place), values_(count), missing_(count) {}

  // Ends the run when all are there, or are too large.
  Status keep(size_t i, const ValueSeries& series, std::span<const int64_t> iterations, const AnyValue& value) {
    if (!values_[i].is_none() || !is_then(series, iterations)) return {};
    bytes_ += bytes_of(value);
    if (bytes_ > kMostBytes) return error(Code::kCancelled, "its inputs take more than 256 MB");
    values_[i] = value;
    return --missing_ > 0 ? Status() : error(Code::kCancelled, "all inputs are there");
  }
  bool is_too_large() const { return bytes_ > kMostBytes; }
  size_t bytes() const { return bytes_; }
  const std::vector<AnyValue>& values() const { return values_; }

 private:
  // Whether the iterations are those in which the node ran. -1: the value is the same in all.
  bool is_then(const ValueSeries& series, std::span<const int64_t> iterations) const {
    for (size_t level = 0; level < iterations.size(); ++level) {
      const auto at = std::find_if(place_.iterations.begin(), place_.iterations.end(),
                                   [&](const auto& loop) { return loop.first == series.called->loops[level]; });
      if (iterations[level] >= 0 && at != place_.iterations.end() && at->second != iterations[level]) return false;
    }
    return true;
  }

  const FoundPlace& place_;
  std::vector<AnyValue> values_;  // kNone: not seen yet
  size_t missing_, bytes_ = 0;
};

// Runs the model again, up to the node.
Status fetch(const FoundRun& from, std::span<const session::ReadValue> wanted, Inputs& inputs) {
  TREADLE_ASSIGN(const session::Planned* const planned, from.observed.planned(from.feeds));
  std::vector<SeriesRequest> requests;
  for (const session::ReadValue& value : wanted) requests.push_back({value.origin, {}});
  SeriesOptions options;
  options.statistics = false;
  const ValueSeries* first = nullptr;  // series lie in the order of the requests
  options.seen = [&](const ValueSeries& series, std::span<const int64_t> iterations, const AnyValue& value) {
    return inputs.keep(static_cast<size_t>(&series - first), series, iterations, value);
  };
  SeriesRecorder recorder(from.observed.model_values(), *planned->program, planned->same, requests, options);
  first = recorder.series().data();
  Watcher watcher({&recorder});
  RunOptions run = from.options;
  run.observer = &watcher;
  run.profile = nullptr;
  run.iterations = nullptr;
  std::vector<AnyValue> results;
  const Status status = from.observed.run(from.feeds, {}, results, run);  // fails behind the node, at the latest
  if (inputs.is_too_large()) return error(Code::kLimit, "its inputs take more than 256 MB");
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!inputs.values()[i].is_none()) continue;
    return error(Code::kNotImplemented, "its input {} could not be seen when the model ran again{}{}", wanted[i].name,
                 status.ok() ? "" : ": ", status.ok() ? "" : status.to_string());
  }
  return {};
}

Status write_values(const fs::path& folder, std::string_view kind, std::span<const AnyValue> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string name = fmt::format("{}_{}", kind, i);
    TREADLE_ASSIGN(const std::string bytes, model::write_value(values[i], name));
    TREADLE_TRY(write_file((folder / (name + ".pb")).string(), bytes));
  }
  return {};
}

// Runs the model of the node alone. Custom operators are those of `options`.
Status run_alone(const std::string& model, SessionOptions options, std::span<const AnyValue> inputs,
                 std::vector<AnyValue>& results) {
  options.observed = false;
  options.initializers.clear();
  options.external_files.clear();
  TREADLE_ASSIGN(const auto session, Session::from_bytes(std::as_bytes(std::span(model)), options, ""));
  std::vector<Feed> feeds;
  for (size_t i = 0; i < inputs.size(); ++i) feeds.push_back({session->inputs()[i].name, &inputs[i]});
  return session->run(feeds, {}, results);
}

// Fills `saved`; an error says why nothing was saved.
Status save(const FoundRun& from, const Sought& sought, const FoundPlace& place, const std::string& folder,
            SavedNode& saved) {
  const std::unique_ptr<ir::Graph> graph = from.observed.graph().clone();
  TREADLE_ASSIGN(const std::vector<session::ReadValue> read, session::leave_node(*graph, from.feeds, place.node));
  TREADLE_ASSIGN(const std::string model, model::export_model(*graph));
  Inputs inputs(place, read.size());
  if (!read.empty()) TREADLE_TRY(fetch(from, read, inputs));
  if (model.size() + inputs.bytes() > kMostBytes) {
    return error(Code::kLimit, "its weights and inputs take more than 256 MB");
  }
  const fs::path data = fs::path(folder) / "test_data_set_0";
  std::error_code problem;
  fs::create_directories(data, problem);
  if (problem) return error(Code::kInvalidArgument, "{} cannot be made: {}", data.string(), problem.message());
  TREADLE_TRY(write_file((fs::path(folder) / "model.onnx").string(), model));
  TREADLE_TRY(write_values(data, "input", inputs.values()));
  saved.folder = folder;
  std::vector<AnyValue> results;
  if (const Status status = run_alone(model, from.observed.options(), inputs.values(), results); !status.ok()) {
    saved.problem = "alone the node fails: " + status.to_string();
    return {};
  }
  TREADLE_TRY(write_values(data, "output", results));
  if (!std::any_of(results.begin(), results.end(), [&](const AnyValue& v) { return has_sought(v, sought); })) {
    saved.problem = fmt::format("alone the node gives no {}", sought.text());
  }
  return {};
}

}  // namespace

SavedNode save_node(const FoundRun& from, const Sought& sought, const FoundPlace& place, const std::string& folder) {
  SavedNode saved;
  if (place.node.empty()) {
    saved.problem = place.by == FoundPlace::By::kInput ? "no node made it: it comes with an input of the model"
                                                       : "no node made it: it is in a constant of the model";
    if (place.by == FoundPlace::By::kConstant && from.is_rewritten) {
      saved.problem += ", or loading computed that: open the session with optimize = 0";
    }
    return saved;
  }
  const Status status = save(from, sought, place, folder, saved);
  if (!status.ok()) saved.problem = status.message();
  return saved;
}

}  // namespace treadle::report

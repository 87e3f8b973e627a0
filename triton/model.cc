#include "model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>

#include "failure.h"
#include "literals.h"
#include "wire.h"

namespace backend {

namespace {

constexpr std::array kOfStreams = {"capacity", "context", "hop", "idle_s", "state", "time"};

Json config_of(TRITONBACKEND_Model* handle) {
  TRITONSERVER_Message* message = nullptr;
  check(TRITONBACKEND_ModelConfig(handle, 1, &message));
  const auto remove = [](TRITONSERVER_Message* made) {
    if (TRITONSERVER_Error* error = TRITONSERVER_MessageDelete(made)) TRITONSERVER_ErrorDelete(error);
  };
  // Unlike the backend's message, this one has to be freed
  const std::unique_ptr<TRITONSERVER_Message, decltype(remove)> owned(message, remove);
  return json_of(message);
}

uint64_t version_of(TRITONBACKEND_Model* handle) {
  uint64_t version = 0;
  check(TRITONBACKEND_ModelVersion(handle, &version));
  return version;
}

std::string path_of(TRITONBACKEND_Model* handle, uint64_t version, const std::string& file) {
  TRITONBACKEND_ArtifactType type{};
  const char* location = nullptr;
  check(TRITONBACKEND_ModelRepository(handle, &type, &location));
  if (type != TRITONBACKEND_ARTIFACT_FILESYSTEM) {
    throw Failure(TRITONSERVER_ERROR_UNSUPPORTED, "treadle reads models of a repository in a file system");
  }
  return fmt::format("{}/{}/{}", location, version, file);
}

// The axis that parameter "time" gives an input by number; -1 if it gives the name of a size.
int64_t time_axis(const Config& config, const treadle::Type& type, const std::string& name) {
  const std::string* text = config.parameter("time");
  if (!text) return -1;
  for (const auto& [timed, axis] : assignments("time", *text)) {
    if (timed != name) continue;
    int64_t number = 0;
    const auto read = std::from_chars(axis.data(), axis.data() + axis.size(), number);
    if (read.ec == std::errc()) return number < 0 ? number + type.rank() : number;
    for (int64_t i = 0; i < type.rank(); ++i) {
      if (type.symbol(i) == axis) return i;
    }
  }
  return -1;
}

bool is_snapshot(const Config::Tensor& tensor) {
  return tensor.element == element_of(TRITONSERVER_TYPE_UINT8) && tensor.dims == std::vector<int64_t>{-1};
}

}  // namespace

Model::Model(TRITONBACKEND_Model* handle) : Model(handle, config_of(handle)) {}

Model::Model(TRITONBACKEND_Model* handle, const Json& json)
    : config(Config::read(json)),
      label(fmt::format("model '{}' version {}", config.model, version_of(handle))),
      version(version_of(handle)),
      session(path_of(handle, version, config.file), session_options(config)) {
  for (const std::string& remark : session.remarks()) TREADLE_LOG(WARN, label + ": " + remark);
  for (const std::string& warning : session.warnings()) TREADLE_LOG(WARN, label + ": " + warning);
  bound = bound_inputs(config, session);
  const bool cuts = config.parameter("time") || config.parameter("hop");
  if (config.in_sequences && config.states.empty()) {
    way = Way::kSequences;
  } else if (!config.in_sequences && cuts) {
    way = Way::kSignals;
  }
  if (way == Way::kBatches) {
    check_batches();
  } else {
    check_streams();
  }
}

void Model::check_batches() {
  for (const char* name : kOfStreams) {
    if (!config.parameter(name)) continue;
    throw InvalidArgument(
        fmt::format("parameter '{}' is one of streams, and {}", name,
                    config.in_sequences ? "the server keeps the states of this model (sequence_batching has a state)"
                                        : "this model has neither sequence_batching nor parameters 'time' and 'hop'"));
  }
  if (config.correlation && config.correlation->element == element_of(TRITONSERVER_TYPE_BYTES)) {
    throw InvalidArgument(
        fmt::format("control input '{}' holds correlation ids as texts, which goes with streams alone, "
                    "not with states that the server keeps",
                    config.correlation->name));
  }
  const Signature signature(config, session);
  const auto takes = [&](const Config::Tensor& tensor) {
    signature.check_input(tensor);
    fed.push_back(tensor.name);
  };
  for (const Config::Tensor& input : config.inputs) takes(input);
  for (const Config::Tensor& control : config.controls) {
    if (signature.input(control.name)) takes(control);
  }
  for (const Config::State& state : config.states) {
    takes(state.input);
    Config::Tensor output = state.input;
    output.name = state.output;
    signature.check_output(output);
  }
  for (const Config::Tensor& output : config.outputs) signature.check_output(output);
  std::vector<std::string> all = fed;
  for (const auto& [name, value] : bound) all.push_back(name);
  signature.check_all_fed(all);
  for (const std::string& name : config.max_batch > 1 ? fed : std::vector<std::string>()) {
    const auto type = signature.input(name);
    if (type->rank() < 1 || type->dim(0) < 0) continue;
    throw InvalidArgument(
        fmt::format("max_batch_size is {}, and the model's input '{}' ({}) takes {} entries; write "
                    "max_batch_size: 0 and all sizes in dims",
                    config.max_batch, name, type->text(), type->dim(0)));
  }
}

void Model::check_stream_inputs(const Signature& signature) {
  for (const Config::Tensor& input : config.inputs) {
    if (input.name == kSnapshot && way == Way::kSequences) {
      if (is_snapshot(input) && input.optional) continue;
      throw InvalidArgument("input 'treadle_state' is to have data_type: TYPE_UINT8, dims: [ -1 ], optional: true");
    }
    if (input.optional) {
      throw InvalidArgument(
          fmt::format("input '{}' is optional, and a stream's inputs come with each request", input.name));
    }
    const auto type = signature.input(input.name);
    signature.check_input(input, type ? time_axis(config, *type, input.name) : -1);
    fed.push_back(input.name);
  }
  for (const Config::Tensor& control : config.controls) {
    if (!signature.input(control.name)) continue;
    signature.check_input(control);
    fed.push_back(control.name);
  }
}

void Model::check_stream_outputs(const Signature& signature, const treadle::Stream& stream) const {
  const std::vector<std::string> given = stream.output_names();
  for (const Config::Tensor& output : config.outputs) {
    if (output.name == kSnapshot && way == Way::kSequences) {
      if (is_snapshot(output)) continue;
      throw InvalidArgument("output 'treadle_state' is to have data_type: TYPE_UINT8, dims: [ -1 ]");
    }
    const auto type = signature.output(output.name);
    if (std::ranges::find(given, output.name) == given.end()) {
      throw InvalidArgument(fmt::format("config.pbtxt has an output '{}'{}, and streams of the model give {}",
                                        output.name, type ? ", which is a state" : "", fmt::join(given, ", ")));
    }
    if (type->element() != output.element) {
      throw InvalidArgument(fmt::format("output '{}' has data_type {} in config.pbtxt, and is {} in the model",
                                        output.name, TRITONSERVER_DataTypeString(type_of(output.element)),
                                        type->text()));
    }
  }
}

// An input in config.pbtxt comes with requests, so it is no state, whatever its name is.
treadle::Stream Model::open_stream() {
  treadle::Stream stream(session, stream_options(*this));
  const std::vector<std::string> states = stream.state_names();
  finds_states = std::ranges::none_of(
      states, [&](const std::string& state) { return std::ranges::find(fed, state) != fed.end(); });
  return finds_states ? std::move(stream) : treadle::Stream(session, stream_options(*this));
}

void Model::check_streams() {
  const Signature signature(config, session);
  check_stream_inputs(signature);
  const treadle::Stream stream = open_stream();
  std::vector<std::string> all = fed;
  for (const auto& [name, value] : bound) all.push_back(name);
  for (const std::string& state : stream.state_names()) all.push_back(state);
  signature.check_all_fed(all);
  check_stream_outputs(signature, stream);
}

treadle::StreamOptions stream_options(const Model& model) {
  treadle::StreamOptions options;
  const Config& config = model.config;
  options.find_pairs(model.finds_states);
  for (const auto& [name, value] : model.bound) options.bind(name, value);
  if (const std::string* text = config.parameter("time")) {
    for (const auto& [name, axis] : assignments("time", *text)) {
      int64_t number = 0;
      const auto read = std::from_chars(axis.data(), axis.data() + axis.size(), number);
      if (read.ec == std::errc() && read.ptr == axis.data() + axis.size()) {
        options.time(name, number);
      } else {
        options.time(name, axis);
      }
    }
  }
  if (const std::string* text = config.parameter("state")) {
    for (const auto& [input, output] : assignments("state", *text)) options.state(input, output);
  }
  options.hop(config.integer("hop", 0, 1), config.integer("context", 0, 0));
  return options;
}

}  // namespace backend

#include "config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "failure.h"
#include "literals.h"
#include "wire.h"

namespace backend {

namespace {

// Parameters that are options of a session (treadle_options_set).
constexpr std::array kSessionOptions = {"associative_math", "denormals", "jit",  "jit_cache", "loop_condition",
                                        "optimize",         "threads",   "tier", "weights",   "weight_files"};
constexpr std::array kOwnParameters = {"bind", "capacity", "context", "hop", "idle_s", "state", "time"};

std::vector<int64_t> integers(const Json& list) {
  std::vector<int64_t> numbers;
  for (const Json& one : list.items()) numbers.push_back(one.integer());
  return numbers;
}

// "TYPE_FP32".
int element_named(const Json& tensor, const std::string& name) {
  const std::string& type = tensor["data_type"].text();
  const std::string short_name = type.starts_with("TYPE_") ? type.substr(5) : type;
  const int element =
      element_of(short_name == "STRING" ? TRITONSERVER_TYPE_BYTES : TRITONSERVER_StringToDataType(short_name.c_str()));
  if (!element) throw InvalidArgument(fmt::format("'{}' has data_type '{}', which treadle does not know", name, type));
  return element;
}

Config::Tensor tensor_said(const Json& json, const char* name_field = "name") {
  Config::Tensor tensor;
  tensor.name = json[name_field].text();
  tensor.element = element_named(json, tensor.name);
  // The server reshapes between callers and the backend.
  tensor.dims = integers(json.has("reshape") ? json["reshape"]["shape"] : json["dims"]);
  tensor.optional = json["optional"].truth();
  return tensor;
}

// Controls have shape [1] for each request; their types follow from the kind.
Config::Tensor control_said(const Json& json) {
  Config::Tensor tensor;
  tensor.name = json["name"].text();
  tensor.dims = {1};
  const Json none;
  const Json& control = json["control"].items().empty() ? none : json["control"].items().front();
  if (control["kind"].text() == "CONTROL_SEQUENCE_CORRID") {
    tensor.element = element_named(control, tensor.name);
  } else if (!control["int32_false_true"].items().empty()) {
    tensor.element = element_of(TRITONSERVER_TYPE_INT32);
  } else if (!control["fp32_false_true"].items().empty()) {
    tensor.element = element_of(TRITONSERVER_TYPE_FP32);
  } else {
    tensor.element = element_of(TRITONSERVER_TYPE_BOOL);
  }
  return tensor;
}

void read_sequences(const Json& json, Config& config) {
  config.in_sequences = true;
  config.server_idle_s = static_cast<double>(json["max_sequence_idle_microseconds"].integer()) * 1e-6;
  if (config.server_idle_s == 0) config.server_idle_s = 1;  // the server's default
  for (const Json& control : json["control_input"].items()) {
    config.controls.push_back(control_said(control));
    const std::vector<Json>& kinds = control["control"].items();
    if (!kinds.empty() && kinds.front()["kind"].text() == "CONTROL_SEQUENCE_CORRID")
      config.correlation = config.controls.back();
  }
  for (const Json& state : json["state"].items()) {
    config.states.push_back({tensor_said(state, "input_name"), state["output_name"].text()});
  }
  if (json["iterative_sequence"].truth()) {
    throw InvalidArgument("sequence_batching has iterative_sequence, which treadle does not do");
  }
}

void check_parameters(const Config& config) {
  for (const auto& parameter : config.parameters) {
    const std::string& name = parameter.first;
    if (name.starts_with("TRITON_")) continue;  // set by the server
    const auto is_name = [&](const char* known) { return name == known; };
    if (std::ranges::any_of(kOwnParameters, is_name) || std::ranges::any_of(kSessionOptions, is_name)) continue;
    throw InvalidArgument(fmt::format("there is no parameter '{}'; there are {}, {}", name,
                                      fmt::join(kOwnParameters, ", "), fmt::join(kSessionOptions, ", ")));
  }
}

}  // namespace

Config Config::read(const Json& json) {
  Config config;
  config.model = json["name"].text();
  config.max_batch = json["max_batch_size"].integer();
  config.file = json["default_model_filename"].text();
  if (config.file.empty()) config.file = "model.onnx";
  for (const Json& input : json["input"].items()) config.inputs.push_back(tensor_said(input));
  for (const Json& output : json["output"].items()) config.outputs.push_back(tensor_said(output));
  for (const auto& [name, value] : json["parameters"].members()) {
    config.parameters.emplace(name, value["string_value"].text());
  }
  if (json.has("sequence_batching")) read_sequences(json["sequence_batching"], config);
  check_parameters(config);
  return config;
}

const std::string* Config::parameter(const std::string& name) const {
  const auto found = parameters.find(name);
  return found == parameters.end() ? nullptr : &found->second;
}

int64_t Config::integer(const std::string& name, int64_t otherwise, int64_t least) const {
  const std::string* text = parameter(name);
  if (!text) return otherwise;
  int64_t value = 0;
  const char* const end = text->data() + text->size();
  const auto read = std::from_chars(text->data(), end, value);
  if (read.ec != std::errc() || read.ptr != end || value < least) {
    throw InvalidArgument(fmt::format("parameter '{}' is to be a number from {} on, and is '{}'", name, least, *text));
  }
  return value;
}

double Config::seconds(const std::string& name, double otherwise) const {
  const std::string* text = parameter(name);
  if (!text) return otherwise;
  char* end = nullptr;
  const double value = std::strtod(text->c_str(), &end);
  if (text->empty() || *end || !(value > 0) || !std::isfinite(value)) {
    throw InvalidArgument(fmt::format("parameter '{}' is to be a number of seconds, and is '{}'", name, *text));
  }
  return value;
}

treadle::SessionOptions session_options(const Config& config) {
  treadle::SessionOptions options;
  options.threads(1);  // several instances use several processors
  for (const char* name : kSessionOptions) {
    if (const std::string* value = config.parameter(name)) options.set(name, *value);
  }
  return options;
}

treadle::Feeds bound_inputs(const Config& config, const treadle::Session& session) {
  treadle::Feeds feeds;
  const std::string* text = config.parameter("bind");
  if (!text) return feeds;
  const Signature signature(config, session);
  for (const auto& [name, literal] : assignments("bind", *text)) {
    const auto type = signature.input(name);
    if (!type) throw InvalidArgument(fmt::format("parameter 'bind' names '{}', and the model has no such input", name));
    feeds.emplace_back(name, literal_value(*type, name, literal));
  }
  return feeds;
}

Signature::Signature(const Config& config, const treadle::Session& session) : config_(config), session_(session) {}

std::optional<treadle::Type> Signature::input(const std::string& name) const {
  for (const treadle_role role : {TREADLE_INPUT, TREADLE_OVERRIDABLE}) {
    for (size_t i = 0; i < session_.count(role); ++i) {
      if (session_.name(role, i) == name) return session_.type(role, i);
    }
  }
  return std::nullopt;
}

std::optional<treadle::Type> Signature::output(const std::string& name) const {
  for (size_t i = 0; i < session_.count(TREADLE_OUTPUT); ++i) {
    if (session_.name(TREADLE_OUTPUT, i) == name) return session_.type(TREADLE_OUTPUT, i);
  }
  return std::nullopt;
}

void Signature::check_tensor(const char* what, const Config::Tensor& tensor, const treadle::Type& type,
                             int64_t any_axis) const {
  if (type.kind() != TREADLE_TENSOR) {
    throw InvalidArgument(fmt::format("{} '{}' is a {} in the model, and requests and responses hold tensors alone",
                                      what, tensor.name, type.name()));
  }
  if (type.element() != tensor.element) {
    throw InvalidArgument(fmt::format("{} '{}' has data_type {} in config.pbtxt, and is {} in the model", what,
                                      tensor.name, TRITONSERVER_DataTypeString(type_of(tensor.element)), type.text()));
  }
  if (type.rank() < 0) return;
  std::vector<int64_t> dims = tensor.dims;
  if (config_.max_batch > 0) dims.insert(dims.begin(), -1);
  bool fits = static_cast<int64_t>(dims.size()) == type.rank();
  for (int64_t axis = 0; fits && axis < type.rank(); ++axis) {
    const int64_t said = dims[static_cast<size_t>(axis)], known = type.dim(axis);
    fits = axis == any_axis || said < 0 || known < 0 || said == known;
  }
  if (!fits) {
    throw InvalidArgument(fmt::format(
        "{} '{}' has dims {}{} in config.pbtxt, and is {} in the model", what, tensor.name, shape_text(tensor.dims),
        config_.max_batch > 0 ? " behind the batch (max_batch_size is above 0)" : "", type.text()));
  }
}

void Signature::check_input(const Config::Tensor& tensor, int64_t any_axis) const {
  const auto type = input(tensor.name);
  if (!type) {
    std::vector<std::string> names;
    for (size_t i = 0; i < session_.count(TREADLE_INPUT); ++i) names.push_back(session_.name(TREADLE_INPUT, i));
    throw InvalidArgument(fmt::format("config.pbtxt has an input '{}', and the model has inputs {}", tensor.name,
                                      fmt::join(names, ", ")));
  }
  check_tensor("input", tensor, *type, any_axis);
}

void Signature::check_output(const Config::Tensor& tensor) const {
  const auto type = output(tensor.name);
  if (!type) {
    std::vector<std::string> names;
    for (size_t i = 0; i < session_.count(TREADLE_OUTPUT); ++i) names.push_back(session_.name(TREADLE_OUTPUT, i));
    throw InvalidArgument(fmt::format("config.pbtxt has an output '{}', and the model has outputs {}", tensor.name,
                                      fmt::join(names, ", ")));
  }
  check_tensor("output", tensor, *type, -1);
}

void Signature::check_all_fed(const std::vector<std::string>& fed) const {
  for (size_t i = 0; i < session_.count(TREADLE_INPUT); ++i) {
    const std::string name = session_.name(TREADLE_INPUT, i);
    if (std::ranges::find(fed, name) != fed.end()) continue;
    throw InvalidArgument(
        fmt::format("nothing gives the model's input '{}' ({}): name it among the inputs of config.pbtxt, "
                    "or bind it by the parameter 'bind'",
                    name, session_.type(TREADLE_INPUT, i).text()));
  }
}

}  // namespace backend

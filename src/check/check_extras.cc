// Training information, and how a model is spread over devices.
#include "check/walk.h"

namespace treadle::checking {

// The training graph is the model's graph with the algorithm's graph behind it, so the algorithm sees all names of the
// model. They are still in scope here.
void Walk::check_training(const wire::TrainingInfoProto& training, size_t index) {
  note_feature(7, {}, "training information");
  std::unordered_set<std::string_view> initializers;
  for (const wire::TensorProto& tensor : model_->graph->initializers) initializers.insert(tensor.name);
  if (training.initialization) {
    if (!training.initialization->inputs.empty()) {
      report(Problem::kTrainingInvalid, {}, "the initialization graph of training information {} has inputs", index);
    }
    NameTable names;
    NameTable* const outer = std::exchange(names_, &names);
    std::vector<Frame> frames = std::exchange(frames_, {});
    check_body(*training.initialization, fmt::format("training_info[{}].initialization", index));
    frames_ = std::move(frames);
    names_ = outer;
  }
  if (training.algorithm) {
    for (const wire::TensorProto& tensor : training.algorithm->initializers) initializers.insert(tensor.name);
    check_body(*training.algorithm, fmt::format("training_info[{}].algorithm", index));
  }
  check_bindings(training.initialization_bindings, training.initialization, initializers, "initialization_binding");
  check_bindings(training.update_bindings, training.algorithm, initializers, "update_binding");
}

void Walk::check_bindings(const wire::List<wire::StringStringEntry>& bindings, const wire::GraphProto* graph,
                          const std::unordered_set<std::string_view>& initializers, std::string_view what) {
  std::unordered_set<std::string_view> outputs, bound;
  if (graph) {
    for (const wire::ValueInfoProto& output : graph->outputs) outputs.insert(output.name);
  }
  for (const wire::StringStringEntry& binding : bindings) {
    if (!initializers.contains(binding.key)) {
      report(Problem::kTrainingInvalid, binding.key, "{} sets {}, which is no initializer", what, quoted(binding.key));
    }
    if (!bound.insert(binding.key).second) {
      report(Problem::kTrainingInvalid, binding.key, "{} sets {} twice", what, quoted(binding.key));
    }
    if (!outputs.contains(binding.value)) {
      report(Problem::kTrainingInvalid, binding.value, "{} takes {}, which is no output of its graph", what,
             quoted(binding.value));
    }
  }
}

// ---- Devices

void Walk::check_configurations() {
  if (!model_->configurations.empty()) note_feature(11, model_->configurations[0], "device configurations");
  for (const std::string_view bytes : model_->configurations) {
    auto parsed = wire::parse_device_configuration(bytes);
    if (!parsed.ok()) {
      report(Problem::kFileInvalid, bytes, "a device configuration: {}", parsed.error().to_string());
      continue;
    }
    const wire::DeviceConfigurationProto& configuration = **parsed;
    if (configuration.name.empty()) report(Problem::kNameMissing, bytes, "a device configuration has no name");
    check_text(configuration.name, "a device configuration's name");
    if (configuration.num_devices < 1) {
      Diagnostic& d = report(Problem::kDeviceInvalid, configuration.name,
                             "device configuration {}: its number of devices", quoted(configuration.name));
      d.expected = "1 or more";
      d.found = std::to_string(configuration.num_devices);
    } else if (!configuration.devices.empty() &&
               configuration.devices.size() != static_cast<size_t>(configuration.num_devices)) {
      Diagnostic& d = report(Problem::kDeviceInvalid, configuration.name,
                             "device configuration {}: the names of its devices", quoted(configuration.name));
      d.expected = std::to_string(configuration.num_devices);
      d.found = std::to_string(configuration.devices.size());
    }
    const std::string_view name = configuration.name;
    if (!configurations_.emplace(name, std::move(*parsed)).second) {
      report(Problem::kDeviceInvalid, name, "two device configurations are called {}", quoted(name));
    }
  }
}

namespace {

bool takes_or_makes(const wire::NodeProto& node, std::string_view name) {
  for (const std::string_view input : node.inputs) {
    if (input == name) return true;
  }
  for (const std::string_view output : node.outputs) {
    if (output == name) return true;
  }
  return false;
}

}  // namespace

void Walk::check_node_devices(const wire::NodeProto& node) {
  note_feature(11, node.op_type, "device configurations");
  for (const std::string_view bytes : node.device_configurations) {
    auto parsed = wire::parse_node_device_configuration(bytes);
    if (!parsed.ok()) {
      report(Problem::kFileInvalid, bytes, "a device configuration: {}", parsed.error().to_string());
      continue;
    }
    const auto configuration = configurations_.find((*parsed)->configuration_id);
    if (configuration == configurations_.end()) {
      report(Problem::kDeviceInvalid, (*parsed)->configuration_id, "the model has no device configuration {}",
             quoted((*parsed)->configuration_id));
    }
    if ((*parsed)->pipeline_stage && *(*parsed)->pipeline_stage < 0) {
      report(Problem::kDeviceInvalid, (*parsed)->configuration_id, "pipeline stage {} is negative",
             *(*parsed)->pipeline_stage);
    }
    for (const wire::ShardingSpec& spec : (*parsed)->sharding_specs) {
      check_sharding(node, spec, configuration == configurations_.end() ? nullptr : &*configuration->second);
    }
  }
}

void Walk::check_sharding(const wire::NodeProto& node, const wire::ShardingSpec& spec,
                          const wire::DeviceConfigurationProto* configuration) {
  if (!takes_or_makes(node, spec.tensor_name)) {
    report(Problem::kDeviceInvalid, spec.tensor_name, "{} is sharded, but is neither input nor output of the node",
           quoted(spec.tensor_name));
  }
  std::unordered_set<int64_t> groups;
  for (const wire::DeviceGroup& group : spec.groups) groups.insert(group.key);
  for (const int64_t device : spec.devices) {
    const bool is_device = device >= 0 && (!configuration || device < configuration->num_devices);
    if (is_device || groups.contains(device)) continue;
    report(Problem::kDeviceInvalid, spec.tensor_name,
           "{} is sharded over device {}, which is neither a device nor a group", quoted(spec.tensor_name), device);
  }
  for (const wire::ShardedDim& dim : spec.sharded_dims) {
    if (!dim.axis)
      report(Problem::kDeviceInvalid, spec.tensor_name, "a sharded size of {} has no axis", quoted(spec.tensor_name));
    for (const wire::SimpleShardedDim& simple : dim.simple_shardings) {
      if (simple.num_shards && *simple.num_shards >= 1) continue;
      Diagnostic& d =
          report(Problem::kDeviceInvalid, spec.tensor_name, "the number of shards of {}", quoted(spec.tensor_name));
      d.expected = "1 or more";
      d.found = simple.num_shards ? std::to_string(*simple.num_shards) : "none";
    }
  }
}

}  // namespace treadle::checking

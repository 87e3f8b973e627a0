#pragma once
// The messages of ModelProto.configuration and NodeProto.device_configurations: how a model is spread over devices.

#include "wire/parse.h"

namespace treadle::wire {

struct DeviceConfigurationProto {
  std::string_view name;
  int32_t num_devices = 0;
  List<std::string_view> devices;
  UnknownFields unknown;

  template <class Self, class F>
  static void fields(Self& m, F& f) {
    f(1, "name", m.name);
    f(2, "num_devices", m.num_devices);
    f(3, "device", m.devices);
  }
};

struct SimpleShardedDim {
  std::optional<int64_t> value;
  std::string_view param;
  std::optional<int64_t> num_shards;
  UnknownFields unknown;

  template <class Self, class F>
  static void fields(Self& m, F& f) {
    f(1, "dim_value", m.value);
    f(2, "dim_param", m.param);
    f(3, "num_shards", m.num_shards);
  }
};

struct ShardedDim {
  std::optional<int64_t> axis;
  List<SimpleShardedDim> simple_shardings;
  UnknownFields unknown;

  template <class Self, class F>
  static void fields(Self& m, F& f) {
    f(1, "axis", m.axis);
    f(2, "simple_sharding", m.simple_shardings);
  }
};

struct DeviceGroup {
  int64_t key = 0;
  List<int64_t> devices;
  UnknownFields unknown;

  template <class Self, class F>
  static void fields(Self& m, F& f) {
    f(1, "key", m.key);
    f(2, "value", m.devices);
  }
};

struct ShardingSpec {
  std::string_view tensor_name;
  List<int64_t> devices;  // indices, or keys of `groups`
  List<DeviceGroup> groups;
  List<ShardedDim> sharded_dims;
  UnknownFields unknown;

  template <class Self, class F>
  static void fields(Self& m, F& f) {
    f(1, "tensor_name", m.tensor_name);
    f(2, "device", m.devices);
    f(3, "index_to_device_group_map", m.groups);
    f(4, "sharded_dim", m.sharded_dims);
  }
};

struct NodeDeviceConfiguration {
  std::string_view configuration_id;
  List<ShardingSpec> sharding_specs;
  std::optional<int32_t> pipeline_stage;
  UnknownFields unknown;

  template <class Self, class F>
  static void fields(Self& m, F& f) {
    f(1, "configuration_id", m.configuration_id);
    f(2, "sharding_spec", m.sharding_specs);
    f(3, "pipeline_stage", m.pipeline_stage);
  }
};

Result<Parsed<DeviceConfigurationProto>> parse_device_configuration(std::string_view bytes, Limits limits = {});
Result<Parsed<NodeDeviceConfiguration>> parse_node_device_configuration(std::string_view bytes, Limits limits = {});

}  // namespace treadle::wire

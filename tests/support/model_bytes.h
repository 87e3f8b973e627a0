#pragma once
// ONNX messages as bytes, for tests that build small models by hand.

#include <string_view>
#include <vector>

#include "support/proto_bytes.h"

namespace treadle::onnx_bytes {

using Names = std::vector<std::string_view>;

inline ProtoBytes int_attribute(std::string_view name, int64_t value) {
  return ProtoBytes().bytes(1, name).varint(3, static_cast<uint64_t>(value)).varint(20, 2);
}
inline ProtoBytes float_attribute(std::string_view name, float value) {
  return ProtoBytes().bytes(1, name).fixed32(2, value).varint(20, 1);
}
inline ProtoBytes ints_attribute(std::string_view name, const std::vector<int64_t>& values) {
  ProtoBytes bytes;
  bytes.bytes(1, name).varint(20, 7);
  for (const int64_t value : values) bytes.varint(8, static_cast<uint64_t>(value));
  return bytes;
}
inline ProtoBytes string_attribute(std::string_view name, std::string_view value) {
  return ProtoBytes().bytes(1, name).bytes(4, value).varint(20, 3);
}
inline ProtoBytes graph_attribute(std::string_view name, const ProtoBytes& graph) {
  return ProtoBytes().bytes(1, name).message(6, graph).varint(20, 5);
}
inline ProtoBytes tensor_attribute(std::string_view name, const ProtoBytes& tensor) {
  return ProtoBytes().bytes(1, name).message(5, tensor).varint(20, 4);
}
// An attribute whose value is the parameter `parameter` of the enclosing function. `type`: AttributeProto.type.
inline ProtoBytes reference_attribute(std::string_view name, std::string_view parameter, uint64_t type) {
  return ProtoBytes().bytes(1, name).bytes(21, parameter).varint(20, type);
}

inline ProtoBytes node(std::string_view op, const Names& inputs, const Names& outputs,
                       const std::vector<ProtoBytes>& attributes = {}, std::string_view name = "",
                       std::string_view domain = "") {
  ProtoBytes bytes;
  for (const std::string_view input : inputs) bytes.bytes(1, input);
  for (const std::string_view output : outputs) bytes.bytes(2, output);
  if (!name.empty()) bytes.bytes(3, name);
  bytes.bytes(4, op);
  for (const ProtoBytes& attribute : attributes) bytes.message(5, attribute);
  if (!domain.empty()) bytes.bytes(7, domain);
  return bytes;
}

// A tensor of `type` (TensorProto.DataType) with raw data.
inline ProtoBytes tensor(std::string_view name, uint64_t type, const std::vector<int64_t>& dims, std::string_view raw) {
  ProtoBytes bytes;
  for (const int64_t dim : dims) bytes.varint(1, static_cast<uint64_t>(dim));
  return bytes.varint(2, type).bytes(8, name).bytes(9, raw);
}

// A tensor value; a dimension is a number or a name.
inline ProtoBytes value(std::string_view name, uint64_t type = 1, const Names& dims = {"N"}) {
  ProtoBytes shape;
  for (const std::string_view dim : dims) {
    const bool number = !dim.empty() && (dim[0] == '-' || (dim[0] >= '0' && dim[0] <= '9'));
    shape.message(1, number ? ProtoBytes().varint(1, static_cast<uint64_t>(std::stoll(std::string(dim))))
                            : ProtoBytes().bytes(2, dim));
  }
  return ProtoBytes().bytes(1, name).message(2,
                                             ProtoBytes().message(1, ProtoBytes().varint(1, type).message(2, shape)));
}

struct GraphParts {
  std::vector<ProtoBytes> nodes = {};
  std::vector<ProtoBytes> inputs = {}, outputs = {};
  std::vector<ProtoBytes> initializers = {}, sparse_initializers = {}, value_infos = {};
};

inline ProtoBytes graph(const GraphParts& parts) {
  ProtoBytes bytes;
  for (const ProtoBytes& n : parts.nodes) bytes.message(1, n);
  bytes.bytes(2, "g");
  for (const ProtoBytes& t : parts.initializers) bytes.message(5, t);
  for (const ProtoBytes& v : parts.inputs) bytes.message(11, v);
  for (const ProtoBytes& v : parts.outputs) bytes.message(12, v);
  for (const ProtoBytes& v : parts.value_infos) bytes.message(13, v);
  for (const ProtoBytes& t : parts.sparse_initializers) bytes.message(15, t);
  return bytes;
}

inline ProtoBytes opset(std::string_view domain, int64_t version) {
  return ProtoBytes().bytes(1, domain).varint(2, static_cast<uint64_t>(version));
}

struct FunctionParts {
  std::string_view name;
  Names inputs = {}, outputs = {};
  std::vector<ProtoBytes> nodes = {};
  Names attributes = {};
  std::vector<ProtoBytes> attribute_defaults = {};
  std::vector<ProtoBytes> opsets = {opset("", 17), opset("local", 1)};
  std::string_view domain = "local";
};

inline ProtoBytes function(const FunctionParts& parts) {
  ProtoBytes bytes;
  bytes.bytes(1, parts.name);
  for (const std::string_view input : parts.inputs) bytes.bytes(4, input);
  for (const std::string_view output : parts.outputs) bytes.bytes(5, output);
  for (const std::string_view attribute : parts.attributes) bytes.bytes(6, attribute);
  for (const ProtoBytes& n : parts.nodes) bytes.message(7, n);
  for (const ProtoBytes& o : parts.opsets) bytes.message(9, o);
  bytes.bytes(10, parts.domain);
  for (const ProtoBytes& attribute : parts.attribute_defaults) bytes.message(11, attribute);
  return bytes;
}

inline std::string model_bytes(const ProtoBytes& graph, const std::vector<ProtoBytes>& functions = {},
                               const std::vector<ProtoBytes>& opsets = {opset("", 17), opset("local", 1)},
                               int64_t ir_version = 8) {
  ProtoBytes bytes;
  bytes.varint(1, static_cast<uint64_t>(ir_version)).bytes(2, "hand").message(7, graph);
  for (const ProtoBytes& o : opsets) bytes.message(8, o);
  bytes.message(14, ProtoBytes().bytes(1, "key").bytes(2, "value"));
  for (const ProtoBytes& f : functions) bytes.message(25, f);
  return bytes.str();
}

}  // namespace treadle::onnx_bytes

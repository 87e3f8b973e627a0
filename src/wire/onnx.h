#pragma once
// The messages of an ONNX file (onnx.proto, IR versions 1 to 14) as plain structs. Each lists its fields once, by
// number and name; reader, writer and the places in errors are generated from the list. Text and data are views into
// the file.
//
// Messages that treadle passes on but does not look into (training, devices) stay raw bytes. All structs are plain
// data: lists and optional messages lie in an arena, which belongs to the reader or to the code that builds a message.

#include <cstdint>
#include <optional>
#include <string_view>

#include "wire/fields.h"
#include "wire/list.h"
#include "wire/runs.h"

namespace treadle::wire {

struct GraphProto;
struct SequenceProto;
struct MapProto;
struct TypeProto;

struct StringStringEntry {
  std::string_view key, value;
  UnknownFields unknown;

  template <class Self, class F>
  static void fields(Self& m, F& f) {
    f(1, "key", m.key);
    f(2, "value", m.value);
  }
};

struct OperatorSetId {
  std::string_view domain;
  Field<int64_t> version;
  UnknownFields unknown;

  template <class Self, class F>
  static void fields(Self& m, F& f) {
    f(1, "domain", m.domain);
    f(2, "version", m.version);
  }
};

// ---- Types

struct Dimension {
  std::optional<int64_t> value;
  std::string_view param;  // name of a symbolic size; empty with `value` absent: unknown
  std::string_view denotation;
  UnknownFields unknown;

  template <class Self, class F>
  static void fields(Self& m, F& f) {
    f(1, "dim_value", m.value);
    f(2, "dim_param", m.param);
    f(3, "denotation", m.denotation);
  }
};

struct ShapeProto {
  List<Dimension> dims;
  UnknownFields unknown;

  template <class Self, class F>
  static void fields(Self& m, F& f) {
    f(1, "dim", m.dims);
  }
};

struct TensorTypeProto {
  Field<int32_t> elem_type;
  std::optional<ShapeProto> shape;  // absent: unknown rank
  UnknownFields unknown;

  template <class Self, class F>
  static void fields(Self& m, F& f) {
    f(1, "elem_type", m.elem_type);
    f(2, "shape", m.shape);
  }
};

struct ElementTypeProto {  // of a sequence or an optional
  TypeProto* elem_type = nullptr;
  UnknownFields unknown;

  template <class Self, class F>
  static void fields(Self& m, F& f) {
    f(1, "elem_type", m.elem_type);
  }
};

struct MapTypeProto {
  Field<int32_t> key_type;
  TypeProto* value_type = nullptr;
  UnknownFields unknown;

  template <class Self, class F>
  static void fields(Self& m, F& f) {
    f(1, "key_type", m.key_type);
    f(2, "value_type", m.value_type);
  }
};

struct OpaqueTypeProto {
  std::string_view domain, name;
  UnknownFields unknown;

  template <class Self, class F>
  static void fields(Self& m, F& f) {
    f(1, "domain", m.domain);
    f(2, "name", m.name);
  }
};

struct TypeProto {  // one of these is set; none: unknown
  std::optional<TensorTypeProto> tensor;
  ElementTypeProto *sequence = nullptr, *optional = nullptr;
  MapTypeProto* map = nullptr;
  OpaqueTypeProto* opaque = nullptr;
  TensorTypeProto* sparse_tensor = nullptr;
  std::string_view denotation;
  UnknownFields unknown;

  template <class Self, class F>
  static void fields(Self& m, F& f) {
    f(1, "tensor_type", m.tensor);
    f(4, "sequence_type", m.sequence);
    f(5, "map_type", m.map);
    f(6, "denotation", m.denotation);
    f(7, "opaque_type", m.opaque);
    f(8, "sparse_tensor_type", m.sparse_tensor);
    f(9, "optional_type", m.optional);
  }
};

struct ValueInfoProto {
  std::string_view name, doc_string;
  std::optional<TypeProto> type;
  List<StringStringEntry> metadata_props;
  UnknownFields unknown;

  template <class Self, class F>
  static void fields(Self& m, F& f) {
    f(1, "name", m.name);
    f(2, "type", m.type);
    f(3, "doc_string", m.doc_string);
    f(4, "metadata_props", m.metadata_props);
  }
};

// ---- Values

struct TensorProto {
  enum Location : int32_t { kInline = 0, kExternal = 1 };

  std::string_view name, doc_string;
  List<int64_t> dims;
  Field<int32_t> data_type;
  Field<int32_t> data_location;  // a Location
  std::optional<std::string_view> raw_data;
  std::optional<std::string_view> segment;  // raw bytes; no known producer writes it
  Runs<float> float_data;
  Runs<double> double_data;
  Runs<int32_t> int32_data;
  Runs<int64_t> int64_data;
  Runs<uint64_t> uint64_data;
  Runs<std::string_view> string_data;
  List<StringStringEntry> external_data;
  List<StringStringEntry> metadata_props;
  UnknownFields unknown;

  template <class Self, class F>
  static void fields(Self& m, F& f) {
    f(1, "dims", m.dims);
    f(2, "data_type", m.data_type);
    f(3, "segment", m.segment);
    f(4, "float_data", m.float_data);
    f(5, "int32_data", m.int32_data);
    f(6, "string_data", m.string_data);
    f(7, "int64_data", m.int64_data);
    f(8, "name", m.name);
    f(9, "raw_data", m.raw_data);
    f(10, "double_data", m.double_data);
    f(11, "uint64_data", m.uint64_data);
    f(12, "doc_string", m.doc_string);
    f(13, "external_data", m.external_data);
    f(14, "data_location", m.data_location);
    f(16, "metadata_props", m.metadata_props);
  }
};

struct SparseTensorProto {
  TensorProto values, indices;
  List<int64_t> dims;
  UnknownFields unknown;

  template <class Self, class F>
  static void fields(Self& m, F& f) {
    f(1, "values", m.values);
    f(2, "indices", m.indices);
    f(3, "dims", m.dims);
  }
};

// The numbers of SequenceProto.elem_type and OptionalProto.elem_type.
enum ValueKind : int32_t {
  kUndefinedValue = 0,
  kTensorValue = 1,
  kSparseTensorValue = 2,
  kSequenceValue = 3,
  kMapValue = 4,
  kOptionalValue = 5,
};

struct OptionalProto {
  std::string_view name;
  Field<int32_t> elem_type;  // a ValueKind
  TensorProto* tensor = nullptr;
  SparseTensorProto* sparse_tensor = nullptr;
  SequenceProto* sequence = nullptr;
  MapProto* map = nullptr;
  OptionalProto* optional = nullptr;
  UnknownFields unknown;

  template <class Self, class F>
  static void fields(Self& m, F& f) {
    f(1, "name", m.name);
    f(2, "elem_type", m.elem_type);
    f(3, "tensor_value", m.tensor);
    f(4, "sparse_tensor_value", m.sparse_tensor);
    f(5, "sequence_value", m.sequence);
    f(6, "map_value", m.map);
    f(7, "optional_value", m.optional);
  }
};

struct SequenceProto {
  std::string_view name;
  Field<int32_t> elem_type;  // a ValueKind
  List<TensorProto> tensors;
  List<SparseTensorProto> sparse_tensors;
  List<SequenceProto> sequences;
  List<MapProto> maps;
  List<OptionalProto> optionals;
  UnknownFields unknown;

  template <class Self, class F>
  static void fields(Self& m, F& f) {
    f(1, "name", m.name);
    f(2, "elem_type", m.elem_type);
    f(3, "tensor_values", m.tensors);
    f(4, "sparse_tensor_values", m.sparse_tensors);
    f(5, "sequence_values", m.sequences);
    f(6, "map_values", m.maps);
    f(7, "optional_values", m.optionals);
  }
};

struct MapProto {
  std::string_view name;
  Field<int32_t> key_type;
  List<int64_t> keys;
  List<std::string_view> string_keys;
  SequenceProto values;
  UnknownFields unknown;

  template <class Self, class F>
  static void fields(Self& m, F& f) {
    f(1, "name", m.name);
    f(2, "key_type", m.key_type);
    f(3, "keys", m.keys);
    f(4, "string_keys", m.string_keys);
    f(5, "values", m.values);
  }
};

// ---- Graphs

struct AttributeProto {
  enum Type : int32_t {
    kUndefined = 0,  // files of IR version 1: the field that is present decides
    kFloat = 1,
    kInt = 2,
    kString = 3,
    kTensor = 4,
    kGraph = 5,
    kFloats = 6,
    kInts = 7,
    kStrings = 8,
    kTensors = 9,
    kGraphs = 10,
    kSparseTensor = 11,
    kSparseTensors = 12,
    kTypeProto = 13,
    kTypeProtos = 14,
  };

  std::string_view name, ref_attr_name, doc_string;
  Field<int32_t> type;  // a Type
  std::optional<float> f;
  std::optional<int64_t> i;
  std::optional<std::string_view> s;
  TensorProto* t = nullptr;
  GraphProto* g = nullptr;
  SparseTensorProto* sparse_tensor = nullptr;
  TypeProto* tp = nullptr;
  List<float> floats;
  List<int64_t> ints;
  List<std::string_view> strings;
  List<TensorProto> tensors;
  List<GraphProto> graphs;
  List<SparseTensorProto> sparse_tensors;
  List<TypeProto> type_protos;
  UnknownFields unknown;

  template <class Self, class F>
  static void fields(Self& m, F& f) {
    f(1, "name", m.name);
    f(2, "f", m.f);
    f(3, "i", m.i);
    f(4, "s", m.s);
    f(5, "t", m.t);
    f(6, "g", m.g);
    f(7, "floats", m.floats);
    f(8, "ints", m.ints);
    f(9, "strings", m.strings);
    f(10, "tensors", m.tensors);
    f(11, "graphs", m.graphs);
    f(13, "doc_string", m.doc_string);
    f(14, "tp", m.tp);
    f(15, "type_protos", m.type_protos);
    f(20, "type", m.type);
    f(21, "ref_attr_name", m.ref_attr_name);
    f(22, "sparse_tensor", m.sparse_tensor);
    f(23, "sparse_tensors", m.sparse_tensors);
  }
};

struct NodeProto {
  List<std::string_view> inputs, outputs;
  std::string_view name, op_type, domain, overload, doc_string;
  List<AttributeProto> attributes;
  List<StringStringEntry> metadata_props;
  List<std::string_view> device_configurations;  // raw
  UnknownFields unknown;

  template <class Self, class F>
  static void fields(Self& m, F& f) {
    f(1, "input", m.inputs);
    f(2, "output", m.outputs);
    f(3, "name", m.name);
    f(4, "op_type", m.op_type);
    f(5, "attribute", m.attributes);
    f(6, "doc_string", m.doc_string);
    f(7, "domain", m.domain);
    f(8, "overload", m.overload);
    f(9, "metadata_props", m.metadata_props);
    f(10, "device_configurations", m.device_configurations);
  }
};

struct TensorAnnotation {
  std::string_view tensor_name;
  List<StringStringEntry> quant_parameter_tensor_names;
  UnknownFields unknown;

  template <class Self, class F>
  static void fields(Self& m, F& f) {
    f(1, "tensor_name", m.tensor_name);
    f(2, "quant_parameter_tensor_names", m.quant_parameter_tensor_names);
  }
};

struct GraphProto {
  List<NodeProto> nodes;
  std::string_view name, doc_string;
  List<TensorProto> initializers;
  List<SparseTensorProto> sparse_initializers;
  List<ValueInfoProto> inputs, outputs, value_infos;
  List<TensorAnnotation> quantization_annotations;
  List<StringStringEntry> metadata_props;
  UnknownFields unknown;

  template <class Self, class F>
  static void fields(Self& m, F& f) {
    f(1, "node", m.nodes);
    f(2, "name", m.name);
    f(5, "initializer", m.initializers);
    f(10, "doc_string", m.doc_string);
    f(11, "input", m.inputs);
    f(12, "output", m.outputs);
    f(13, "value_info", m.value_infos);
    f(14, "quantization_annotation", m.quantization_annotations);
    f(15, "sparse_initializer", m.sparse_initializers);
    f(16, "metadata_props", m.metadata_props);
  }
};

struct FunctionProto {
  std::string_view name, domain, overload, doc_string;
  List<std::string_view> inputs, outputs;
  List<std::string_view> attributes;      // names of attributes without a default
  List<AttributeProto> attribute_protos;  // attributes with a default
  List<NodeProto> nodes;
  List<OperatorSetId> opset_imports;
  List<ValueInfoProto> value_infos;
  List<StringStringEntry> metadata_props;
  UnknownFields unknown;

  template <class Self, class F>
  static void fields(Self& m, F& f) {
    f(1, "name", m.name);
    f(4, "input", m.inputs);
    f(5, "output", m.outputs);
    f(6, "attribute", m.attributes);
    f(7, "node", m.nodes);
    f(8, "doc_string", m.doc_string);
    f(9, "opset_import", m.opset_imports);
    f(10, "domain", m.domain);
    f(11, "attribute_proto", m.attribute_protos);
    f(12, "value_info", m.value_infos);
    f(13, "overload", m.overload);
    f(14, "metadata_props", m.metadata_props);
  }
};

struct ModelProto {
  Field<int64_t> ir_version;
  List<OperatorSetId> opset_imports;
  std::string_view producer_name, producer_version, domain, doc_string;
  Field<int64_t> model_version;
  GraphProto* graph = nullptr;
  List<StringStringEntry> metadata_props;
  List<std::string_view> training_infos;  // raw
  List<FunctionProto> functions;
  List<std::string_view> configurations;  // raw
  UnknownFields unknown;

  template <class Self, class F>
  static void fields(Self& m, F& f) {
    f(1, "ir_version", m.ir_version);
    f(2, "producer_name", m.producer_name);
    f(3, "producer_version", m.producer_version);
    f(4, "domain", m.domain);
    f(5, "model_version", m.model_version);
    f(6, "doc_string", m.doc_string);
    f(7, "graph", m.graph);
    f(8, "opset_import", m.opset_imports);
    f(14, "metadata_props", m.metadata_props);
    f(20, "training_info", m.training_infos);
    f(25, "functions", m.functions);
    f(26, "configuration", m.configurations);
  }
};

}  // namespace treadle::wire

#include "model/ort_file.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "model/node_order.h"
#include "wire/flat_buffer.h"
#include "wire/onnx.h"
#include "wire/serialize.h"

namespace treadle::model {

namespace {

using wire::FlatBuffer;
using Table = FlatBuffer::Table;
using Vector = FlatBuffer::Vector;

constexpr std::string_view kIdentifier = "ORTM";
constexpr std::array<std::string_view, 3> kVersions = {"4", "5", "6"};

// Numbers of the fields that are needed, by table; they are the same in all of these versions.
struct FileField {
  enum : unsigned { kVersion = 0, kModel = 1 };
};
struct ModelField {
  enum : unsigned {
    kIrVersion = 0,
    kOpsetImports = 1,
    kProducerName = 2,
    kProducerVersion = 3,
    kDomain = 4,
    kModelVersion = 5,
    kDocString = 6,
    kGraph = 7,
    kGraphDocString = 8,
    kMetadata = 9,
  };
};
struct GraphField {
  enum : unsigned { kInitializers = 0, kValues = 1, kNodes = 2, kInputs = 5, kOutputs = 6, kSparseInitializers = 7 };
};
struct NodeField {
  enum : unsigned {
    kName = 0,
    kDocString = 1,
    kDomain = 2,
    kOperator = 5,
    kKind = 6,
    kInputs = 8,
    kOutputs = 9,
    kAttributes = 10,
  };
};
struct AttributeField {
  enum : unsigned {
    kName = 0,
    kDocString = 1,
    kType = 2,
    kFloat = 3,
    kInt = 4,
    kString = 5,
    kTensor = 6,
    kGraph = 7,
    kFloats = 8,
    kInts = 9,
    kStrings = 10,
    kTensors = 11,
    kGraphs = 12,
  };
};
struct TensorField {
  enum : unsigned { kName = 0, kDocString = 1, kDims = 2, kType = 3, kRaw = 4, kStrings = 5, kExternalOffset = 6 };
};
struct SparseField {
  enum : unsigned { kValues = 0, kIndices = 1, kDims = 2 };
};
struct ValueField {
  enum : unsigned { kName = 0, kDocString = 1, kType = 2 };
};
struct TypeField {
  enum : unsigned { kDenotation = 0, kKind = 1, kValue = 2 };
  enum Kind : uint8_t { kTensor = 1, kSequence = 2, kMap = 3 };
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : file_(bytes) {}

  Result<std::string> read() {
    const Table root = file_.root();
    if (!file_.ok()) return file_.take_status();
    const std::string_view version = file_.text(root, FileField::kVersion);
    if (std::find(kVersions.begin(), kVersions.end(), version) == kVersions.end()) {
      return error(Code::kNotImplemented,
                   "the file is of version \"{}\" of onnxruntime's format; treadle reads versions {} to {}", version,
                   kVersions.front(), kVersions.back());
    }
    wire::ModelProto model;
    read_model(file_.table(root, FileField::kModel), model);
    TREADLE_TRY(file_.take_status());
    TREADLE_TRY(std::move(refusal_));
    return wire::serialize(model);
  }

 private:
  static constexpr int kMostNested = 200;

  void read_model(const Table& from, wire::ModelProto& model) {
    model.ir_version = file_.number<int64_t>(from, ModelField::kIrVersion);
    model.model_version = file_.number<int64_t>(from, ModelField::kModelVersion);
    model.producer_name = file_.text(from, ModelField::kProducerName);
    model.producer_version = file_.text(from, ModelField::kProducerVersion);
    model.domain = file_.text(from, ModelField::kDomain);
    model.doc_string = file_.text(from, ModelField::kDocString);
    const Vector imports = file_.references(from, ModelField::kOpsetImports);
    for (uint32_t i = 0; i < imports.count; ++i) {
      const Table import = file_.table(imports, i);
      wire::OperatorSetId& set = model.opset_imports.add(arena_);
      set.domain = file_.text(import, 0);
      set.version = file_.number<int64_t>(import, 1);
    }
    const Vector metadata = file_.references(from, ModelField::kMetadata);
    for (uint32_t i = 0; i < metadata.count; ++i) {
      const Table entry = file_.table(metadata, i);
      model.metadata_props.add(arena_, {file_.text(entry, 0), file_.text(entry, 1), {}});
    }
    model.graph = arena_.make<wire::GraphProto>();
    read_graph(file_.table(from, ModelField::kGraph), *model.graph);
    model.graph->doc_string = file_.text(from, ModelField::kGraphDocString);
  }

  void read_graph(const Table& from, wire::GraphProto& graph) {
    graph.name = "graph";  // graphs have no names in this format
    if (++depth_ > kMostNested) {
      file_.fail("graphs are nested too deeply", from.at);
      return;
    }
    std::unordered_map<std::string_view, wire::ValueInfoProto> values;
    std::vector<std::string_view> names_in_order;
    std::unordered_set<std::string_view> interface;
    const Vector declared = file_.references(from, GraphField::kValues);
    for (uint32_t i = 0; i < declared.count; ++i) {
      wire::ValueInfoProto value;
      read_value(file_.table(declared, i), value);
      if (values.emplace(value.name, value).second && value.type) names_in_order.push_back(value.name);
    }
    const auto read_interface = [&](unsigned field, wire::List<wire::ValueInfoProto>& list) {
      const Vector names = file_.references(from, field);
      for (uint32_t i = 0; i < names.count; ++i) {
        const std::string_view name = file_.text(names, i);
        const auto it = values.find(name);
        wire::ValueInfoProto& value = list.add(arena_, it == values.end() ? wire::ValueInfoProto() : it->second);
        value.name = name;
        interface.insert(name);
      }
    };
    read_interface(GraphField::kInputs, graph.inputs);
    read_interface(GraphField::kOutputs, graph.outputs);
    for (const std::string_view name : names_in_order) {
      if (!interface.contains(name)) graph.value_infos.add(arena_, values.at(name));
    }
    read_list(from, GraphField::kInitializers, graph.initializers, &Reader::read_tensor);
    const Vector sparse = file_.references(from, GraphField::kSparseInitializers);
    for (uint32_t i = 0; i < sparse.count; ++i)
      read_sparse(file_.table(sparse, i), graph.sparse_initializers.add(arena_));
    read_nodes(from, graph);
    --depth_;
  }

  // The format has nodes in the order in which onnxruntime's rewrites made them.
  void read_nodes(const Table& from, wire::GraphProto& graph) {
    wire::List<wire::NodeProto> nodes;
    read_list(from, GraphField::kNodes, nodes, &Reader::read_node);
    if (!file_.ok()) return;
    graph.nodes.reserve(arena_, nodes.size());
    for (const uint32_t i : sorted_order(nodes)) graph.nodes.add(arena_, nodes[i]);
  }

  template <class Message>
  void read_list(const Table& from, unsigned field, wire::List<Message>& list,
                 void (Reader::*read)(const Table&, Message&)) {
    const Vector tables = file_.references(from, field);
    for (uint32_t i = 0; i < tables.count && file_.ok(); ++i) {
      Message message;
      (this->*read)(file_.table(tables, i), message);
      list.add(arena_, message);
    }
  }

  void read_texts(const Table& from, unsigned field, wire::List<std::string_view>& list) {
    const Vector texts = file_.references(from, field);
    for (uint32_t i = 0; i < texts.count; ++i) list.add(arena_, file_.text(texts, i));
  }

  template <class T>
  void read_numbers(const Table& from, unsigned field, wire::List<T>& list) {
    const Vector numbers = file_.numbers<T>(from, field);
    list.reserve(arena_, numbers.count);
    for (uint32_t i = 0; i < numbers.count; ++i) list.add(arena_, file_.number<T>(numbers, i));
  }

  void read_node(const Table& from, wire::NodeProto& node) {
    node.name = file_.text(from, NodeField::kName);
    node.doc_string = file_.text(from, NodeField::kDocString);
    node.domain = file_.text(from, NodeField::kDomain);
    node.op_type = file_.text(from, NodeField::kOperator);
    read_texts(from, NodeField::kInputs, node.inputs);
    read_texts(from, NodeField::kOutputs, node.outputs);
    read_list(from, NodeField::kAttributes, node.attributes, &Reader::read_attribute);
    if (file_.number<int32_t>(from, NodeField::kKind) != 0 && refusal_.ok()) {
      refusal_ = error(Code::kNotImplemented,
                       "node \"{}\" stands for a part of the graph that onnxruntime compiled for a device; convert the "
                       "model without that device's provider",
                       node.name);
    }
  }

  void read_attribute(const Table& from, wire::AttributeProto& attribute) {
    using wire::AttributeProto;
    attribute.name = file_.text(from, AttributeField::kName);
    attribute.doc_string = file_.text(from, AttributeField::kDocString);
    const auto type = file_.number<int32_t>(from, AttributeField::kType);
    attribute.type = type;
    switch (type) {
      case AttributeProto::kFloat:
        attribute.f = file_.number<float>(from, AttributeField::kFloat);
        break;
      case AttributeProto::kInt:
        attribute.i = file_.number<int64_t>(from, AttributeField::kInt);
        break;
      case AttributeProto::kString:
        attribute.s = file_.text(from, AttributeField::kString);
        break;
      case AttributeProto::kTensor:
        attribute.t = arena_.make<wire::TensorProto>();
        read_tensor(file_.table(from, AttributeField::kTensor), *attribute.t);
        break;
      case AttributeProto::kGraph:
        attribute.g = arena_.make<wire::GraphProto>();
        read_graph(file_.table(from, AttributeField::kGraph), *attribute.g);
        break;
      case AttributeProto::kFloats:
        read_numbers(from, AttributeField::kFloats, attribute.floats);
        break;
      case AttributeProto::kInts:
        read_numbers(from, AttributeField::kInts, attribute.ints);
        break;
      case AttributeProto::kStrings:
        read_texts(from, AttributeField::kStrings, attribute.strings);
        break;
      case AttributeProto::kTensors:
        read_list(from, AttributeField::kTensors, attribute.tensors, &Reader::read_tensor);
        break;
      case AttributeProto::kGraphs:
        read_list(from, AttributeField::kGraphs, attribute.graphs, &Reader::read_graph);
        break;
      default:
        file_.fail(fmt::format("attribute \"{}\" has the type {}, which is none", attribute.name, type), from.at);
    }
  }

  void read_tensor(const Table& from, wire::TensorProto& tensor) {
    tensor.name = file_.text(from, TensorField::kName);
    tensor.doc_string = file_.text(from, TensorField::kDocString);
    tensor.data_type = file_.number<int32_t>(from, TensorField::kType);
    read_numbers(from, TensorField::kDims, tensor.dims);
    if (file_.number<int64_t>(from, TensorField::kExternalOffset, -1) >= 0 && refusal_.ok()) {
      refusal_ = error(Code::kNotImplemented, "tensor \"{}\" lies in another file, as checkpoints of training do",
                       tensor.name);
    }
    constexpr int32_t kString = 8;
    if (tensor.data_type == kString) {
      read_strings(from, tensor);
    } else {
      tensor.raw_data = file_.bytes(file_.numbers<uint8_t>(from, TensorField::kRaw));
    }
  }

  // As protobuf encodes them: each with a tag and its length.
  void read_strings(const Table& from, wire::TensorProto& tensor) {
    constexpr char kTag = 6 << 3 | 2;
    const Vector texts = file_.references(from, TensorField::kStrings);
    std::string encoded;
    for (uint32_t i = 0; i < texts.count; ++i) {
      const std::string_view text = file_.text(texts, i);
      encoded += kTag;
      size_t rest = text.size();
      for (; rest >= 0x80; rest >>= 7) encoded += static_cast<char>(rest | 0x80);
      encoded += static_cast<char>(rest);
      encoded += text;
    }
    if (!encoded.empty()) tensor.string_data.add(arena_, {arena_.copy(encoded), false});
  }

  void read_sparse(const Table& from, wire::SparseTensorProto& tensor) {
    read_tensor(file_.table(from, SparseField::kValues), tensor.values);
    read_tensor(file_.table(from, SparseField::kIndices), tensor.indices);
    read_numbers(from, SparseField::kDims, tensor.dims);
  }

  void read_value(const Table& from, wire::ValueInfoProto& value) {
    value.name = file_.text(from, ValueField::kName);
    value.doc_string = file_.text(from, ValueField::kDocString);
    if (const Table type = file_.table(from, ValueField::kType)) {
      wire::TypeProto read;
      if (read_type(type, read)) value.type = read;
    }
  }

  // False for a type that the format cannot express, which stands for an unknown type.
  bool read_type(const Table& from, wire::TypeProto& type) {
    if (++depth_ > kMostNested) {
      file_.fail("types are nested too deeply", from.at);
      return false;
    }
    type.denotation = file_.text(from, TypeField::kDenotation);
    const Table value = file_.table(from, TypeField::kValue);
    bool known = true;
    switch (file_.number<uint8_t>(from, TypeField::kKind)) {
      case TypeField::kTensor:
        read_tensor_type(value, type.tensor.emplace());
        break;
      case TypeField::kSequence:
        type.sequence = arena_.make<wire::ElementTypeProto>();
        type.sequence->elem_type = arena_.make<wire::TypeProto>();
        known = read_type(file_.table(value, 0), *type.sequence->elem_type);
        break;
      case TypeField::kMap:
        type.map = arena_.make<wire::MapTypeProto>();
        type.map->key_type = file_.number<int32_t>(value, 0);
        type.map->value_type = arena_.make<wire::TypeProto>();
        known = read_type(file_.table(value, 1), *type.map->value_type);
        break;
      default:
        known = false;
    }
    --depth_;
    return known;
  }

  void read_tensor_type(const Table& from, wire::TensorTypeProto& type) {
    enum Kind : int8_t { kValue = 1, kName = 2 };
    type.elem_type = file_.number<int32_t>(from, 0);
    const Table shape = file_.table(from, 1);
    if (!shape) return;
    wire::ShapeProto& sizes = type.shape.emplace();
    const Vector dims = file_.references(shape, 0);
    for (uint32_t i = 0; i < dims.count; ++i) {
      const Table dim = file_.table(dims, i), value = file_.table(dim, 0);
      wire::Dimension& size = sizes.dims.add(arena_);
      size.denotation = file_.text(dim, 1);
      switch (file_.number<int8_t>(value, 0)) {
        case kValue:
          size.value = file_.number<int64_t>(value, 1);
          break;
        case kName:
          size.param = file_.text(value, 2);
          break;
        default:
          break;
      }
    }
  }

  FlatBuffer file_;
  Arena arena_;
  Status refusal_;  // of a file that is valid but not supported
  int depth_ = 0;
};

}  // namespace

bool is_ort_file(std::string_view bytes) {
  return bytes.size() >= 8 && bytes.substr(4).starts_with(kIdentifier);
}

Result<std::string> onnx_of_ort_file(std::string_view bytes) {
  return Reader(bytes).read();
}

}  // namespace treadle::model

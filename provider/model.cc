#include "model.h"

#include <algorithm>
#include <cstring>

#include "message.h"
#include "tensors.h"
#include "types.h"

namespace treadle::provider {

namespace {

// Field numbers of onnx.proto.
namespace field {
constexpr int kIrVersion = 1, kModelGraph = 7, kOpsetImport = 8, kOpsetDomain = 1, kOpsetVersion = 2;
constexpr int kGraphNode = 1, kGraphName = 2, kGraphInitializer = 5, kGraphInput = 11, kGraphOutput = 12;
constexpr int kNodeInput = 1, kNodeOutput = 2, kNodeName = 3, kNodeType = 4, kNodeAttribute = 5, kNodeDomain = 7;
constexpr int kValueName = 1, kValueType = 2;
constexpr int kTensorDim = 1, kTensorElement = 2, kTensorText = 6, kTensorName = 8, kTensorRaw = 9;
constexpr int kAttributeName = 1, kAttributeFloat = 2, kAttributeInt = 3, kAttributeText = 4, kAttributeTensor = 5,
              kAttributeGraph = 6, kAttributeFloats = 7, kAttributeInts = 8, kAttributeTexts = 9, kAttributeKind = 20;
}  // namespace field

// AttributeProto.AttributeType
enum Kind : int { kFloat = 1, kInt = 2, kText = 3, kTensor = 4, kGraph = 5, kFloats = 6, kInts = 7, kTexts = 8 };

Message tensor_message(const OrtValue* tensor, const std::string& name) {
  const Sizes sizes = sizes_of(tensor);
  Message message;
  size_t count = 1;
  for (const int64_t size : sizes.dims) {
    message.integer(field::kTensorDim, size);
    count *= static_cast<size_t>(size);
  }
  message.integer(field::kTensorElement, sizes.element);
  message.text(field::kTensorName, name);
  if (sizes.element == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) {
    for (const std::string& text : texts_of(tensor, count)) message.text(field::kTensorText, text);
    return message;
  }
  void* data = nullptr;
  size_t bytes = 0;
  check(ort().GetTensorMutableData(const_cast<OrtValue*>(tensor), &data));
  check(ort().GetTensorSizeInBytes(tensor, &bytes));
  message.text(field::kTensorRaw, {static_cast<const char*>(data), bytes});
  return message;
}

template <class Element>
std::vector<Element> contents_of(const OrtOpAttr* attribute, OrtOpAttrType type) {
  size_t bytes = 0;
  // This call fails if there is anything to read, and returns the size.
  if (OrtStatus* status = ort().ReadOpAttr(attribute, type, nullptr, 0, &bytes)) ort().ReleaseStatus(status);
  std::vector<Element> elements(bytes / sizeof(Element));
  if (bytes) check(ort().ReadOpAttr(attribute, type, elements.data(), bytes, &bytes));
  return elements;
}

void write_tensor(Message& message, const OrtOpAttr* attribute) {
  OrtValue* tensor = nullptr;
  check(ort().OpAttr_GetTensorAttributeAsOrtValue(attribute, &tensor));
  const std::unique_ptr<OrtValue, void (*)(OrtValue*)> owned(tensor, ort().ReleaseValue);
  message.message(field::kAttributeTensor, tensor_message(tensor, ""));
  message.integer(field::kAttributeKind, kTensor);
}

// Writes texts that follow each other, each with a zero byte at its end.
void write_texts(Message& message, const std::vector<char>& characters) {
  for (size_t at = 0; at < characters.size(); at += std::strlen(&characters[at]) + 1) {
    message.text(field::kAttributeTexts, &characters[at]);
  }
  message.integer(field::kAttributeKind, kTexts);
}

template <class Element>
Element single(const OrtOpAttr* attribute, OrtOpAttrType type) {
  return contents_of<Element>(attribute, type).at(0);
}

Message attribute_message(const OrtOpAttr* attribute, const char* name) {
  OrtOpAttrType type{};
  check(ort().OpAttr_GetType(attribute, &type));
  Message message;
  message.text(field::kAttributeName, name);
  switch (type) {
    case ORT_OP_ATTR_INT:
      message.integer(field::kAttributeInt, single<int64_t>(attribute, type));
      message.integer(field::kAttributeKind, kInt);
      break;
    case ORT_OP_ATTR_FLOAT:
      message.real(field::kAttributeFloat, single<float>(attribute, type));
      message.integer(field::kAttributeKind, kFloat);
      break;
    case ORT_OP_ATTR_INTS:
      for (const int64_t v : contents_of<int64_t>(attribute, type)) message.integer(field::kAttributeInts, v);
      message.integer(field::kAttributeKind, kInts);
      break;
    case ORT_OP_ATTR_FLOATS:
      for (const float v : contents_of<float>(attribute, type)) message.real(field::kAttributeFloats, v);
      message.integer(field::kAttributeKind, kFloats);
      break;
    case ORT_OP_ATTR_STRING: {
      const std::vector<char> text = contents_of<char>(attribute, type);
      message.text(field::kAttributeText, {text.data(), text.size()});
      message.integer(field::kAttributeKind, kText);
      break;
    }
    case ORT_OP_ATTR_STRINGS:
      write_texts(message, contents_of<char>(attribute, type));
      break;
    case ORT_OP_ATTR_TENSOR:
      write_tensor(message, attribute);
      break;
    default:
      throw Failure(ORT_NOT_IMPLEMENTED, std::string("onnxruntime does not say what attribute ") + name + " holds");
  }
  return message;
}

Message value_message(const OrtValueInfo* value, Message (*type)(const OrtTypeInfo*) = type_message) {
  Message message;
  message.text(field::kValueName, name_of(value));
  message.message(field::kValueType, type(type_of(value)));
  return message;
}

// The contents of a constant, if they can be read.
Message constant_message(const OrtValue* contents, const std::string& name) {
  constexpr std::string_view kMoved = "_if_";  // prefix of the names of values that were moved out of a branch
  constexpr size_t kHeldByGraph = 127;         // in bytes; larger constants are stored elsewhere
  size_t bytes = 0;
  if (host().loses_constants_of_branches() && name.starts_with(kMoved)) {
    check(ort().GetTensorSizeInBytes(contents, &bytes));
  }
  if (bytes > kHeldByGraph) {
    throw Failure(ORT_NOT_IMPLEMENTED, "this version of onnxruntime loses the constant '" + name +
                                           "' of a branch that it has moved out of its If");
  }
  return tensor_message(contents, name);
}

Message body_message(const OrtGraph* body);

Message node_message(const Node& node) {
  Message message;
  const char* name = nullptr;
  check(ort().Node_GetName(node.handle, &name));
  for (const OrtValueInfo* value : node.inputs) message.text(field::kNodeInput, name_of(value));
  for (const OrtValueInfo* value : node.outputs) message.text(field::kNodeOutput, name_of(value));
  message.text(field::kNodeName, name);
  message.text(field::kNodeType, node.type);
  message.text(field::kNodeDomain, node.domain);
  for (const auto& [attribute, body] : node.bodies) {
    Message written;
    written.text(field::kAttributeName, attribute);
    written.message(field::kAttributeGraph, body_message(body));
    written.integer(field::kAttributeKind, kGraph);
    message.message(field::kNodeAttribute, written);
  }
  for (const OrtOpAttr* attribute : list_of(ort().Node_GetNumAttributes, ort().Node_GetAttributes, node.handle)) {
    const char* key = nullptr;
    check(ort().OpAttr_GetName(attribute, &key));
    const bool is_body =
        std::any_of(node.bodies.begin(), node.bodies.end(), [&](const auto& body) { return body.first == key; });
    if (!is_body) message.message(field::kNodeAttribute, attribute_message(attribute, key));
  }
  return message;
}

// Has only the body's own constants: captured ones are in the graph around all bodies.
Message body_message(const OrtGraph* body) {
  Message message;
  for (const Node& node : read_nodes(body)) message.message(field::kGraphNode, node_message(node));
  message.text(field::kGraphName, "body");
  for (const OrtValueInfo* value : initializers_of(body)) {
    const OrtValue* contents = nullptr;
    if (!is_from_outer_scope(value)) check(ort().ValueInfo_GetInitializerValue(value, &contents));
    if (contents) message.message(field::kGraphInitializer, constant_message(contents, name_of(value)));
  }
  for (const OrtValueInfo* value : inputs_of(body)) message.message(field::kGraphInput, value_message(value));
  for (const OrtValueInfo* value : outputs_of(body)) message.message(field::kGraphOutput, value_message(value));
  return message;
}

// Values that the nodes take from other nodes, each once.
Values border_of(std::span<const Node* const> nodes) {
  std::set<std::string> known;
  for (const Node* node : nodes) {
    for (const OrtValueInfo* value : node->outputs) known.insert(name_of(value));
  }
  Values border;
  for (const Node* node : nodes) {
    for (const Values* used : {&node->inputs, &node->captured}) {
      for (const OrtValueInfo* value : *used) {
        if (value && known.insert(name_of(value)).second) border.push_back(value);
      }
    }
  }
  return border;
}

const OrtValue* readable(const OrtValueInfo* value) {
  try {
    return constant_of(value);
  } catch (const Failure&) {
    return nullptr;
  }
}

void write_opsets(Message& model, const OrtGraph* graph) {
  size_t count = 0;
  check(ort().Graph_GetNumOperatorSets(graph, &count));
  std::vector<const char*> domains(count);
  std::vector<int64_t> versions(count);
  check(ort().Graph_GetOperatorSets(graph, domains.data(), versions.data(), count));
  for (size_t i = 0; i < count; ++i) {
    Message opset;
    opset.text(field::kOpsetDomain, domains[i]);
    opset.integer(field::kOpsetVersion, versions[i]);
    model.message(field::kOpsetImport, opset);
  }
}

}  // namespace

std::string write_model(const OrtGraph* graph, std::span<const Node* const> nodes, const Values& outputs,
                        ModelFor purpose) {
  const auto type = purpose == ModelFor::kClaim ? type_message : unsized_message;
  Message written;
  for (const Node* node : nodes) written.message(field::kGraphNode, node_message(*node));
  written.text(field::kGraphName, "claimed");
  for (const OrtValueInfo* value : border_of(nodes)) {
    if (const OrtValue* contents = purpose == ModelFor::kQuestion ? readable(value) : constant_of(value)) {
      written.message(field::kGraphInitializer, constant_message(contents, name_of(value)));
    } else {
      written.message(field::kGraphInput, value_message(value, type));
    }
  }
  for (const OrtValueInfo* value : outputs) written.message(field::kGraphOutput, value_message(value, type));
  int64_t ir_version = 0;
  check(ort().Graph_GetOnnxIRVersion(graph, &ir_version));
  Message model;
  model.integer(field::kIrVersion, ir_version);
  model.message(field::kModelGraph, written);
  write_opsets(model, graph);
  return model.bytes();
}

}  // namespace treadle::provider

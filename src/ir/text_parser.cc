#include "ir/text_parser.h"

#include <fmt/format.h>

#include "base/stack.h"

namespace treadle::ir {

namespace {

constexpr uint32_t kTextKeys = TextNotes::kExact | TextNotes::kExactOpsets | TextNotes::kRaw;
constexpr uint32_t kNodeKeys = TextNotes::kDocString | TextNotes::kMetadata | TextNotes::kFields;
constexpr uint32_t kGraphKeys = kNodeKeys | TextNotes::kQuantization;
constexpr uint32_t kFunctionKeys = TextNotes::kMetadata | TextNotes::kFields;

}  // namespace

TextParser::Level::Level(TextParser& parser) : parser_(parser) {
  const int limit = parser.lexer_.limits().depth;
  constexpr int kPerBody = 3;  // levels per body
  if (const auto bodies = static_cast<size_t>(parser.depth_ / kPerBody); bodies > 1 && !has_stack_for(bodies)) {
    parser.lexer_.fail_at(parser.lexer_.position(), treadle::too_deep(bodies).message(), Code::kLimit);
  }
  if (++parser.depth_ > limit) {
    parser.lexer_.fail_at(parser.lexer_.position(), fmt::format("messages are nested more than {} deep", limit),
                          Code::kLimit);
  }
}

bool TextParser::end() {
  return lexer_.at_end() || lexer_.expected("the end of the text");
}

TextNotes TextParser::take_notes(uint32_t allowed, std::string_view element) {
  const bool first = std::exchange(first_, false);
  TextNotes notes = lexer_.take_notes(allowed | (first ? kTextKeys : 0), element);
  if (first) {
    exact_ = notes.has(TextNotes::kExact);
    exact_opsets_ = notes.has(TextNotes::kExactOpsets);
    raw_ = notes.has(TextNotes::kRaw);
  }
  return notes;
}

bool TextParser::parse(wire::GraphProto& message) {
  return graph(message) && end();
}

bool TextParser::parse(wire::FunctionProto& message) {
  return function(message) && end();
}

bool TextParser::parse(wire::NodeProto& message) {
  return node(message) && end();
}

// ---- Models and functions

bool TextParser::parse(wire::ModelProto& model) {
  const TextNotes notes = take_notes(TextNotes::kFields, "a model");
  if (!model_header(model)) return false;
  if (!lexer_.match_ellipsis()) {
    if (!lexer_.charge(sizeof(wire::GraphProto))) return false;
    model.graph = make<wire::GraphProto>();
    if (!graph(*model.graph)) return false;
  }
  while (lexer_.ok() && !lexer_.at_end()) {
    wire::FunctionProto* added = append(model.functions);
    if (!added || !function(*added)) return false;
  }
  return add_fields(notes, model);
}

bool TextParser::model_header(wire::ModelProto& model) {
  if (!lexer_.match('<') || lexer_.match('>')) return lexer_.ok();
  do {
    lexer_.peek();
    const size_t at = lexer_.position();
    const std::string_view key = lexer_.word();
    if (key.empty()) return lexer_.expected("a field of the model, such as ir_version");
    if (!lexer_.expect(':') || !model_field(key, at, model)) return false;
  } while (lexer_.match(','));
  return lexer_.expect('>');
}

bool TextParser::model_field(std::string_view key, size_t at, wire::ModelProto& model) {
  if (key == "ir_version" || key == "model_version") {
    int64_t number = 0;
    if (!lexer_.number(number)) return false;
    (key == "ir_version" ? model.ir_version : model.model_version) = number;
    return true;
  }
  if (key == "opset_import") return opset_imports(model.opset_imports);
  if (key == "metadata_props") return metadata(model.metadata_props);
  if (key == "producer_name") return lexer_.string(model.producer_name);
  if (key == "producer_version") return lexer_.string(model.producer_version);
  if (key == "domain") return lexer_.string(model.domain);
  if (key == "doc_string") return lexer_.string(model.doc_string);
  return lexer_.fail_at(at, fmt::format("a model has no field \"{}\" (ir_version, opset_import, producer_name, "
                                        "producer_version, domain, model_version, doc_string, metadata_props)",
                                        key));
}

bool TextParser::opset_imports(wire::List<wire::OperatorSetId>& imports) {
  if (!lexer_.expect('[')) return false;
  if (lexer_.match(']')) return true;
  do {
    wire::OperatorSetId* import = append(imports);
    std::string_view domain;
    int64_t version = 0;
    if (!import || !lexer_.string(domain) || !lexer_.expect(':') || !lexer_.number(version)) return false;
    if (!exact_opsets_ || !domain.empty()) import->domain = domain;
    import->version = version;
  } while (lexer_.match(','));
  return lexer_.expect(']');
}

bool TextParser::metadata(wire::List<wire::StringStringEntry>& entries) {
  if (!lexer_.expect('[')) return false;
  if (lexer_.match(']')) return true;
  do {
    wire::StringStringEntry* entry = append(entries);
    if (!entry || !lexer_.string(entry->key) || !lexer_.expect(':') || !lexer_.string(entry->value)) return false;
  } while (lexer_.match(','));
  return lexer_.expect(']');
}

bool TextParser::function(wire::FunctionProto& function) {
  const Level level(*this);
  TextNotes notes = take_notes(kFunctionKeys, "a function");
  function.metadata_props = notes.metadata;
  return function_header(function) && name(function.name, "a function or the end of the text") &&
         function_attributes(function) && function_names(function.inputs, function.value_infos) && lexer_.arrow() &&
         function_names(function.outputs, function.value_infos) &&
         (lexer_.peek() != '<' || value_infos('<', function.value_infos, '>')) && nodes(function.nodes) &&
         add_fields(notes, function);
}

bool TextParser::function_header(wire::FunctionProto& function) {
  if (!lexer_.match('<') || lexer_.match('>')) return lexer_.ok();
  do {
    lexer_.peek();
    const size_t at = lexer_.position();
    const std::string_view key = lexer_.word();
    if (key.empty()) return lexer_.expected("a field of the function, such as opset_import");
    if (!lexer_.expect(':')) return false;
    bool read = false;
    if (key == "opset_import") {
      read = opset_imports(function.opset_imports);
    } else if (key == "domain") {
      read = lexer_.string(function.domain);
    } else if (key == "overload") {
      read = lexer_.string(function.overload);
    } else if (key == "doc_string") {
      read = lexer_.string(function.doc_string);
    } else {
      lexer_.fail_at(at,
                     fmt::format("a function has no field \"{}\" (domain, overload, opset_import, doc_string)", key));
    }
    if (!read) return false;
  } while (lexer_.match(','));
  return lexer_.expect('>');
}

// Names of attributes. One with a value is an attribute with a default.
bool TextParser::function_attributes(wire::FunctionProto& function) {
  if (!lexer_.match('<') || lexer_.match('>')) return lexer_.ok();
  do {
    TextNotes notes = take_notes(kAttributeKeys, "an attribute");
    std::string_view word;
    if (!part_of_name(word)) return lexer_.expected("the name of an attribute");
    if (lexer_.peek() != ':' && lexer_.peek() != '=') {
      function.attributes.add(arena(), word);
      continue;
    }
    const Level level(*this);
    wire::AttributeProto* added = append(function.attribute_protos);
    if (!added) return false;
    added->name = word;
    if (!attribute_rest(notes, *added)) return false;
  } while (lexer_.match(','));
  return lexer_.expect('>');
}

// Names. One with a type also becomes a value info.
bool TextParser::function_names(wire::List<std::string_view>& list, wire::List<wire::ValueInfoProto>& infos) {
  if (!lexer_.expect('(')) return false;
  if (lexer_.match(')')) return true;
  do {
    std::string_view added;
    if (next_is_type()) {
      wire::ValueInfoProto* info = append(infos);
      if (!info || !value_info(*info)) return false;
      added = info->name.data() ? info->name : kPresent;
    } else if (!quotable(added, "the name of a value")) {
      return false;
    }
    if (!lexer_.charge(sizeof(std::string_view))) return false;
    list.add(arena(), added);
  } while (lexer_.match(','));
  return lexer_.expect(')');
}

// ---- Graphs

bool TextParser::graph(wire::GraphProto& graph) {
  const Level level(*this);
  TextNotes notes = take_notes(kGraphKeys, "a graph");
  graph.doc_string = notes.doc_string;
  graph.metadata_props = notes.metadata;
  graph.quantization_annotations = notes.quantization;
  return name(graph.name, "the name of a graph") && graph_inputs(graph) && lexer_.arrow() &&
         value_infos('(', graph.outputs, ')') && graph_values(graph) && nodes(graph.nodes) && add_fields(notes, graph);
}

// Inputs. A default becomes an initializer with the input's name. The parentheses may be missing.
bool TextParser::graph_inputs(wire::GraphProto& graph) {
  if (!lexer_.match('(')) return lexer_.ok();
  if (lexer_.match(')')) return true;
  do {
    wire::ValueInfoProto* input = append(graph.inputs);
    if (!input || !value_info(*input)) return false;
    lexer_.peek();
    const size_t at = lexer_.position();
    if (!lexer_.match('=')) continue;
    wire::TensorProto* tensor = append(graph.initializers);
    if (!tensor) return false;
    if (!input->type || !input->type->tensor) return lexer_.expected("no default for what is not a tensor");
    tensor->name = input->name;
    TextNotes none;
    if (!tensor_rest(none, *input->type->tensor, at, *tensor)) return false;
  } while (lexer_.match(','));
  return lexer_.expect(')');
}

// Initializers and value infos.
bool TextParser::graph_values(wire::GraphProto& graph) {
  if (!lexer_.match('<') || lexer_.match('>')) return lexer_.ok();
  do {
    TextNotes notes = take_notes(kValueKeys | kTensorKeys, "a value or an initializer");
    lexer_.peek();
    const size_t at = lexer_.position();
    wire::ValueInfoProto value;
    const Level level(*this);
    if (next_is_type() && !type(value.type.emplace())) return false;
    if (!name(value.name, "the name of a value")) return false;
    if (!lexer_.match('=')) {
      wire::ValueInfoProto* info = append(graph.value_infos);
      if (!info || !belongs(notes, kValueKeys, "a value")) return false;
      *info = value;
      if (!value_info_rest(notes, *info)) return false;
    } else if (value.type && value.type->tensor) {
      wire::TensorProto* tensor = append(graph.initializers);
      if (!tensor) return false;
      tensor->name = value.name;
      if (!belongs(notes, kTensorKeys, "an initializer") || !tensor_rest(notes, *value.type->tensor, at, *tensor))
        return false;
    } else if (value.type && value.type->sparse_tensor) {
      wire::SparseTensorProto* tensor = append(graph.sparse_initializers);
      if (!tensor || !belongs(notes, TextNotes::kFields, "a sparse tensor")) return false;
      if (!sparse_tensor_rest(notes, *value.type->sparse_tensor, at, *tensor)) return false;
      // For an empty name, an annotation on the values says whether it is present.
      if (!value.name.empty()) tensor->values.name = value.name;
    } else {
      return lexer_.expected("a comma: only tensors can have a value here");
    }
  } while (lexer_.match(','));
  return lexer_.expect('>');
}

bool TextParser::value_infos(char open, wire::List<wire::ValueInfoProto>& infos, char close) {
  if (!lexer_.expect(open)) return false;
  if (lexer_.match(close)) return true;
  do {
    wire::ValueInfoProto* info = append(infos);
    if (!info || !value_info(*info)) return false;
  } while (lexer_.match(','));
  return lexer_.expect(close);
}

// ---- Nodes

bool TextParser::nodes(wire::List<wire::NodeProto>& list) {
  if (!lexer_.expect('{')) return false;
  while (!lexer_.match('}')) {
    wire::NodeProto* added = append(list);
    if (!added || !node(*added)) return false;
  }
  return true;
}

bool TextParser::node(wire::NodeProto& node) {
  const Level level(*this);
  TextNotes notes = take_notes(kNodeKeys, "a node");
  node.doc_string = notes.doc_string;
  node.metadata_props = notes.metadata;
  if (lexer_.match('[')) {
    if (lexer_.peek() == ']') {
      node.name = kPresent;
    } else if (!quotable(node.name, "the name of the node")) {
      return false;
    }
    if (!lexer_.expect(']')) return false;
  }
  if (!names(node.outputs)) return false;
  if (!lexer_.match('=')) return lexer_.expected(node.outputs.empty() ? "a node or '}'" : "'='");
  if (!operator_name(node) || !attributes(node.attributes) || !lexer_.expect('(') || !names(node.inputs) ||
      !lexer_.expect(')')) {
    return false;
  }
  // Attributes may precede or follow the inputs. Graphs are easier to read behind the inputs.
  if (node.attributes.empty() && lexer_.peek() == '<' && !attributes(node.attributes)) return false;
  return add_fields(notes, node);
}

// domain.name:overload, whose parts may be quoted. `.name` has an empty domain.
bool TextParser::operator_name(wire::NodeProto& node) {
  std::string_view part;
  std::string domain;
  bool has_domain = false;
  if (lexer_.peek() != '.' && !part_of_name(part)) return lexer_.expected("the name of an operator");
  while (lexer_.match('.')) {
    if (has_domain) domain += '.';
    domain += part;
    has_domain = true;
    if (!part_of_name(part)) return lexer_.expected("the name of an operator");
  }
  set_name(part, node.op_type);
  if (!has_domain) {
    set_name(kPresent, node.domain);
  } else {
    // Successive nodes mostly have the same domain.
    if (!last_domain_.data() || last_domain_ != domain) last_domain_ = lexer_.storage().keep(domain);
    node.domain = last_domain_;
  }
  if (!lexer_.match(':')) return lexer_.ok();
  return part_of_name(node.overload) || lexer_.expected("the overload of the function");
}

// Names between commas. A missing one (`A (, x)`) is empty.
bool TextParser::names(wire::List<std::string_view>& list) {
  while (true) {
    std::string_view value = kPresent;
    const char next = lexer_.peek();
    if (lexer_.next_is_string()) {
      if (!lexer_.string(value)) return false;
    } else if (const std::string_view word = lexer_.word(); !word.empty()) {
      value = word;
    } else if (next != ',') {
      return lexer_.ok();
    }
    if (!lexer_.charge(sizeof(std::string_view))) return false;
    list.add(arena(), value);
    if (!lexer_.match(',')) return lexer_.ok();
  }
}

}  // namespace treadle::ir

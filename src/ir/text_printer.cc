#include "ir/text_printer.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/text_lexer.h"
#include "ir/text_words.h"

namespace treadle::ir {

namespace {

constexpr int kIndent = 3;
constexpr size_t kLineWidth = 110;

// Counts the properties that decide the style of a text.
class StyleFinder {
 public:
  void visit(const wire::ModelProto& model) {
    visit(model.opset_imports);
    if (model.graph) visit(*model.graph);
    for (const auto& function : model.functions) visit(function);
  }
  void visit(const wire::FunctionProto& function) {
    visit(function.opset_imports);
    visit_name(function.name);
    visit(function.nodes);
    visit(function.value_infos);
    for (const auto& attribute : function.attribute_protos) visit(attribute);
  }
  void visit(const wire::GraphProto& graph) {
    visit_name(graph.name);
    visit(graph.nodes);
    visit(graph.inputs);
    visit(graph.outputs);
    visit(graph.value_infos);
    for (const auto& tensor : graph.initializers) visit(tensor);
    for (const auto& tensor : graph.sparse_initializers) visit(tensor);
  }
  void visit(const wire::NodeProto& node) {
    visit_name(node.op_type);
    visit_name(node.domain);
    for (const auto& attribute : node.attributes) visit(attribute);
  }
  TextStyle style() const { return {absent_names_, absent_domains_, raw_ > typed_}; }

 private:
  template <class T>
  void visit(const wire::List<T>& list) {
    for (const T& message : list) visit(message);
  }
  void visit(const wire::OperatorSetId& import) { absent_domains_ |= !import.domain.data(); }
  void visit(const wire::ValueInfoProto& info) { visit_name(info.name); }
  void visit(const wire::TensorProto& tensor) {
    visit_name(tensor.name);
    if (tensor.raw_data) {
      ++raw_;
    } else if (tensor.string_data.empty() && tensor.data_location != wire::TensorProto::kExternal) {
      ++typed_;
    }
  }
  void visit(const wire::SparseTensorProto& tensor) {
    visit(tensor.values);
    visit(tensor.indices);
  }
  void visit(const wire::AttributeProto& attribute) {
    if (attribute.t) visit(*attribute.t);
    if (attribute.g) visit(*attribute.g);
    if (attribute.sparse_tensor) visit(*attribute.sparse_tensor);
    visit(attribute.tensors);
    visit(attribute.graphs);
    visit(attribute.sparse_tensors);
  }
  void visit_name(std::string_view name) { absent_names_ |= !name.data(); }

  bool absent_names_ = false, absent_domains_ = false;
  size_t raw_ = 0, typed_ = 0;
};

bool has_graph(const wire::NodeProto& node) {
  return std::ranges::any_of(node.attributes, [](const auto& a) { return a.g || !a.graphs.empty(); });
}

}  // namespace

template <class Message>
TextStyle text_style(const Message& message) {
  StyleFinder finder;
  finder.visit(message);
  return finder.style();
}

template <class Message>
std::string print_text(const Message& message, const TextOptions& options) {
  TextPrinter printer(text_style(message), options);
  printer.print(message);
  return printer.take();
}

template std::string print_text(const wire::ModelProto&, const TextOptions&);
template std::string print_text(const wire::GraphProto&, const TextOptions&);
template std::string print_text(const wire::FunctionProto&, const TextOptions&);
template std::string print_text(const wire::NodeProto&, const TextOptions&);

// ---- Annotations

std::string& TextPrinter::Notes::begin(std::string_view key) {
  if (!text_.empty()) text_ += ", ";
  return text_ += key;
}

void TextPrinter::Notes::flag(std::string_view key) {
  begin(key);
}

void TextPrinter::Notes::text(std::string_view key, std::string_view value) {
  if (value.data()) put_string(begin(key) += ": ", value, true);
}

void TextPrinter::Notes::bytes(std::string_view key, std::string_view value) {
  put_hex(begin(key) += ": ", value);
}

void TextPrinter::Notes::metadata(std::string_view key, const wire::List<wire::StringStringEntry>& entries) {
  if (!entries.empty()) put_pairs(begin(key) += ": ", entries, true);
}

void TextPrinter::Notes::quantization(const wire::TensorAnnotation& annotation) {
  put_string(begin("quantization_annotation") += ": ", annotation.tensor_name, true);
  put_pairs(text_ += ' ', annotation.quant_parameter_tensor_names, true);
}

void TextPrinter::notes(const Notes& notes, bool line_begins) {
  if (notes.str().empty()) return;
  if (!line_begins) {
    if (out_.back() == ' ') out_.pop_back();
    newline();
  }
  out_ += "#@ ";
  out_ += notes.str();
  newline();
}

void TextPrinter::style_notes(const Notes& own) {
  Notes all;
  if (style_.exact) all.flag("exact");
  if (style_.exact_opsets) all.flag("exact_opsets");
  if (style_.raw) all.flag("raw");
  if (!own.str().empty()) all.begin(own.str());
  notes(all, true);
}

void TextPrinter::newline() {
  out_ += '\n';
  out_.append(static_cast<size_t>(indent_) * kIndent, ' ');
}

// ---- Fields that the text expresses without annotations

bool TextPrinter::is_plain_name(std::string_view name) const {
  return !name.empty() || (name.data() == nullptr) == style_.exact;
}

bool TextPrinter::is_plain(const wire::List<wire::OperatorSetId>& imports) const {
  return std::ranges::all_of(imports, [&](const auto& import) {
    const bool has_domain = !import.domain.empty() || (import.domain.data() == nullptr) == style_.exact_opsets;
    return has_domain && import.version.present() && import.unknown.empty();
  });
}

bool TextPrinter::is_plain(const wire::List<wire::StringStringEntry>& entries) const {
  return std::ranges::all_of(
      entries, [](const auto& entry) { return entry.key.data() && entry.value.data() && entry.unknown.empty(); });
}

// ---- Models and functions

std::string TextPrinter::opset_imports(const wire::List<wire::OperatorSetId>& imports) const {
  std::string text = "opset_import: ";
  const char* separator = "[";
  for (const auto& import : imports) {
    text += separator;
    put_string(text, import.domain);
    text += " : ";
    put_number(text, import.version.get());
    separator = ", ";
  }
  return text + "]";
}

// <...> with one entry a line.
void TextPrinter::header(std::vector<std::string> entries) {
  out_ += '<';
  for (size_t i = 0; i < entries.size(); ++i) {
    out_ += fmt::format("\n{:{}}{}{}", "", kIndent, entries[i], i + 1 < entries.size() ? "," : "\n");
  }
  out_ += ">\n";
}

void TextPrinter::print(const wire::ModelProto& model) {
  Fields said = {1, 2, 3, 4, 5, 6, 7, 25};
  std::vector<std::string> entries;
  const auto add_text = [&](std::string_view key, std::string_view value) {
    if (value.data()) put_string(entries.emplace_back(key) += ": ", value);
  };
  if (model.ir_version.present()) entries.push_back(fmt::format("ir_version: {}", model.ir_version.get()));
  const bool has_imports = !model.opset_imports.empty() && is_plain(model.opset_imports);
  if (has_imports) entries.push_back(opset_imports(model.opset_imports));
  add_text("producer_name", model.producer_name);
  add_text("producer_version", model.producer_version);
  add_text("domain", model.domain);
  if (model.model_version.present()) entries.push_back(fmt::format("model_version: {}", model.model_version.get()));
  add_text("doc_string", model.doc_string);
  const bool has_metadata = !model.metadata_props.empty() && is_plain(model.metadata_props);
  if (has_metadata) put_pairs(entries.emplace_back("metadata_props: "), model.metadata_props, false);
  said.add(8, has_imports);
  said.add(14, has_metadata);
  Notes own;
  rest(model, said, own);
  style_notes(own);
  header(std::move(entries));
  if (model.graph) {
    graph(*model.graph);
  } else {
    out_ += "...";
  }
  out_ += '\n';
  for (const auto& function : model.functions) {
    out_ += '\n';
    this->function(function);
  }
}

void TextPrinter::print(const wire::GraphProto& message) {
  style_notes({});
  graph(message);
  out_ += '\n';
}

void TextPrinter::print(const wire::FunctionProto& message) {
  style_notes({});
  function(message);
}

void TextPrinter::print(const wire::NodeProto& message) {
  style_notes({});
  node(message);
  out_ += '\n';
}

void TextPrinter::function(const wire::FunctionProto& function) {
  Fields said = {4, 5, 6, 7, 8, 10, 11, 12, 13};
  said.add(1, is_plain_name(function.name));
  std::vector<std::string> entries;
  const auto add_text = [&](std::string_view key, std::string_view value) {
    if (value.data()) put_string(entries.emplace_back(key) += ": ", value);
  };
  add_text("domain", function.domain);
  add_text("overload", function.overload);
  const bool has_imports = !function.opset_imports.empty() && is_plain(function.opset_imports);
  if (has_imports) entries.push_back(opset_imports(function.opset_imports));
  add_text("doc_string", function.doc_string);
  said.add(9, has_imports);
  Notes own;
  if (is_plain(function.metadata_props)) {
    own.metadata("metadata_props", function.metadata_props);
    said.add(14);
  }
  rest(function, said, own);
  notes(own, true);
  if (!entries.empty()) header(std::move(entries));
  put_name(out_, function.name);
  out_ += ' ';
  function_attributes(function);
  names(function.inputs);
  out_ += " => ";
  names(function.outputs);
  if (!function.value_infos.empty()) {
    out_ += ' ';
    value_infos('<', function.value_infos, '>');
  }
  out_ += ' ';
  nodes(function.nodes);
  out_ += '\n';
}

void TextPrinter::function_attributes(const wire::FunctionProto& function) {
  if (function.attributes.empty() && function.attribute_protos.empty()) return;
  const char* separator = "<";
  for (const std::string_view name : function.attributes) {
    out_ += separator;
    put_word(out_, name);
    separator = ", ";
  }
  for (const auto& proto : function.attribute_protos) {
    out_ += separator;
    attribute(proto, false);
    separator = ", ";
  }
  out_ += "> ";
}

// ---- Graphs

void TextPrinter::graph(const wire::GraphProto& graph) {
  Fields said = {1, 5, 11, 12, 13, 15};
  said.add(2, is_plain_name(graph.name));
  said.add(10);
  Notes own;
  own.text("doc_string", graph.doc_string);
  if (is_plain(graph.metadata_props)) {
    own.metadata("metadata_props", graph.metadata_props);
    said.add(16);
  }
  const bool plain_quantization = std::ranges::all_of(graph.quantization_annotations, [&](const auto& annotation) {
    return annotation.tensor_name.data() && annotation.unknown.empty() &&
           is_plain(annotation.quant_parameter_tensor_names);
  });
  if (plain_quantization) {
    for (const auto& annotation : graph.quantization_annotations) {
      own.quantization(annotation);
    }
    said.add(14);
  }
  rest(graph, said, own);
  notes(own, out_.empty() || out_.back() == '\n');
  put_name(out_, graph.name);
  out_ += ' ';
  value_infos('(', graph.inputs, ')');
  out_ += " => ";
  value_infos('(', graph.outputs, ')');
  graph_values(graph);
  nodes(graph.nodes);
}

void TextPrinter::graph_values(const wire::GraphProto& graph) {
  if (graph.initializers.empty() && graph.sparse_initializers.empty() && graph.value_infos.empty()) {
    out_ += ' ';
    return;
  }
  indent_ += 1;
  newline();
  out_ += '<';
  indent_ += 1;
  const char* separator = "";
  const auto next = [&] {
    out_ += separator;
    newline();
    separator = ",";
  };
  for (const auto& tensor : graph.initializers) {
    next();
    this->tensor(tensor, true, true);
  }
  for (const auto& tensor : graph.sparse_initializers) {
    next();
    sparse_tensor(tensor, true, true);
  }
  for (const auto& info : graph.value_infos) {
    next();
    value_info(info, true);
  }
  indent_ -= 1;
  newline();
  out_ += '>';
  indent_ -= 1;
  newline();
}

// On one line if the line is short enough.
void TextPrinter::value_infos(char open, const wire::List<wire::ValueInfoProto>& infos, char close) {
  const size_t begin = out_.size();
  const char* separator = "";
  out_ += open;
  for (const auto& info : infos) {
    out_ += separator;
    value_info(info, false);
    separator = ", ";
  }
  out_ += close;
  const bool fits = out_.size() - begin <= kLineWidth && out_.find('\n', begin) == std::string::npos;
  if (fits || infos.empty()) return;
  out_.resize(begin);
  out_ += open;
  indent_ += 1;
  for (size_t i = 0; i < infos.size(); ++i) {
    newline();
    value_info(infos[i], true);
    if (i + 1 < infos.size()) out_ += ',';
  }
  indent_ -= 1;
  newline();
  out_ += close;
}

void TextPrinter::nodes(const wire::List<wire::NodeProto>& list) {
  out_ += '{';
  indent_ += 1;
  for (const auto& message : list) {
    newline();
    node(message);
  }
  indent_ -= 1;
  newline();
  out_ += '}';
}

void TextPrinter::node(const wire::NodeProto& node) {
  Fields said = {1, 2, 3, 5, 6, 7};
  said.add(4, is_plain_name(node.op_type));
  said.add(8, !node.overload.empty());
  Notes own;
  own.text("doc_string", node.doc_string);
  if (is_plain(node.metadata_props)) {
    own.metadata("metadata_props", node.metadata_props);
    said.add(9);
  }
  rest(node, said, own);
  notes(own, true);
  if (node.name.data()) {
    out_ += '[';
    put_name(out_, node.name);
    out_ += "] ";
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    put_name(out_ += i == 0 ? "" : ", ", node.outputs[i]);
  }
  out_ += node.outputs.empty() ? "= " : " = ";
  operator_name(node);
  const bool graphs_follow = has_graph(node);
  indent_ += 1;
  if (!graphs_follow && !node.attributes.empty()) {
    const char* separator = " <";
    for (const auto& message : node.attributes) {
      out_ += separator;
      attribute(message, false);
      separator = ", ";
    }
    out_ += '>';
  }
  out_ += ' ';
  names(node.inputs);
  const char* separator = " <";
  for (size_t i = 0; graphs_follow && i < node.attributes.size(); ++i) {
    out_ += separator;
    newline();
    attribute(node.attributes[i], true);
    separator = ",";
  }
  indent_ -= 1;
  if (!graphs_follow) return;
  newline();
  out_ += '>';
}

void TextPrinter::operator_name(const wire::NodeProto& node) {
  if (!node.domain.empty()) {
    put_dotted(out_, node.domain);
  }
  if (!node.domain.empty() || (node.domain.data() && style_.exact)) out_ += '.';
  put_word(out_, node.op_type);
  if (!node.overload.empty()) put_word(out_ += ':', node.overload);
}

void TextPrinter::names(const wire::List<std::string_view>& list) {
  out_ += '(';
  for (size_t i = 0; i < list.size(); ++i) {
    put_name(out_ += i == 0 ? "" : ", ", list[i]);
  }
  out_ += ')';
}

}  // namespace treadle::ir

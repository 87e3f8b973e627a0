#pragma once
// ONNX text -> messages, by recursive descent. Functions return false after an error; the lexer holds the error.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/text_lexer.h"
#include "type/element_type.h"
#include "wire/parse.h"

namespace treadle::ir {

// A text that is present but empty, which a file keeps. A text without data() is absent.
inline constexpr std::string_view kPresent = "";

class TextParser {
 public:
  TextParser(std::string_view text, TextStorage& storage, wire::Limits limits) : lexer_(text, storage, limits) {}

  // Parses the whole text.
  bool parse(wire::ModelProto& model);
  bool parse(wire::GraphProto& graph);
  bool parse(wire::FunctionProto& function);
  bool parse(wire::NodeProto& node);
  Status take_status() const { return lexer_.take_status(); }

 private:
  static constexpr uint32_t kAttributeKeys =
      TextNotes::kUntyped | TextNotes::kAbsent | TextNotes::kDocString | TextNotes::kFields;
  static constexpr uint32_t kValueKeys = TextNotes::kDocString | TextNotes::kMetadata | TextNotes::kDenotation |
                                         TextNotes::kDimensions | TextNotes::kType | TextNotes::kFields;
  static constexpr uint32_t kTensorKeys = TextNotes::kRaw | TextNotes::kTyped | TextNotes::kUntyped |
                                          TextNotes::kDocString | TextNotes::kMetadata | TextNotes::kFields;

  // One level of nested messages. A level of text counts as many levels as its messages do in a file.
  class Level {
   public:
    explicit Level(TextParser& parser);
    ~Level() { --parser_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    TextParser& parser_;
  };

  bool end();
  // The annotations of the next element; for the first element also those of the whole text.
  TextNotes take_notes(uint32_t allowed, std::string_view element);
  bool belongs(const TextNotes& notes, uint32_t allowed, std::string_view element);

  // text_parser.cc: models, functions, graphs, nodes
  bool model_header(wire::ModelProto& model);
  bool model_field(std::string_view key, size_t at, wire::ModelProto& model);
  bool function(wire::FunctionProto& function);
  bool function_header(wire::FunctionProto& function);
  bool function_attributes(wire::FunctionProto& function);
  bool function_names(wire::List<std::string_view>& names, wire::List<wire::ValueInfoProto>& infos);
  bool opset_imports(wire::List<wire::OperatorSetId>& imports);
  bool metadata(wire::List<wire::StringStringEntry>& entries);
  bool graph(wire::GraphProto& graph);
  bool graph_inputs(wire::GraphProto& graph);
  bool graph_values(wire::GraphProto& graph);
  bool value_infos(char open, wire::List<wire::ValueInfoProto>& infos, char close);
  bool nodes(wire::List<wire::NodeProto>& nodes);
  bool node(wire::NodeProto& node);
  bool operator_name(wire::NodeProto& node);
  bool names(wire::List<std::string_view>& names);

  // text_parser_attributes.cc
  bool attributes(wire::List<wire::AttributeProto>& attributes);
  bool attribute(wire::AttributeProto& attribute);
  bool attribute_rest(const TextNotes& notes, wire::AttributeProto& attribute);
  bool attribute_type(wire::AttributeProto& attribute);
  bool attribute_value(wire::AttributeProto& attribute);
  bool attribute_list(wire::AttributeProto& attribute);
  bool list_element(int32_t& kind, bool declared, wire::AttributeProto& attribute);
  bool list_number(int32_t& kind, bool declared, wire::AttributeProto& attribute);
  bool list_message(int32_t& kind, wire::AttributeProto& attribute);
  bool single(int32_t declared, wire::AttributeProto& attribute);
  bool single_number(int32_t declared, wire::AttributeProto& attribute);
  bool single_typed(wire::AttributeProto& attribute);
  bool tensor_name(std::string_view& field);
  bool next_is_number();
  bool next_is_graph(int32_t declared);
  bool mismatch(size_t at, int32_t kind, int32_t declared);

  // text_parser_values.cc: names, types, tensors
  bool quotable(std::string_view& value, std::string_view what);
  bool part_of_name(std::string_view& value);
  bool name(std::string_view& field, std::string_view what);
  void set_name(std::string_view value, std::string_view& field) const;
  bool next_is_type();
  bool type(wire::TypeProto& type);
  bool tensor_type(wire::TensorTypeProto& type);
  bool element_type(wire::Field<int32_t>& element);
  bool shape(wire::ShapeProto& shape);
  bool opaque_type(wire::OpaqueTypeProto& type);
  bool value_info(wire::ValueInfoProto& info);
  bool value_info_rest(TextNotes& notes, wire::ValueInfoProto& info);
  bool denotations(const TextNotes& notes, wire::ValueInfoProto& info);
  bool tensor(wire::TensorProto& tensor);
  bool tensor_rest(TextNotes& notes, const wire::TensorTypeProto& type, size_t at, wire::TensorProto& tensor);
  bool dims(const wire::TensorTypeProto& type, size_t at, wire::List<int64_t>& dims);
  bool tensor_data(bool raw, wire::TensorProto& tensor);
  bool tensor_values(bool raw, wire::TensorProto& tensor);
  template <class Read>
  bool each_value(Read&& read, std::string_view& data);
  template <class T>
  bool real_values(bool raw, wire::Runs<T>& field, wire::TensorProto& tensor);
  template <class T>
  bool integer_values(bool raw, wire::Runs<T>& field, wire::TensorProto& tensor);
  bool element_bits(ElementType type, int64_t& value);
  bool element_bits(ElementType type, uint64_t& value);
  bool external_data(wire::TensorProto& tensor);
  bool sparse_tensor_rest(const TextNotes& notes, const wire::TensorTypeProto& type, size_t at,
                          wire::SparseTensorProto& tensor);

  // Appends an element for the caller to fill, and counts its memory; null after an error.
  template <class T>
  T* append(wire::List<T>& list) {
    return lexer_.charge(sizeof(T)) ? &list.add(arena()) : nullptr;
  }
  // A message in the arena.
  template <class T>
  T* make(const T& message = {}) {
    return arena().template make<T>(message);
  }
  Arena& arena() { return lexer_.storage().arena(); }
  // Merges fields that an annotation holds as bytes.
  template <class Message>
  bool add_fields(const TextNotes& notes, Message& message);

  TextLexer lexer_;
  std::string_view last_domain_;
  int depth_ = 0;
  bool first_ = true;          // no element has been read yet
  bool exact_ = false;         // empty names are absent
  bool exact_opsets_ = false;  // empty domains of operator sets are absent
  bool raw_ = false;           // tensors are raw_data unless their annotation says otherwise
};

template <class Message>
bool TextParser::add_fields(const TextNotes& notes, Message& message) {
  if (!notes.has(TextNotes::kFields)) return lexer_.ok();
  wire::Limits limits = lexer_.limits();
  limits.depth -= depth_;
  const Status status = wire::merge(notes.fields, message, arena(), limits);
  return status.ok() || lexer_.fail_at(notes.position, "the fields of this annotation: " + status.to_string());
}

}  // namespace treadle::ir

#pragma once
// Messages -> ONNX text. Fields for which the syntax has words are printed so. The rest of a message (unknown fields,
// values that contradict its type, empty texts) follows as bytes in an annotation, so that nothing is lost.

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/text.h"
#include "wire/serialize.h"

namespace treadle::ir {

// Properties of a whole text that replace annotations at its elements; see TextNotes.
struct TextStyle {
  bool exact = false;
  bool exact_opsets = false;
  bool raw = false;
};
template <class Message>
TextStyle text_style(const Message& message);

class TextPrinter {
 public:
  TextPrinter(TextStyle style, const TextOptions& options) : style_(style), options_(options) {}

  void print(const wire::ModelProto& model);
  void print(const wire::GraphProto& graph);
  void print(const wire::FunctionProto& function);
  void print(const wire::NodeProto& node);
  std::string take() { return std::move(out_); }

 private:
  // Builds the text of an annotation.
  class Notes {
   public:
    void flag(std::string_view key);
    void text(std::string_view key, std::string_view value);  // only if there is one
    void bytes(std::string_view key, std::string_view value);
    void metadata(std::string_view key, const wire::List<wire::StringStringEntry>& entries);
    void quantization(const wire::TensorAnnotation& annotation);
    std::string& begin(std::string_view key);
    const std::string& str() const { return text_; }

   private:
    std::string text_;
  };
  // The numbers of the fields that the text expresses.
  class Fields {
   public:
    Fields(std::initializer_list<uint32_t> numbers) : numbers_(numbers) {}
    void add(uint32_t number, bool said = true) {
      if (said) numbers_.push_back(number);
    }
    std::span<const uint32_t> said() const { return numbers_; }

   private:
    std::vector<uint32_t> numbers_;
  };

  // text_printer.cc: structure
  void style_notes(const Notes& own);
  void header(std::vector<std::string> entries);
  void function(const wire::FunctionProto& function);
  void function_attributes(const wire::FunctionProto& function);
  void graph(const wire::GraphProto& graph);
  void graph_values(const wire::GraphProto& graph);
  void nodes(const wire::List<wire::NodeProto>& nodes);
  void node(const wire::NodeProto& node);
  void operator_name(const wire::NodeProto& node);
  void value_infos(char open, const wire::List<wire::ValueInfoProto>& infos, char close);
  void names(const wire::List<std::string_view>& names);
  std::string opset_imports(const wire::List<wire::OperatorSetId>& imports) const;
  bool is_plain(const wire::List<wire::OperatorSetId>& imports) const;
  bool is_plain(const wire::List<wire::StringStringEntry>& entries) const;
  bool is_plain_name(std::string_view name) const;  // whether the text shows if the name is present
  void newline();
  void notes(const Notes& notes, bool line_begins);
  template <class Message>
  void rest(const Message& message, const Fields& said, Notes& notes) const;

  // text_printer_values.cc: attributes, types, tensors
  void attribute(const wire::AttributeProto& attribute, bool line_begins);
  void attribute_value(const wire::AttributeProto& attribute, int32_t kind);
  bool type_notes(const wire::TypeProto& type, Notes& notes) const;
  void type(const wire::TypeProto& type);
  void tensor_type(const wire::TensorTypeProto& type);
  void opaque_type(const wire::OpaqueTypeProto& type);
  void dims(std::span<const int64_t> dims);
  void value_info(const wire::ValueInfoProto& info, bool line_begins);
  void tensor(const wire::TensorProto& tensor, bool is_initializer, bool line_begins);
  uint32_t data_field(const wire::TensorProto& tensor) const;
  bool is_left_out(const wire::TensorProto& tensor) const;
  void tensor_values(const wire::TensorProto& tensor, uint32_t field);
  void raw_values(const wire::TensorProto& tensor);
  void sparse_tensor(const wire::SparseTensorProto& tensor, bool is_initializer, bool line_begins);
  template <class List, class Print>
  void list(const List& values, Print&& print);

  std::string out_;
  int indent_ = 0;
  TextStyle style_;
  TextOptions options_;
};

template <class Message>
void TextPrinter::rest(const Message& message, const Fields& said, Notes& notes) const {
  const auto bytes = wire::serialize(message, said.said());
  if (bytes.ok() && !bytes->empty()) notes.bytes("fields", *bytes);
}

}  // namespace treadle::ir

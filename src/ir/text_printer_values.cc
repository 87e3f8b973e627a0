// Attributes, types and tensors as text.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ir/text_lexer.h"
#include "ir/text_numbers.h"
#include "ir/text_printer.h"
#include "ir/text_words.h"

namespace treadle::ir {

namespace {

using wire::AttributeProto;

constexpr size_t kWrapWidth = 110;

// ---- Whether the syntax has words for a message

// The word for an element type; "undefined" if there is none.
std::string_view type_word(int32_t number) {
  const ElementType type = element_type_from_number(number);
  return type == ElementType::kUndefined ? "undefined" : name(type);
}

bool has_word(const wire::Field<int32_t>& element) {
  return element.present() && (element == 0 || element_type_from_number(element) != ElementType::kUndefined);
}

// `denotations`: the message is a value's type, whose denotations have words.
bool is_plain(const wire::TensorTypeProto& type, bool denotations = false) {
  if (!has_word(type.elem_type) || !type.unknown.empty()) return false;
  if (!type.shape) return true;
  return type.shape->unknown.empty() && std::ranges::all_of(type.shape->dims, [&](const wire::Dimension& dim) {
           const bool denoted = dim.denotation.data() && !(denotations && !dim.denotation.empty());
           return dim.unknown.empty() && !denoted && !(dim.value && dim.param.data());
         });
}

bool is_plain(const wire::OpaqueTypeProto& type) {
  const bool empty = (type.domain.data() && type.domain.empty()) || (type.name.data() && type.name.empty());
  return !empty && (!type.domain.data() || type.name.data()) && type.unknown.empty();
}

bool is_plain(const wire::TypeProto& type, bool denotations = false) {
  const int kinds = (type.tensor ? 1 : 0) + (type.sequence ? 1 : 0) + (type.map ? 1 : 0) + (type.opaque ? 1 : 0) +
                    (type.sparse_tensor ? 1 : 0) + (type.optional ? 1 : 0);
  if (kinds != 1 || !type.unknown.empty() || (type.denotation.data() && !denotations)) return false;
  if (type.tensor) return is_plain(*type.tensor, denotations);
  if (type.sparse_tensor) return is_plain(*type.sparse_tensor);
  if (type.opaque) return is_plain(*type.opaque);
  if (type.map) {
    return has_word(type.map->key_type) && type.map->key_type != 0 && type.map->unknown.empty() &&
           type.map->value_type && is_plain(*type.map->value_type);
  }
  const wire::ElementTypeProto& container = type.sequence ? *type.sequence : *type.optional;
  return container.unknown.empty() && container.elem_type && is_plain(*container.elem_type);
}

template <class T>
bool is_whole(const wire::Runs<T>& runs) {
  size_t count = 0;
  return runs.count(count);
}

// The field of an attribute with values of its kind; 0 for none.
uint32_t member_of(int32_t kind) {
  constexpr uint32_t kMembers[] = {0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 22, 23, 14, 15};
  return kind > 0 && kind < static_cast<int32_t>(std::size(kMembers)) ? kMembers[kind] : 0;
}

// The kind of an attribute's only value; 0 if there is none, or more than one.
int32_t only_kind(const AttributeProto& a) {
  const bool there[] = {false,
                        a.f.has_value(),
                        a.i.has_value(),
                        a.s.has_value(),
                        a.t != nullptr,
                        a.g != nullptr,
                        !a.floats.empty(),
                        !a.ints.empty(),
                        !a.strings.empty(),
                        !a.tensors.empty(),
                        !a.graphs.empty(),
                        a.sparse_tensor != nullptr,
                        !a.sparse_tensors.empty(),
                        a.tp != nullptr,
                        !a.type_protos.empty()};
  if (std::ranges::count(there, true) != 1) return 0;
  return static_cast<int32_t>(std::ranges::find(there, true) - there);
}

bool has_value(const AttributeProto& a, int32_t kind) {
  switch (kind) {
    case AttributeProto::kFloat:
      return a.f.has_value();
    case AttributeProto::kInt:
      return a.i.has_value();
    case AttributeProto::kString:
      return a.s.has_value();
    case AttributeProto::kTensor:
      return a.t != nullptr;
    case AttributeProto::kGraph:
      return a.g != nullptr;
    case AttributeProto::kSparseTensor:
      return a.sparse_tensor != nullptr;
    case AttributeProto::kTypeProto:
      return a.tp && is_plain(*a.tp);
    case AttributeProto::kTypeProtos:
      return std::ranges::all_of(a.type_protos, [](const auto& type) { return is_plain(type); });
    default:
      return true;  // a list, which may be empty
  }
}

// Prints a point, so that the number does not read as an integer.
void put_float(std::string& out, float value) {
  const size_t begin = out.size();
  put_number(out, value);
  if (out.find_first_not_of("-0123456789", begin) == std::string::npos) out += ".0";
}

}  // namespace

// ---- Lists of values

// Calls `print(value)` for each value, and breaks long lines.
template <class List, class Print>
void TextPrinter::list(const List& values, Print&& print) {
  size_t line = out_.size();
  bool first = true;
  values([&](const auto& value) {
    if (!first) out_ += ',';
    if (out_.size() - line > kWrapWidth) {
      newline();
      line = out_.size();
    } else if (!first) {
      out_ += ' ';
    }
    first = false;
    print(value);
  });
}

// ---- Attributes

void TextPrinter::attribute(const AttributeProto& attribute, bool line_begins) {
  const bool typed = attribute.type.present();
  const bool is_reference = attribute.ref_attr_name.data() && !attribute.ref_attr_name.empty();
  const int32_t kind = typed ? attribute.type.get() : only_kind(attribute);
  const bool known = !attribute_kind_name(kind).empty();
  const bool scalar = kind == AttributeProto::kFloat || kind == AttributeProto::kInt || kind == AttributeProto::kString;
  const bool valued = known && !is_reference && has_value(attribute, kind);
  const bool absent = known && scalar && !is_reference && !valued;
  Fields said = {13};
  said.add(1, !attribute.name.empty());
  said.add(20, !typed || known);
  said.add(21, is_reference);
  if (valued) said.add(member_of(kind));
  Notes own;
  if (!typed && valued) own.flag("untyped");
  if (absent) own.flag("absent");
  own.text("doc_string", attribute.doc_string);
  rest(attribute, said, own);
  notes(own, line_begins);
  put_word(out_, attribute.name);
  if (typed && known) fmt::format_to(std::back_inserter(out_), ": {}", attribute_kind_name(kind));
  out_ += " = ";
  if (is_reference) {
    put_word(out_ += '@', attribute.ref_attr_name);
  } else if (absent) {
    out_ += kind == AttributeProto::kFloat ? "0.0" : kind == AttributeProto::kInt ? "0" : "\"\"";
  } else if (valued) {
    attribute_value(attribute, kind);
  } else {
    out_ += "...";
  }
}

void TextPrinter::attribute_value(const AttributeProto& a, int32_t kind) {
  const auto all = [](const auto& values) { return [&](auto&& print) { std::ranges::for_each(values, print); }; };
  const auto in_brackets = [&](const auto& values, auto&& print) {
    out_ += '[';
    list(all(values), print);
    out_ += ']';
  };
  switch (kind) {
    case AttributeProto::kFloat:
      return put_float(out_, *a.f);
    case AttributeProto::kInt:
      return put_number(out_, *a.i);
    case AttributeProto::kString:
      return put_string(out_, *a.s);
    case AttributeProto::kTensor:
      return tensor(*a.t, false, false);
    case AttributeProto::kGraph:
      return graph(*a.g);
    case AttributeProto::kSparseTensor:
      return sparse_tensor(*a.sparse_tensor, false, false);
    case AttributeProto::kTypeProto:
      return type(*a.tp);
    case AttributeProto::kFloats:
      return in_brackets(a.floats, [&](float value) { put_float(out_, value); });
    case AttributeProto::kInts:
      return in_brackets(a.ints, [&](int64_t value) { put_number(out_, value); });
    case AttributeProto::kStrings:
      return in_brackets(a.strings, [&](std::string_view value) { put_string(out_, value); });
    case AttributeProto::kTensors:
      return in_brackets(a.tensors, [&](const wire::TensorProto& value) { tensor(value, false, false); });
    case AttributeProto::kGraphs:
      return in_brackets(a.graphs, [&](const wire::GraphProto& value) { graph(value); });
    case AttributeProto::kSparseTensors:
      return in_brackets(a.sparse_tensors,
                         [&](const wire::SparseTensorProto& value) { sparse_tensor(value, false, false); });
    case AttributeProto::kTypeProtos:
      return in_brackets(a.type_protos, [&](const wire::TypeProto& value) { type(value); });
    default:
      return;
  }
}

// ---- Types

void TextPrinter::type(const wire::TypeProto& type) {
  if (type.tensor) return tensor_type(*type.tensor);
  if (type.opaque) return opaque_type(*type.opaque);
  if (type.sparse_tensor) {
    out_ += "sparse_tensor(";
    tensor_type(*type.sparse_tensor);
  } else if (type.map) {
    fmt::format_to(std::back_inserter(out_), "map({}, ", type_word(type.map->key_type));
    this->type(*type.map->value_type);
  } else {
    out_ += type.sequence ? "seq(" : "optional(";
    this->type(*(type.sequence ? *type.sequence : *type.optional).elem_type);
  }
  out_ += ')';
}

void TextPrinter::tensor_type(const wire::TensorTypeProto& type) {
  out_ += type_word(type.elem_type);
  if (type.shape && type.shape->dims.empty()) return;
  out_ += '[';
  for (size_t i = 0; type.shape && i < type.shape->dims.size(); ++i) {
    const wire::Dimension& dim = type.shape->dims[i];
    if (i > 0) out_ += ',';
    if (dim.value) {
      put_number(out_, *dim.value);
    } else if (dim.param.data()) {
      put_name(out_, dim.param);
    } else {
      out_ += '?';
    }
  }
  out_ += ']';
}

void TextPrinter::opaque_type(const wire::OpaqueTypeProto& type) {
  out_ += "opaque(";
  if (type.domain.data()) put_dotted(out_, type.domain);
  if (type.domain.data()) out_ += ", ";
  if (type.domain.data()) {
    put_word(out_, type.name);
  } else if (type.name.data()) {
    put_dotted(out_, type.name);
  }
  out_ += ')';
}

void TextPrinter::value_info(const wire::ValueInfoProto& info, bool line_begins) {
  Fields said = {2, 3};
  said.add(1, is_plain_name(info.name));
  Notes own;
  own.text("doc_string", info.doc_string);
  if (is_plain(info.metadata_props)) {
    own.metadata("metadata_props", info.metadata_props);
    said.add(4);
  }
  const bool has_type = info.type && type_notes(*info.type, own);
  rest(info, said, own);
  notes(own, line_begins);
  if (has_type) {
    type(*info.type);
    out_ += ' ';
  }
  put_name(out_, info.name);
}

// Collects what the type in the text does not express. False if there is nothing.
bool TextPrinter::type_notes(const wire::TypeProto& type, Notes& own) const {
  if (!ir::is_plain(type, true)) {
    const auto bytes = wire::serialize(type);
    own.bytes("type", bytes.ok() ? std::string_view(*bytes) : std::string_view());
    return false;
  }
  own.text("denotation", type.denotation);
  if (!type.tensor || !type.tensor->shape) return true;
  const auto& all = type.tensor->shape->dims;
  if (std::ranges::all_of(all, [](const auto& dim) { return dim.denotation.empty(); })) return true;
  std::string& text = own.begin("dim_denotations");
  for (size_t i = 0; i < all.size(); ++i) put_string(text += i == 0 ? ": [" : ", ", all[i].denotation, true);
  text += ']';
  return true;
}

// ---- Tensors

void TextPrinter::dims(std::span<const int64_t> dims) {
  if (dims.empty()) return;
  for (size_t i = 0; i < dims.size(); ++i) put_number(out_ += i == 0 ? '[' : ',', dims[i]);
  out_ += ']';
}

// The field with the data if the text has words for it; else 0.
uint32_t TextPrinter::data_field(const wire::TensorProto& tensor) const {
  if (tensor.data_location == wire::TensorProto::kExternal) return is_plain(tensor.external_data) ? 13 : 0;
  const ElementType type = element_type_from_number(tensor.data_type);
  if (type == ElementType::kUndefined) return 0;
  if (tensor.raw_data) {
    const size_t width = raw_width(type);
    return width > 0 && tensor.raw_data->size() % width == 0 ? 9 : 0;
  }
  bool fits = true;
  switch (type) {
    case ElementType::kString:
      return is_whole(tensor.string_data) ? 6 : 0;
    case ElementType::kFloat:
    case ElementType::kComplex64:
      return is_whole(tensor.float_data) ? 4 : 0;
    case ElementType::kDouble:
    case ElementType::kComplex128:
      return is_whole(tensor.double_data) ? 10 : 0;
    case ElementType::kInt64:
      return is_whole(tensor.int64_data) ? 7 : 0;
    case ElementType::kUint32:
      fits = tensor.uint64_data.for_each([&](uint64_t value) { fits &= value >> 32 == 0; }) && fits;
      return fits ? 11 : 0;
    case ElementType::kUint64:
      return is_whole(tensor.uint64_data) ? 11 : 0;
    default:
      return is_whole(tensor.int32_data) ? 5 : 0;
  }
}

bool TextPrinter::is_left_out(const wire::TensorProto& tensor) const {
  if (options_.max_elements < 0 || tensor.data_location == wire::TensorProto::kExternal) return false;
  // An unknown product counts as large.
  int64_t count = 1;
  for (const int64_t dim : tensor.dims) {
    if (__builtin_mul_overflow(count, dim, &count)) return true;
  }
  return count > options_.max_elements;
}

void TextPrinter::tensor(const wire::TensorProto& tensor, bool is_initializer, bool line_begins) {
  const bool typed = tensor.data_type.present();
  const bool named = is_initializer || !tensor.name.empty();
  const bool left_out = is_left_out(tensor);
  const uint32_t field = left_out ? 0 : data_field(tensor);
  Fields said = {1, 12};
  said.add(2, !typed || has_word(tensor.data_type));
  said.add(8, is_plain_name(tensor.name));
  said.add(field);
  if (field == 13) said.add(14);
  for (const uint32_t data : {3, 4, 5, 6, 7, 9, 10, 11}) said.add(data, left_out);
  Notes own;
  const bool is_number = field != 0 && field != 6 && field != 13;
  if (is_number && (field == 9) != style_.raw) own.flag(field == 9 ? "raw" : "typed");
  if (!typed) own.flag("untyped");
  own.text("doc_string", tensor.doc_string);
  if (is_plain(tensor.metadata_props)) {
    own.metadata("metadata_props", tensor.metadata_props);
    said.add(16);
  }
  rest(tensor, said, own);
  notes(own, line_begins);
  out_ += type_word(tensor.data_type);
  dims(tensor.dims);
  out_ += ' ';
  if (named) put_name(out_, tensor.name);
  if (named) out_ += ' ';
  if (is_initializer || field == 13) out_ += "= ";
  if (field == 0) {
    out_ += "...";
  } else {
    tensor_values(tensor, field);
  }
}

void TextPrinter::tensor_values(const wire::TensorProto& tensor, uint32_t field) {
  if (field == 13) return put_pairs(out_, tensor.external_data);
  const auto each = [](const auto& runs) { return [&](auto&& print) { runs.for_each(print); }; };
  const auto number = [&](auto value) { put_number(out_, value); };
  out_ += '{';
  indent_ += 1;
  switch (field) {
    case 4:
      list(each(tensor.float_data), number);
      break;
    case 5:
      list(each(tensor.int32_data), [&](int32_t value) { put_number(out_, int64_t{value}); });
      break;
    case 6:
      list(each(tensor.string_data), [&](std::string_view value) { put_string(out_, value); });
      break;
    case 7:
      list(each(tensor.int64_data), number);
      break;
    case 9:
      raw_values(tensor);
      break;
    case 10:
      list(each(tensor.double_data), number);
      break;
    default:
      list(each(tensor.uint64_data), number);
      break;
  }
  indent_ -= 1;
  out_ += '}';
}

// Prints raw data as typed fields have it: narrow floats by their bits, elements narrower than a byte by their bytes.
void TextPrinter::raw_values(const wire::TensorProto& tensor) {
  const auto as = [&]<class Stored, class Printed>(Stored, Printed) {
    const auto each = [&](auto&& print) {
      for (size_t at = 0; at < tensor.raw_data->size(); at += sizeof(Stored)) {
        Stored value;
        std::memcpy(&value, tensor.raw_data->data() + at, sizeof(Stored));
        print(static_cast<Printed>(value));
      }
    };
    list(each, [&](Printed value) { put_number(out_, value); });
  };
  const auto type = static_cast<ElementType>(tensor.data_type.get());
  const bool is_signed = is_signed_integer(type) && !is_sub_byte(type);
  switch (raw_width(type)) {
    case 1:
      return is_signed ? as(int8_t{}, int64_t{}) : as(uint8_t{}, int64_t{});
    case 2:
      return is_signed ? as(int16_t{}, int64_t{}) : as(uint16_t{}, int64_t{});
    case 4:
      if (is_integer(type)) return is_signed ? as(int32_t{}, int64_t{}) : as(uint32_t{}, int64_t{});
      return as(float{}, float{});
    default:
      if (is_integer(type)) return is_signed ? as(int64_t{}, int64_t{}) : as(uint64_t{}, uint64_t{});
      return as(double{}, double{});
  }
}

void TextPrinter::sparse_tensor(const wire::SparseTensorProto& tensor, bool is_initializer, bool line_begins) {
  Notes own;
  rest(tensor, {1, 2, 3}, own);
  notes(own, line_begins);
  fmt::format_to(std::back_inserter(out_), "sparse_tensor({}", type_word(tensor.values.data_type));
  dims(tensor.dims);
  out_ += ") ";
  if (is_initializer) put_name(out_, tensor.values.name);
  out_ += is_initializer ? " = (" : "(";
  this->tensor(tensor.values, false, false);
  out_ += ", ";
  this->tensor(tensor.indices, false, false);
  out_ += ')';
}

}  // namespace treadle::ir

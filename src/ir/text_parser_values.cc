// Names, types and tensors.

#include <fmt/format.h>

#include <limits>

#include "ir/text_numbers.h"
#include "ir/text_parser.h"
#include "type/element_type.h"

namespace treadle::ir {

// ---- Names

bool TextParser::belongs(const TextNotes& notes, uint32_t allowed, std::string_view element) {
  const uint32_t wrong = notes.keys & ~allowed;
  if (wrong == 0) return lexer_.ok();
  return lexer_.fail_at(notes.position, fmt::format("the annotation \"{}\" does not belong to {}",
                                                    note_name(wrong & (~wrong + 1)), element));
}

bool TextParser::quotable(std::string_view& value, std::string_view what) {
  if (lexer_.next_is_string()) return lexer_.string(value);
  value = lexer_.word();
  return !value.empty() || lexer_.expected(what);
}

// Names of attributes, operators and domains. Other programs write them without quotes even if they contain `-`.
bool TextParser::part_of_name(std::string_view& value) {
  if (lexer_.next_is_string()) return lexer_.string(value);
  value = lexer_.loose_word();
  return !value.empty();
}

bool TextParser::name(std::string_view& field, std::string_view what) {
  std::string_view value;
  if (!quotable(value, what)) return false;
  set_name(value, field);
  return true;
}

void TextParser::set_name(std::string_view value, std::string_view& field) const {
  field = value.empty() && exact_ ? std::string_view() : value;
}

bool TextParser::tensor_name(std::string_view& field) {
  std::string_view value = kPresent;
  if (lexer_.next_is_string()) {
    if (!lexer_.string(value)) return false;
  } else if (const std::string_view word = lexer_.word(); !word.empty()) {
    value = word;
  }
  set_name(value, field);
  return lexer_.match('=') || lexer_.ok();
}

// ---- Types

bool TextParser::next_is_type() {
  const std::string_view word = lexer_.peek_word();
  if (word.empty()) return false;
  if (element_type_from_name(word) != ElementType::kUndefined) return true;
  const bool is_constructor =
      word == "seq" || word == "map" || word == "optional" || word == "sparse_tensor" || word == "opaque";
  if (!is_constructor && word != "undefined") return false;
  // These words are also names, unless the character behind them makes them a type.
  const char next = lexer_.peek_after(word);
  if (is_constructor) return next == '(';
  return next != '\0' && (std::string_view("[\"{=.").find(next) != std::string_view::npos || is_text_word({&next, 1}));
}

bool TextParser::type(wire::TypeProto& type) {
  const Level level(*this);
  const std::string_view word = lexer_.peek_word();
  const auto child = [&](wire::TypeProto*& element) {
    if (!lexer_.charge(sizeof(wire::TypeProto))) return false;
    element = make<wire::TypeProto>();
    return this->type(*element);
  };
  if (word == "seq" || word == "optional") {
    auto& container = word == "seq" ? type.sequence : type.optional;
    container = make<wire::ElementTypeProto>();
    lexer_.word();
    return lexer_.expect('(') && child(container->elem_type) && lexer_.expect(')');
  }
  if (word == "map") {
    type.map = make<wire::MapTypeProto>();
    lexer_.word();
    return lexer_.expect('(') && element_type(type.map->key_type) && lexer_.expect(',') &&
           child(type.map->value_type) && lexer_.expect(')');
  }
  if (word == "sparse_tensor") {
    type.sparse_tensor = make<wire::TensorTypeProto>();
    lexer_.word();
    return lexer_.expect('(') && tensor_type(*type.sparse_tensor) && lexer_.expect(')');
  }
  if (word == "opaque") {
    type.opaque = make<wire::OpaqueTypeProto>();
    lexer_.word();
    return opaque_type(*type.opaque);
  }
  return tensor_type(type.tensor.emplace());
}

// `float` is a scalar, `float[]` a tensor of unknown rank.
bool TextParser::tensor_type(wire::TensorTypeProto& type) {
  if (!element_type(type.elem_type)) return false;
  if (!lexer_.match('[')) {
    type.shape.emplace();
    return lexer_.ok();
  }
  return lexer_.match(']') || shape(type.shape.emplace());
}

bool TextParser::element_type(wire::Field<int32_t>& element) {
  const std::string_view word = lexer_.peek_word();
  const ElementType type = element_type_from_name(word);
  if (type == ElementType::kUndefined && word != "undefined") return lexer_.expected("a type");
  element = static_cast<int32_t>(type);
  lexer_.word();
  return lexer_.ok();
}

bool TextParser::shape(wire::ShapeProto& shape) {
  do {
    wire::Dimension* dim = append(shape.dims);
    if (!dim) return false;
    if (lexer_.match('?')) continue;
    if (next_is_number()) {
      if (!lexer_.number(dim->value.emplace())) return false;
    } else if (!quotable(dim->param, "a size: a number, a name or '?'")) {
      return false;
    }
  } while (lexer_.match(','));
  return lexer_.expect(']');
}

// opaque(), opaque(name) or opaque(domain, name). A single part with dots is a name.
bool TextParser::opaque_type(wire::OpaqueTypeProto& type) {
  if (!lexer_.expect('(')) return false;
  if (lexer_.match(')')) return true;
  std::string_view part;
  std::string joined;
  do {
    if (!part_of_name(part)) return lexer_.expected("the name of an opaque type");
    if (!joined.empty()) joined += '.';
    joined += part;
  } while (lexer_.match('.'));
  const std::string_view first = lexer_.storage().keep(joined);
  if (!lexer_.match(',')) {
    type.name = first;
  } else {
    type.domain = first;
    if (!part_of_name(type.name)) return lexer_.expected("the name of an opaque type");
  }
  return lexer_.expect(')');
}

bool TextParser::value_info(wire::ValueInfoProto& info) {
  const Level level(*this);
  TextNotes notes = take_notes(kValueKeys, "a value");
  if (next_is_type() && !type(info.type.emplace())) return false;
  return name(info.name, "the name of a value") && value_info_rest(notes, info);
}

bool TextParser::value_info_rest(TextNotes& notes, wire::ValueInfoProto& info) {
  if (notes.keys == 0) return lexer_.ok();
  info.doc_string = notes.doc_string;
  info.metadata_props = notes.take_metadata();
  if (notes.has(TextNotes::kType)) {
    wire::TypeProto read;
    wire::Limits limits = lexer_.limits();
    limits.depth -= depth_;
    const Status status = wire::merge(notes.type, read, arena(), limits);
    if (!status.ok()) return lexer_.fail_at(notes.position, "the type of this annotation: " + status.to_string());
    info.type = read;
  }
  return denotations(notes, info) && add_fields(notes, info);
}

bool TextParser::denotations(const TextNotes& notes, wire::ValueInfoProto& info) {
  if (notes.has(TextNotes::kDenotation)) {
    if (!info.type) info.type.emplace();
    info.type->denotation = notes.denotation;
  }
  if (!notes.has(TextNotes::kDimensions)) return lexer_.ok();
  const bool has_shape = info.type && info.type->tensor && info.type->tensor->shape;
  if (!has_shape || info.type->tensor->shape->dims.size() != notes.dimensions.size()) {
    return lexer_.fail_at(notes.position, "expected as many denotations as the tensor has dimensions");
  }
  for (size_t i = 0; i < notes.dimensions.size(); ++i) {
    wire::Dimension& dim = info.type->tensor->shape->dims[i];
    if (!notes.dimensions[i].empty()) dim.denotation = notes.dimensions[i];
  }
  return true;
}

// ---- Tensors

bool TextParser::tensor(wire::TensorProto& tensor) {
  const Level level(*this);
  TextNotes notes = take_notes(kTensorKeys, "a tensor");
  wire::TensorTypeProto type;
  lexer_.peek();
  const size_t at = lexer_.position();
  return tensor_type(type) && tensor_name(tensor.name) && tensor_rest(notes, type, at, tensor);
}

// `at`: position of the tensor's type in the text.
bool TextParser::tensor_rest(TextNotes& notes, const wire::TensorTypeProto& type, size_t at,
                             wire::TensorProto& tensor) {
  tensor.data_type = type.elem_type;
  if (!dims(type, at, tensor.dims)) return false;
  const bool raw = notes.has(TextNotes::kRaw) || (raw_ && !notes.has(TextNotes::kTyped));
  if (!lexer_.match_ellipsis() && !tensor_data(raw, tensor)) return false;
  if (notes.keys == 0) return lexer_.ok();
  tensor.doc_string = notes.doc_string;
  tensor.metadata_props = notes.take_metadata();
  if (notes.has(TextNotes::kUntyped)) tensor.data_type = {};
  return add_fields(notes, tensor);
}

bool TextParser::dims(const wire::TensorTypeProto& type, size_t at, wire::List<int64_t>& dims) {
  if (!type.shape)
    return lexer_.fail_at(at, "the sizes of a tensor with values have to be known: `float` or `float[2]`");
  if (!lexer_.charge(type.shape->dims.size() * sizeof(int64_t))) return false;
  for (const wire::Dimension& dim : type.shape->dims) {
    if (!dim.value) return lexer_.fail_at(at, "the sizes of a tensor with values have to be numbers");
    dims.add(arena(), *dim.value);
  }
  return true;
}

bool TextParser::tensor_data(bool raw, wire::TensorProto& tensor) {
  if (lexer_.peek() == '[') return external_data(tensor);
  if (lexer_.peek() != '{') return lexer_.expected("'{' and the values of the tensor");
  return tensor_values(raw, tensor);
}

bool TextParser::external_data(wire::TensorProto& tensor) {
  tensor.data_location = wire::TensorProto::kExternal;
  return metadata(tensor.external_data);
}

namespace {

constexpr uint32_t kStringDataTag = 6 << 3 | 2;

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

template <class T>
void put_bytes(std::string& out, T value, size_t size = sizeof(T)) {
  out.append(reinterpret_cast<const char*>(&value), size);
}

}  // namespace

// Calls read() for each value; read() appends the value to the string that is returned.
template <class Read>
bool TextParser::each_value(Read&& read, std::string_view& data) {
  if (!lexer_.expect('{')) return false;
  std::string bytes;
  if (!lexer_.match('}')) {
    do {
      if (!read(bytes)) return false;
    } while (lexer_.match(','));
    if (!lexer_.expect('}')) return false;
  }
  data = lexer_.storage().keep(bytes);
  return true;
}

template <class T>
bool TextParser::real_values(bool raw, wire::Runs<T>& field, wire::TensorProto& tensor) {
  std::string_view data;
  const auto read = [&](std::string& out) {
    T value{};
    if (!lexer_.number(value)) return false;
    put_bytes(out, value);
    return true;
  };
  if (!each_value(read, data)) return false;
  if (raw) {
    tensor.raw_data = data;
  } else if (!data.empty()) {
    field.add(arena(), {data, true});
  }
  return true;
}

// Numbers that are stored as integers: wide ones in the field of their width; integers of less than 32 bits and narrow
// floats in int32_data.
template <class T>
bool TextParser::integer_values(bool raw, wire::Runs<T>& field, wire::TensorProto& tensor) {
  using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  const auto type = static_cast<ElementType>(tensor.data_type.get());
  const size_t width = raw_width(type);
  std::string_view data;
  const auto read = [&](std::string& out) {
    Wide value = 0;
    lexer_.peek();
    const size_t at = lexer_.position();
    if (!element_bits(type, value)) return false;
    if (raw) {
      const int bits = static_cast<int>(width) * 8;
      const bool fits = bits == 64 || (value >> bits) == 0 || (value >> (bits - 1)) == static_cast<Wide>(-1);
      if (!fits) return lexer_.fail_at(at, fmt::format("{} does not fit {}", value, treadle::name(type)));
      put_bytes(out, value, width);
    } else {
      put_varint(out, static_cast<uint64_t>(value));
    }
    return true;
  };
  if (!each_value(read, data)) return false;
  if (raw) {
    tensor.raw_data = data;
  } else if (!data.empty()) {
    field.add(arena(), {data, true});
  }
  return true;
}

// A value as it is stored. The text has narrow floats as integers with their bits; a number with a point is converted.
bool TextParser::element_bits(ElementType type, uint64_t& value) {
  lexer_.peek();
  const size_t at = lexer_.position();
  if (!lexer_.number(value)) return false;
  return type != ElementType::kUint32 || value <= std::numeric_limits<uint32_t>::max() ||
         lexer_.fail_at(at, fmt::format("{} is not a uint32", value));
}

bool TextParser::element_bits(ElementType type, int64_t& value) {
  TextNumber number;
  lexer_.peek();
  const size_t at = lexer_.position();
  if (type == ElementType::kBool && (lexer_.peek_word() == "true" || lexer_.peek_word() == "false")) {
    value = lexer_.word() == "true";
    return true;
  }
  if (!lexer_.number(number)) return false;
  if (number.real && is_float(type)) {
    float real = 0;
    if (!lexer_.real(number, at, real)) return false;
    if (narrow_float_bits(type, real, value)) return true;
  }
  if (!lexer_.integer(number, at, value)) return false;
  if (type == ElementType::kInt64) return true;
  return (value >= std::numeric_limits<int32_t>::min() && value <= std::numeric_limits<int32_t>::max()) ||
         lexer_.fail_at(at, fmt::format("{} does not fit {}", value, treadle::name(type)));
}

bool TextParser::tensor_values(bool raw, wire::TensorProto& tensor) {
  switch (static_cast<ElementType>(tensor.data_type.get())) {
    case ElementType::kUndefined:
      return lexer_.expected("no values for an undefined type");
    case ElementType::kString: {
      std::string_view data;
      const auto read = [&](std::string& out) {
        std::string_view value;
        if (!lexer_.string(value)) return false;
        put_varint(out, kStringDataTag);
        put_varint(out, value.size());
        out += value;
        return true;
      };
      if (!each_value(read, data)) return false;
      if (!data.empty()) tensor.string_data.add(arena(), {data, false});
      return true;
    }
    case ElementType::kFloat:
    case ElementType::kComplex64:
      return real_values(raw, tensor.float_data, tensor);
    case ElementType::kDouble:
    case ElementType::kComplex128:
      return real_values(raw, tensor.double_data, tensor);
    case ElementType::kInt64:
      return integer_values(raw, tensor.int64_data, tensor);
    case ElementType::kUint32:
    case ElementType::kUint64:
      return integer_values(raw, tensor.uint64_data, tensor);
    default:
      return integer_values(raw, tensor.int32_data, tensor);
  }
}

// ---- Sparse tensors: values and their indices

bool TextParser::sparse_tensor_rest(const TextNotes& notes, const wire::TensorTypeProto& type, size_t at,
                                    wire::SparseTensorProto& sparse) {
  return dims(type, at, sparse.dims) && lexer_.expect('(') && tensor(sparse.values) && lexer_.expect(',') &&
         tensor(sparse.indices) && lexer_.expect(')') && add_fields(notes, sparse);
}

}  // namespace treadle::ir

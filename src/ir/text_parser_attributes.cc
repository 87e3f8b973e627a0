#include <fmt/format.h>

#include "ir/text_parser.h"

namespace treadle::ir {

using wire::AttributeProto;

namespace {

struct Kind {
  std::string_view name;
  int32_t list;  // the kind of lists of such values; for a list, itself
};

// By number of AttributeProto.AttributeType.
constexpr Kind kKinds[] = {{"", 0},
                           {"float", AttributeProto::kFloats},
                           {"int", AttributeProto::kInts},
                           {"string", AttributeProto::kStrings},
                           {"tensor", AttributeProto::kTensors},
                           {"graph", AttributeProto::kGraphs},
                           {"floats", AttributeProto::kFloats},
                           {"ints", AttributeProto::kInts},
                           {"strings", AttributeProto::kStrings},
                           {"tensors", AttributeProto::kTensors},
                           {"graphs", AttributeProto::kGraphs},
                           {"sparse_tensor", AttributeProto::kSparseTensors},
                           {"sparse_tensors", AttributeProto::kSparseTensors},
                           {"type_proto", AttributeProto::kTypeProtos},
                           {"type_protos", AttributeProto::kTypeProtos}};
constexpr int32_t kKindCount = static_cast<int32_t>(std::size(kKinds));

// The kind of a list's elements; for a single value, the kind itself.
int32_t element_kind(int32_t kind) {
  for (int32_t i = 1; i < kKindCount; ++i) {
    if (i != kind && kKinds[i].list == kind) return i;
  }
  return kind;
}

std::string with_article(std::string_view noun) {
  if (noun.ends_with('s')) return std::string(noun);
  return fmt::format("{} {}", noun.starts_with("i") ? "an" : "a", noun);
}

}  // namespace

std::string_view attribute_kind_name(int32_t kind) {
  return kind > 0 && kind < kKindCount ? kKinds[kind].name : "";
}

bool TextParser::attributes(wire::List<AttributeProto>& list) {
  if (!lexer_.match('<')) return lexer_.ok();
  if (lexer_.match('>')) return true;
  do {
    AttributeProto* added = append(list);
    if (!added || !attribute(*added)) return false;
  } while (lexer_.match(','));
  return lexer_.expect('>');
}

bool TextParser::attribute(AttributeProto& attribute) {
  const Level level(*this);
  const TextNotes notes = take_notes(kAttributeKeys, "an attribute");
  if (!part_of_name(attribute.name)) return lexer_.expected("the name of an attribute");
  return attribute_rest(notes, attribute);
}

bool TextParser::attribute_rest(const TextNotes& notes, AttributeProto& attribute) {
  if (attribute.name.empty()) attribute.name = {};  // if the name is present but empty, it is in `fields`
  if (!attribute_type(attribute) || !lexer_.expect('=') || !attribute_value(attribute)) return false;
  attribute.doc_string = notes.doc_string;
  if (notes.has(TextNotes::kUntyped)) attribute.type = {};
  if (notes.has(TextNotes::kAbsent)) {
    attribute.f.reset();
    attribute.i.reset();
    attribute.s.reset();
  }
  return add_fields(notes, attribute);
}

bool TextParser::attribute_type(AttributeProto& attribute) {
  if (!lexer_.match(':')) return lexer_.ok();
  lexer_.peek();
  const size_t at = lexer_.position();
  const std::string_view word = lexer_.word();
  for (int32_t kind = 1; kind < kKindCount; ++kind) {
    if (kKinds[kind].name != word) continue;
    attribute.type = kind;
    return true;
  }
  if (word.empty()) return lexer_.expected("the type of the attribute");
  return lexer_.fail_at(at, fmt::format("there are no attributes of type \"{}\" (float, int, string, tensor, graph, "
                                        "sparse_tensor, type_proto, and these with an s for lists)",
                                        word));
}

bool TextParser::attribute_value(AttributeProto& attribute) {
  if (lexer_.match_ellipsis()) return true;
  if (lexer_.peek() == '[') return attribute_list(attribute);
  if (lexer_.match('@')) {
    return part_of_name(attribute.ref_attr_name) || lexer_.expected("the name of the function's attribute");
  }
  const int32_t declared = attribute.type;
  const size_t at = lexer_.position();
  if (!single(declared, attribute)) return false;
  return declared == 0 || declared == attribute.type || mismatch(at, attribute.type, declared);
}

bool TextParser::mismatch(size_t at, int32_t kind, int32_t declared) {
  return lexer_.fail_at(at, fmt::format("expected {}, found {}", with_article(attribute_kind_name(declared)),
                                        with_article(attribute_kind_name(kind))));
}

// ---- One value

bool TextParser::next_is_number() {
  const char next = lexer_.peek();
  return next == '-' || (next >= '0' && next <= '9') || lexer_.next_is_real_word();
}

// Whether the next string is the name of a graph.
bool TextParser::next_is_graph(int32_t declared) {
  if (declared != 0) return declared == AttributeProto::kGraph;
  if (lexer_.has_notes()) return true;  // only graphs have annotations here
  const size_t begin = lexer_.position();
  std::string_view ignored;
  const bool result = lexer_.string(ignored) && (lexer_.peek() == '(' || lexer_.peek() == '=');
  lexer_.rewind(begin);
  return result;
}

// Reads a value and its kind. `declared`: the kind to take if the text leaves it open.
bool TextParser::single(int32_t declared, AttributeProto& attribute) {
  if (lexer_.next_is_string() && !next_is_graph(declared)) {
    attribute.type = AttributeProto::kString;
    return lexer_.string(attribute.s.emplace());
  }
  if (next_is_number()) return single_number(declared, attribute);
  if (next_is_type()) return single_typed(attribute);
  if (!lexer_.next_is_string() && lexer_.peek_word().empty()) return lexer_.expected("the value of the attribute");
  if (!lexer_.charge(sizeof(wire::GraphProto))) return false;
  attribute.type = AttributeProto::kGraph;
  attribute.g = make<wire::GraphProto>();
  return graph(*attribute.g);
}

bool TextParser::single_number(int32_t declared, AttributeProto& attribute) {
  const size_t at = lexer_.position();
  TextNumber number;
  if (!lexer_.number(number)) return false;
  if (number.real || declared == AttributeProto::kFloat) {
    attribute.type = AttributeProto::kFloat;
    return lexer_.real(number, at, attribute.f.emplace());
  }
  attribute.type = AttributeProto::kInt;
  return lexer_.integer(number, at, attribute.i.emplace());
}

// A value that begins with a type is a type, or a tensor if contents follow.
bool TextParser::single_typed(AttributeProto& attribute) {
  TextNotes notes = take_notes(kTensorKeys, "a tensor");
  const size_t at = lexer_.position();
  wire::TypeProto read;
  if (!lexer_.charge(sizeof(wire::TensorProto)) || !type(read)) return false;
  const char next = lexer_.peek();
  const bool is_named = lexer_.next_is_string() || !lexer_.peek_word().empty();
  if (read.tensor && (is_named || next == '=' || next == '{' || next == '[' || next == '.')) {
    attribute.type = AttributeProto::kTensor;
    attribute.t = make<wire::TensorProto>();
    return tensor_name(attribute.t->name) && tensor_rest(notes, *read.tensor, at, *attribute.t);
  }
  if (read.sparse_tensor && (next == '=' || next == '(')) {
    attribute.type = AttributeProto::kSparseTensor;
    attribute.sparse_tensor = make<wire::SparseTensorProto>();
    return belongs(notes, TextNotes::kFields, "a sparse tensor") && (lexer_.match('=') || lexer_.ok()) &&
           sparse_tensor_rest(notes, *read.sparse_tensor, at, *attribute.sparse_tensor);
  }
  attribute.type = AttributeProto::kTypeProto;
  attribute.tp = make(read);
  return belongs(notes, 0, "a type");
}

// ---- Lists

bool TextParser::attribute_list(AttributeProto& attribute) {
  const size_t at = lexer_.position();
  const bool declared = attribute.type != 0;
  int32_t kind = element_kind(attribute.type);
  if (!lexer_.expect('[')) return false;
  if (lexer_.match(']')) {
    if (!declared) return lexer_.fail_at(at, "an empty list has to say of what: `name: ints = []`");
    return kind != attribute.type || mismatch(at, kKinds[kind].list, kind);
  }
  do {
    if (!list_element(kind, declared, attribute)) return false;
  } while (lexer_.match(','));
  attribute.type = kKinds[kind].list;
  return lexer_.expect(']');
}

bool TextParser::list_element(int32_t& kind, bool declared, AttributeProto& attribute) {
  if (next_is_number()) return list_number(kind, declared, attribute);
  const size_t at = lexer_.position();
  if (lexer_.next_is_string() && !next_is_graph(kind)) {
    if (kind == 0) kind = AttributeProto::kString;
    std::string_view* added = append(attribute.strings);
    if (!added || !lexer_.string(*added)) return false;
    return kind == AttributeProto::kString || mismatch(at, AttributeProto::kString, kind);
  }
  return list_message(kind, attribute);
}

bool TextParser::list_number(int32_t& kind, bool declared, AttributeProto& attribute) {
  const size_t at = lexer_.position();
  TextNumber number;
  if (!lexer_.number(number) || !lexer_.charge(sizeof(int64_t))) return false;
  const int32_t found = number.real ? AttributeProto::kFloat : AttributeProto::kInt;
  if (kind == 0) kind = found;
  if (kind == AttributeProto::kInt && number.real && !declared) {
    attribute.floats.append(arena(), attribute.ints.begin(), attribute.ints.end());
    attribute.ints.clear();
    kind = AttributeProto::kFloat;
  }
  if (kind == AttributeProto::kFloat) return lexer_.real(number, at, attribute.floats.add(arena()));
  if (kind != found) return mismatch(at, found, kind);
  return lexer_.integer(number, at, attribute.ints.add(arena()));
}

bool TextParser::list_message(int32_t& kind, AttributeProto& attribute) {
  const size_t at = lexer_.position();
  AttributeProto one;
  if (!single(kind, one)) return false;
  if (kind == 0) kind = one.type;
  if (kind != one.type) return mismatch(at, one.type, kind);
  if (one.t) attribute.tensors.add(arena(), *one.t);
  if (one.g) attribute.graphs.add(arena(), *one.g);
  if (one.sparse_tensor) attribute.sparse_tensors.add(arena(), *one.sparse_tensor);
  if (one.tp) attribute.type_protos.add(arena(), *one.tp);
  return true;
}

}  // namespace treadle::ir

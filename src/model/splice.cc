#include "model/splice.h"

#include <algorithm>
#include <limits>

#include "model/types.h"
#include "wire/cursor.h"
#include "wire/parse.h"
#include "wire/serialize.h"

namespace treadle::model {

namespace {

// Numbers of fields, as in wire/onnx.h.
constexpr uint32_t kModelGraph = 7, kGraphNode = 1, kGraphOutput = 12, kGraphValueInfo = 13, kNodeAttribute = 5,
                   kAttributeGraph = 6, kValueInfoType = 2;

size_t count_fields(std::string_view message, uint32_t number) {
  Arena none;  // nothing is read into it
  wire::Document document(message, none);
  wire::Cursor in(document);
  size_t count = 0;
  while (in.next()) {
    count += in.field() == number;
    in.skip();
  }
  return count;
}

// Keeps the parts of a type beside element types and sizes.
void keep_denotations(const wire::TypeProto& from, wire::TypeProto& to) {
  to.denotation = from.denotation;
  if (!from.tensor || !to.tensor || !from.tensor->shape || !to.tensor->shape) return;
  const auto& before = from.tensor->shape->dims;
  auto& after = to.tensor->shape->dims;
  for (size_t i = 0; i < before.size() && before.size() == after.size(); ++i) {
    after[i].denotation = before[i].denotation;
  }
}

bool has_bodies(const wire::NodeProto& node) {
  return std::ranges::any_of(node.attributes, [](const wire::AttributeProto& a) { return a.g != nullptr; });
}

// Each function that splices appends a message's bytes to `out`, and returns whether they have changed.
class Splicer {
 public:
  explicit Splicer(wire::Pieces& out) : out_(out) {}

  Result<bool> splice_model(std::string_view bytes, const wire::ModelProto& model) {
    if (count_fields(bytes, kModelGraph) > 1) return write(model);
    return rewrite(bytes, [&](uint32_t number, std::string_view field) -> Result<bool> {
      return number == kModelGraph ? splice_graph(field, *model.graph) : false;
    });
  }

 private:
  // Copies a message. `change(number, bytes)` appends a replacement for a field's bytes and returns true, or returns
  // false to keep them.
  template <class Change>
  Result<bool> rewrite(std::string_view message, Change&& change) {
    Arena none;  // nothing is read into it
    wire::Document document(message, none);
    wire::Cursor in(document);
    const char* copied = message.data();
    while (in.next()) {
      if (in.wire_type() != wire::WireType::kBytes) {
        in.skip();
        continue;
      }
      const std::string_view bytes = in.bytes();
      const wire::Pieces::Mark before = out_.mark();
      out_.add({copied, in.field_begin()});
      const wire::Pieces::Mark field = out_.begin_field();
      TREADLE_ASSIGN(const bool changed, change(in.field(), bytes));
      if (changed) {
        out_.end_field(field, in.field());
        copied = in.position();
      } else {
        out_.back_to(before);
      }
    }
    if (!document.ok()) return document.take_status();
    out_.add({copied, message.data() + message.size()});
    return copied != message.data();
  }

  Result<bool> splice_graph(std::string_view bytes, const wire::GraphProto& graph) {
    size_t nodes = 0, outputs = 0, infos = 0;
    TREADLE_ASSIGN(bool changed, rewrite(bytes, [&](uint32_t number, std::string_view field) -> Result<bool> {
                     if (number == kGraphNode) return splice_node(field, graph.nodes[nodes++]);
                     if (number == kGraphOutput) return splice_info(field, graph.outputs[outputs++]);
                     if (number == kGraphValueInfo) return splice_info(field, graph.value_infos[infos++]);
                     return false;
                   }));
    for (; infos < graph.value_infos.size(); ++infos) {
      TREADLE_ASSIGN(changed, write_field(kGraphValueInfo, graph.value_infos[infos]));
    }
    return changed;
  }

  Result<bool> splice_node(std::string_view bytes, const wire::NodeProto& node) {
    if (!has_bodies(node)) return false;
    size_t next = 0;
    return rewrite(bytes, [&](uint32_t number, std::string_view field) -> Result<bool> {
      return number == kNodeAttribute ? splice_attribute(field, node.attributes[next++]) : false;
    });
  }

  Result<bool> splice_attribute(std::string_view bytes, const wire::AttributeProto& attribute) {
    if (!attribute.g) return false;
    if (count_fields(bytes, kAttributeGraph) > 1) return write(attribute);
    return rewrite(bytes, [&](uint32_t number, std::string_view field) -> Result<bool> {
      return number == kAttributeGraph ? splice_graph(field, *attribute.g) : false;
    });
  }

  Result<bool> splice_info(std::string_view bytes, const wire::ValueInfoProto& info) {
    if (!info.type) return false;
    const size_t types = count_fields(bytes, kValueInfoType);
    if (types > 1) return write(info);  // parts of the same type
    TREADLE_ASSIGN(const bool changed, rewrite(bytes, [&](uint32_t number, std::string_view field) -> Result<bool> {
                     return number == kValueInfoType ? splice_type(field, *info.type) : false;
                   }));
    return types > 0 ? Result<bool>(changed) : write_field(kValueInfoType, *info.type);
  }

  Result<bool> splice_type(std::string_view bytes, const wire::TypeProto& type) {
    TREADLE_ASSIGN(const wire::Parsed<wire::TypeProto> before, wire::parse_type(bytes));
    const Result<Type> old_type = read_type(*before), new_type = read_type(type);
    if (old_type.ok() && new_type.ok() && identical(*old_type, *new_type)) return false;
    TREADLE_ASSIGN(const std::string bytes_of_type, wire::serialize(type));
    TREADLE_ASSIGN(wire::Parsed<wire::TypeProto> changed, wire::parse_type(bytes_of_type));
    keep_denotations(*before, *changed);
    return write(*changed);
  }

  template <class Message>
  Result<bool> write(const Message& message) {
    TREADLE_ASSIGN(const std::string bytes, wire::serialize(message));
    out_.add_copy(bytes);
    return true;
  }
  template <class Message>
  Result<bool> write_field(uint32_t number, const Message& message) {
    const wire::Pieces::Mark field = out_.begin_field();
    Result<bool> changed = write(message);
    out_.end_field(field, number);
    return changed;
  }

  wire::Pieces& out_;
};

}  // namespace

Result<wire::Pieces> splice_types(std::string_view bytes, const wire::ModelProto& model) {
  wire::Pieces out;
  if (model.graph) {
    if (auto spliced = Splicer(out).splice_model(bytes, model); !spliced.ok()) return std::move(spliced).status();
  } else {
    out.add(bytes);
  }
  constexpr size_t kMaxBytes = std::numeric_limits<int32_t>::max();
  if (out.size() <= kMaxBytes) return out;
  return error(Code::kLimit, "the message takes more than {} bytes, which is what protobuf allows", kMaxBytes);
}

}  // namespace treadle::model

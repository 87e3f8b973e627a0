#include "model/splice.h"

#include <limits>
#include <protozero/pbf_writer.hpp>

#include "model/types.h"
#include "wire/cursor.h"
#include "wire/parse.h"
#include "wire/serialize.h"

namespace treadle::model {

namespace {

// Numbers of fields, as wire/onnx.h has them.
constexpr uint32_t kModelGraph = 7, kGraphNode = 1, kGraphOutput = 12, kGraphValueInfo = 13, kNodeAttribute = 5,
                   kAttributeGraph = 6, kValueInfoType = 2;

void append_field(std::string& out, uint32_t number, std::string_view bytes) {
  protozero::pbf_writer(out).add_bytes(number, bytes.data(), bytes.size());
}

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

// Copies a message; `change(number, bytes)` gives what is to stand in place of a field's bytes, or the bytes
// themselves.
template <class Change>
Result<std::string> rewrite(std::string_view message, Change&& change) {
  Arena none;  // nothing is read into it
  wire::Document document(message, none);
  wire::Cursor in(document);
  std::string out;
  const char* copied = message.data();
  while (in.next()) {
    if (in.wire_type() != wire::WireType::kBytes) {
      in.skip();
      continue;
    }
    const char* begin = in.field_begin();
    const std::string_view bytes = in.bytes();
    TREADLE_ASSIGN(const std::optional<std::string> changed, change(in.field(), bytes));
    if (!changed || *changed == bytes) continue;
    out.append(copied, begin);
    append_field(out, in.field(), *changed);
    copied = in.position();
  }
  if (!document.ok()) return document.take_status();
  out.append(copied, message.data() + message.size());
  return out;
}

using Changed = Result<std::optional<std::string>>;
const std::optional<std::string> kAsItIs;

// What a type says beside element types and sizes stays.
void keep_denotations(const wire::TypeProto& from, wire::TypeProto& to) {
  to.denotation = from.denotation;
  if (!from.tensor || !to.tensor || !from.tensor->shape || !to.tensor->shape) return;
  const auto& before = from.tensor->shape->dims;
  auto& after = to.tensor->shape->dims;
  for (size_t i = 0; i < before.size() && before.size() == after.size(); ++i) {
    after[i].denotation = before[i].denotation;
  }
}

Result<std::string> splice_info(std::string_view bytes, const wire::ValueInfoProto& info) {
  if (!info.type) return std::string(bytes);
  const size_t types = count_fields(bytes, kValueInfoType);
  if (types > 1) return wire::serialize(info);  // parts of one type
  TREADLE_ASSIGN(const std::string fresh, wire::serialize(*info.type));
  TREADLE_ASSIGN(wire::Parsed<wire::TypeProto> type, wire::parse_type(fresh));
  TREADLE_ASSIGN(std::string out, rewrite(bytes, [&](uint32_t number, std::string_view field) -> Changed {
                   if (number != kValueInfoType) return kAsItIs;
                   TREADLE_ASSIGN(const wire::Parsed<wire::TypeProto> before, wire::parse_type(field));
                   const Result<Type> old_type = read_type(*before), new_type = read_type(*type);
                   if (old_type.ok() && new_type.ok() && identical(*old_type, *new_type)) return kAsItIs;
                   keep_denotations(*before, *type);
                   TREADLE_ASSIGN(std::string written, wire::serialize(type));
                   return std::optional(std::move(written));
                 }));
  if (types == 0) append_field(out, kValueInfoType, fresh);
  return out;
}

Result<std::string> splice_graph(std::string_view bytes, const wire::GraphProto& graph);

Result<std::string> splice_node(std::string_view bytes, const wire::NodeProto& node) {
  size_t next = 0;
  return rewrite(bytes, [&](uint32_t number, std::string_view field) -> Changed {
    if (number != kNodeAttribute) return kAsItIs;
    const wire::AttributeProto& attribute = node.attributes[next++];
    if (!attribute.g) return kAsItIs;
    if (count_fields(field, kAttributeGraph) > 1) {
      TREADLE_ASSIGN(std::string whole, wire::serialize(attribute));
      return std::optional(std::move(whole));
    }
    TREADLE_ASSIGN(std::string out, rewrite(field, [&](uint32_t inner, std::string_view body) -> Changed {
                     if (inner != kAttributeGraph) return kAsItIs;
                     TREADLE_ASSIGN(std::string spliced, splice_graph(body, *attribute.g));
                     return std::optional(std::move(spliced));
                   }));
    return std::optional(std::move(out));
  });
}

Result<std::string> splice_graph(std::string_view bytes, const wire::GraphProto& graph) {
  size_t nodes = 0, outputs = 0, infos = 0;
  TREADLE_ASSIGN(std::string out, rewrite(bytes, [&](uint32_t number, std::string_view field) -> Changed {
                   const auto keep = [](Result<std::string> spliced) -> Changed {
                     if (!spliced.ok()) return std::move(spliced).status();
                     return std::optional(std::move(spliced).value());
                   };
                   if (number == kGraphNode) return keep(splice_node(field, graph.nodes[nodes++]));
                   if (number == kGraphOutput) return keep(splice_info(field, graph.outputs[outputs++]));
                   if (number == kGraphValueInfo) return keep(splice_info(field, graph.value_infos[infos++]));
                   return kAsItIs;
                 }));
  for (; infos < graph.value_infos.size(); ++infos) {
    TREADLE_ASSIGN(const std::string added, wire::serialize(graph.value_infos[infos]));
    append_field(out, kGraphValueInfo, added);
  }
  return out;
}

}  // namespace

Result<std::string> splice_types(std::string_view bytes, const wire::ModelProto& model) {
  if (!model.graph) return std::string(bytes);
  if (count_fields(bytes, kModelGraph) > 1) return wire::serialize(model);
  TREADLE_ASSIGN(std::string out, rewrite(bytes, [&](uint32_t number, std::string_view field) -> Changed {
                   if (number != kModelGraph) return kAsItIs;
                   TREADLE_ASSIGN(std::string graph, splice_graph(field, *model.graph));
                   return std::optional(std::move(graph));
                 }));
  constexpr size_t kMaxBytes = std::numeric_limits<int32_t>::max();
  if (out.size() <= kMaxBytes) return out;
  return error(Code::kLimit, "the message takes more than {} bytes, which is what protobuf allows", kMaxBytes);
}

}  // namespace treadle::model

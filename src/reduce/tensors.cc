#include "reduce/tensors.h"

#include <algorithm>
#include <cstring>

#include "model/tensor_reader.h"
#include "model/tensor_writer.h"
#include "type/make_tensor.h"

namespace treadle::reduce {

wire::TypeProto tensor_type(int32_t element, std::span<const int64_t> dims, Arena& arena) {
  wire::TypeProto type;
  type.tensor.emplace().elem_type = element;
  wire::ShapeProto& shape = type.tensor->shape.emplace();
  for (const int64_t size : dims) shape.dims.add(arena).value = size;
  return type;
}

wire::TypeProto type_of(const wire::TensorProto& tensor, Arena& arena) {
  return tensor_type(tensor.data_type, tensor.dims, arena);
}

namespace {

// The sizes of zeros of this type; 1 for each if they would be too large.
std::vector<int64_t> sizes_of_zeros(const wire::TensorTypeProto& type, size_t bits) {
  std::vector<int64_t> sizes;
  if (!type.shape) return sizes;
  size_t bytes = std::max<size_t>(bits / 8, 1);
  for (const wire::Dimension& dimension : type.shape->dims) {
    sizes.push_back(dimension.value && *dimension.value >= 0 ? *dimension.value : 1);
    bytes = sizes.back() == 0                                            ? 0
            : bytes > kMostZeroBytes / static_cast<size_t>(sizes.back()) ? kMostZeroBytes + 1
                                                                         : bytes * static_cast<size_t>(sizes.back());
    if (bytes > kMostZeroBytes) break;
  }
  if (bytes > kMostZeroBytes) sizes.assign(type.shape->dims.size(), 1);
  return sizes;
}

std::string_view zero_bytes(size_t size, Arena& arena) {
  char* bytes = arena.room<char>(size);
  std::memset(bytes, 0, size);
  return {bytes, size};
}

}  // namespace

wire::TensorProto zeros_of(const wire::TypeProto* type, std::string_view name, Arena& arena) {
  static const wire::TensorTypeProto kNumber = [] {
    wire::TensorTypeProto number;
    number.elem_type = static_cast<int32_t>(ElementType::kFloat);
    return number;
  }();
  const wire::TensorTypeProto& of = type && type->tensor && type->tensor->elem_type != 0 ? *type->tensor : kNumber;
  wire::TensorProto tensor;
  tensor.name = name;
  tensor.data_type = of.elem_type;
  const ElementType element = element_type_from_number(of.elem_type);
  const size_t bits = info(element).file_bits;
  const std::vector<int64_t> sizes = sizes_of_zeros(of, bits);
  tensor.dims.append(arena, sizes.begin(), sizes.end());
  size_t count = 1;
  for (const int64_t size : sizes) count *= static_cast<size_t>(size);
  if (is_string(element)) {
    constexpr std::string_view kEmptyText{"\x32\x00", 2};  // tag of string_data, length 0
    char* bytes = arena.room<char>(2 * count);
    for (size_t i = 0; i < count; ++i) std::memcpy(bytes + 2 * i, kEmptyText.data(), 2);
    if (count > 0) tensor.string_data.add(arena, {{bytes, 2 * count}, false});
  } else {
    tensor.raw_data = zero_bytes((count * bits + 7) / 8, arena);
  }
  return tensor;
}

wire::TensorProto int64s_of(std::span<const int64_t> values, bool scalar, std::string_view name, Arena& arena) {
  wire::TensorProto tensor;
  tensor.name = name;
  tensor.data_type = static_cast<int32_t>(ElementType::kInt64);
  if (!scalar) tensor.dims.add(arena, static_cast<int64_t>(values.size()));
  tensor.raw_data = arena.copy({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
  return tensor;
}

wire::TensorProto bool_of(bool value, std::string_view name, Arena& arena) {
  wire::TensorProto tensor;
  tensor.name = name;
  tensor.data_type = static_cast<int32_t>(ElementType::kBool);
  const char byte = value ? 1 : 0;
  tensor.raw_data = arena.copy({&byte, 1});
  return tensor;
}

wire::NodeProto constant_of(const wire::TensorProto& tensor, Arena& arena) {
  wire::NodeProto node;
  node.op_type = "Constant";
  node.outputs.add(arena, tensor.name);
  wire::AttributeProto& value = node.attributes.add(arena);
  value.name = "value";
  value.type = wire::AttributeProto::kTensor;
  value.t = arena.make<wire::TensorProto>(tensor);
  value.t->name = {};
  return node;
}

std::optional<Tensor> read(const wire::TensorProto& tensor) {
  if (is_external(tensor)) return std::nullopt;
  model::TensorReader reader(wire::MappedFile::borrow({}), std::vector<std::string>());
  auto contents = reader.read(tensor);
  return contents.ok() ? std::optional(std::move(*contents)) : std::nullopt;
}

void write(Tensor contents, wire::TensorProto& tensor, Candidate& candidate) {
  const Tensor& kept = candidate.tensors.emplace_back(std::move(contents));
  wire::TensorProto written = model::write_tensor(kept, tensor.name, candidate.arena);
  written.name = tensor.name;
  written.doc_string = tensor.doc_string;
  written.metadata_props = tensor.metadata_props;
  tensor = written;
}

namespace {

// Copies the first elements along each axis from `axis` on; `from` and `to` are positions in elements.
template <class Copy>
void copy_part(const Dims& whole, std::span<const int64_t> part, size_t axis, size_t& to, size_t from, Copy&& copy) {
  if (axis == part.size()) return copy(to++, from);
  size_t stride = 1;
  for (size_t i = axis + 1; i < whole.size(); ++i) stride *= static_cast<size_t>(whole[i]);
  for (int64_t i = 0; i < part[axis]; ++i) {
    copy_part(whole, part, axis + 1, to, from + static_cast<size_t>(i) * stride, copy);
  }
}

}  // namespace

Tensor first_part(const Tensor& whole, std::span<const int64_t> dims) {
  Tensor part = make_tensor(whole.type(), Dims(dims.begin(), dims.end()));
  const size_t width = byte_width(whole.type());
  size_t to = 0;
  copy_part(whole.dims(), dims, 0, to, 0, [&](size_t at, size_t from) {
    if (is_string(whole.type())) {
      part.mutable_data<String>()[at] = whole.data<String>()[from];
    } else {
      std::memcpy(part.mutable_data<std::byte>() + at * width, whole.data<std::byte>() + from * width, width);
    }
  });
  return part;
}

std::vector<wire::TensorProto*> tensors_of(wire::ModelProto& model) {
  std::vector<wire::TensorProto*> tensors;
  for (const Scope& scope : scopes_of(model)) {
    if (scope.graph) {
      for (wire::TensorProto& tensor : scope.graph->initializers) tensors.push_back(&tensor);
    }
    for (wire::NodeProto& node : scope.nodes()) {
      for (wire::AttributeProto& attribute : node.attributes) {
        if (attribute.t) tensors.push_back(attribute.t);
      }
    }
  }
  return tensors;
}

std::optional<std::vector<int64_t>> constant_ints(const Names& names, size_t scope, std::string_view name) {
  const auto ints_of = [](const wire::TensorProto& tensor) -> std::optional<std::vector<int64_t>> {
    const std::optional<Tensor> contents = read(tensor);
    if (!contents || !(is_integer(contents->type()) || contents->type() == ElementType::kBool)) return std::nullopt;
    const auto values = contents->to_int64s();
    return std::vector<int64_t>(values.begin(), values.end());
  };
  const Definition* definition = names.find(scope, name);
  if (!definition) return std::nullopt;
  const Scope& where = names.scopes()[definition->scope];
  if (definition->kind == Definition::kInitializer && where.graph) {
    for (const wire::TensorProto& tensor : where.graph->initializers) {
      if (tensor.name == name) return ints_of(tensor);
    }
  }
  if (definition->kind != Definition::kNode) return std::nullopt;
  const wire::NodeProto& node = where.nodes()[definition->node];
  if (!is_of_onnx(node, "Constant") || node.attributes.empty()) return std::nullopt;
  const wire::AttributeProto& value = node.attributes[0];
  if (value.t) return ints_of(*value.t);
  if (value.name == "value_int" && value.i) return std::vector<int64_t>{*value.i};
  if (value.name == "value_ints") return std::vector<int64_t>(value.ints.begin(), value.ints.end());
  return std::nullopt;
}

}  // namespace treadle::reduce

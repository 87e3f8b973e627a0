#include "model/tensor_writer.h"

#include <cstring>
#include <protozero/pbf_writer.hpp>

#include "model/packing.h"

namespace treadle::model {

namespace {

// As protobuf encodes them: tag, length, text, one after the other.
std::string_view encoded_strings(std::span<const String> strings, Arena& arena) {
  constexpr uint32_t kStringData = 6;
  std::string bytes;
  protozero::pbf_writer out(bytes);
  for (const String& text : strings) out.add_bytes(kStringData, text.data(), text.size());
  return arena.copy(bytes);
}

std::string_view packed(const Tensor& tensor, Arena& arena) {
  const size_t count = static_cast<size_t>(tensor.element_count());
  const size_t size = packed_bytes(tensor.type(), count);
  uint8_t* bytes = arena.room<uint8_t>(size);
  std::memset(bytes, 0, size);
  pack(tensor.type(), tensor.data<uint8_t>(), count, bytes);
  return {reinterpret_cast<const char*>(bytes), size};
}

}  // namespace

wire::TensorProto write_tensor(const Tensor& tensor, std::string_view name, Arena& arena) {
  wire::TensorProto proto;
  if (!name.empty()) proto.name = name;
  proto.dims.append(arena, tensor.dims().begin(), tensor.dims().end());
  proto.data_type = static_cast<int32_t>(tensor.type());
  if (is_string(tensor.type())) {
    proto.string_data.add(arena, {encoded_strings(tensor.span<String>(), arena), false});
  } else if (is_sub_byte(tensor.type())) {
    proto.raw_data = packed(tensor, arena);
  } else {
    proto.raw_data = std::string_view(tensor.data<char>(), tensor.byte_size());
  }
  return proto;
}

}  // namespace treadle::model

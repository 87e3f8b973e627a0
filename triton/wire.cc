#include "wire.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace backend {

namespace {

struct Pair {
  TRITONSERVER_DataType type;
  int element;
};
constexpr std::array kTypes = {
    Pair{TRITONSERVER_TYPE_BOOL, 9},    Pair{TRITONSERVER_TYPE_UINT8, 2},   Pair{TRITONSERVER_TYPE_UINT16, 4},
    Pair{TRITONSERVER_TYPE_UINT32, 12}, Pair{TRITONSERVER_TYPE_UINT64, 13}, Pair{TRITONSERVER_TYPE_INT8, 3},
    Pair{TRITONSERVER_TYPE_INT16, 5},   Pair{TRITONSERVER_TYPE_INT32, 6},   Pair{TRITONSERVER_TYPE_INT64, 7},
    Pair{TRITONSERVER_TYPE_FP16, 10},   Pair{TRITONSERVER_TYPE_FP32, 1},    Pair{TRITONSERVER_TYPE_FP64, 11},
    Pair{TRITONSERVER_TYPE_BYTES, 8},   Pair{TRITONSERVER_TYPE_BF16, 16},
};
constexpr int kTexts = 8;

int64_t count_of(std::span<const int64_t> dims) {
  int64_t count = 1;
  for (const int64_t d : dims) count *= d;
  return count;
}

// Copies to memory that the server has provided for an output or a state; it has to be the processor's.
void put(const std::string_view name, void* to, TRITONSERVER_MemoryType memory, const void* from, size_t bytes) {
  if (memory == TRITONSERVER_MEMORY_GPU) {
    throw Failure(
        TRITONSERVER_ERROR_UNSUPPORTED,
        fmt::format("'{}' is asked for in memory of a GPU, and treadle writes memory of the processor", name));
  }
  if (bytes > 0) std::memcpy(to, from, bytes);
}

void fill(TRITONBACKEND_Output* output, std::string_view name, const void* data, size_t bytes) {
  void* to = nullptr;
  TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
  int64_t memory_id = 0;
  check(TRITONBACKEND_OutputBuffer(output, &to, bytes, &memory, &memory_id));
  put(name, to, memory, data, bytes);
}

std::string wire_texts(const Output& output) {
  std::string bytes;
  for (int64_t i = output.begin; i < output.end; ++i) {
    const treadle_text text = treadle_tensor_text(output.value, i);
    const auto length = static_cast<uint32_t>(text.size);
    bytes.append(reinterpret_cast<const char*>(&length), sizeof length).append(text.data, text.size);
  }
  return bytes;
}

// Calls use(data, bytes) with the bytes in the server's format.
template <class Use>
void with_wire_bytes(const Output& output, Use use) {
  if (treadle_value_kind(output.value) != TREADLE_TENSOR) {
    const std::string type = treadle::detail::take(treadle_value_type_text(output.value));
    throw Failure(TRITONSERVER_ERROR_UNSUPPORTED,
                  fmt::format("output '{}' is a {}, and responses hold tensors alone", output.name, type));
  }
  const int element = treadle_tensor_element(output.value);
  if (element == kTexts) {
    const std::string texts = wire_texts(output);
    use(texts.data(), texts.size());
  } else {
    const size_t width = treadle_element_width(element);
    use(static_cast<const char*>(treadle_tensor_data(output.value)) + static_cast<size_t>(output.begin) * width,
        static_cast<size_t>(output.end - output.begin) * width);
  }
}

}  // namespace

int element_of(TRITONSERVER_DataType type) {
  const auto found = std::ranges::find(kTypes, type, &Pair::type);
  return found == kTypes.end() ? 0 : found->element;
}

TRITONSERVER_DataType type_of(int element) {
  const auto found = std::ranges::find(kTypes, element, &Pair::element);
  return found == kTypes.end() ? TRITONSERVER_TYPE_INVALID : found->type;
}

std::string shape_text(std::span<const int64_t> dims) {
  return fmt::format("[{}]", fmt::join(dims, ","));
}

std::vector<Arrived> inputs_of(TRITONBACKEND_Request* request) {
  uint32_t count = 0;
  check(TRITONBACKEND_RequestInputCount(request, &count));
  std::vector<Arrived> inputs(count);
  for (uint32_t i = 0; i < count; ++i) {
    Arrived& arrived = inputs[i];
    const char* name = nullptr;
    const int64_t* dims = nullptr;
    uint32_t rank = 0;
    check(TRITONBACKEND_RequestInputByIndex(request, i, &arrived.input));
    check(TRITONBACKEND_InputProperties(arrived.input, &name, &arrived.type, &dims, &rank, &arrived.bytes,
                                        &arrived.buffers));
    arrived.name = name;
    arrived.dims = {dims, rank};
  }
  return inputs;
}

void copy_bytes(const Arrived& from, void* to) {
  char* at = static_cast<char*>(to);
  uint64_t left = from.bytes;
  for (uint32_t i = 0; i < from.buffers; ++i) {
    const void* data = nullptr;
    uint64_t bytes = 0;
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    int64_t memory_id = 0;
    check(TRITONBACKEND_InputBuffer(from.input, i, &data, &bytes, &memory, &memory_id));
    if (memory == TRITONSERVER_MEMORY_GPU) {
      throw Failure(
          TRITONSERVER_ERROR_UNSUPPORTED,
          fmt::format("input '{}' lies in memory of a GPU, and treadle reads memory of the processor", from.name));
    }
    if (bytes > left) break;
    if (bytes > 0) std::memcpy(at, data, bytes);
    at += bytes;
    left -= bytes;
  }
  if (left > 0)
    throw InvalidArgument(fmt::format("input '{}' has not the {} bytes that it claims", from.name, from.bytes));
}

std::string bytes_of(const Arrived& from) {
  std::string bytes(from.bytes, '\0');
  copy_bytes(from, bytes.data());
  return bytes;
}

std::vector<std::string> texts_of(const Arrived& from) {
  const std::string bytes = bytes_of(from);
  const auto count = static_cast<size_t>(count_of(from.dims));
  std::vector<std::string> texts;
  size_t at = 0;
  while (texts.size() < count && at + 4 <= bytes.size()) {
    uint32_t length = 0;
    std::memcpy(&length, bytes.data() + at, sizeof length);
    if (length > bytes.size() - at - 4) break;
    texts.push_back(bytes.substr(at + 4, length));
    at += 4 + length;
  }
  if (texts.size() != count || at != bytes.size()) {
    throw InvalidArgument(fmt::format("the bytes of input '{}' are not the {} texts that its shape {} has", from.name,
                                      count, shape_text(from.dims)));
  }
  return texts;
}

treadle::Value tensor_of(const Arrived& from) {
  const std::vector<int64_t> dims(from.dims.begin(), from.dims.end());
  if (from.type == TRITONSERVER_TYPE_BYTES) return treadle::Value::texts(texts_of(from), dims);
  treadle::Value value = treadle::Value::tensor(element_of(from.type), dims);
  if (value.bytes() != from.bytes) {
    throw InvalidArgument(fmt::format("input '{}' is to have {} bytes for its shape {}, and has {}", from.name,
                                      value.bytes(), shape_text(from.dims), from.bytes));
  }
  if (from.bytes > 0) copy_bytes(from, value.mutable_data<char>());
  return value;
}

Output::Output(const char* called, const treadle_value* tensor, std::vector<int64_t> sizes)
    : Output(called, tensor, std::move(sizes), 0, treadle_tensor_count(tensor)) {}

void add_output(TRITONBACKEND_Response* response, const Output& output) {
  with_wire_bytes(output, [&](const void* data, size_t bytes) {
    TRITONBACKEND_Output* made = nullptr;
    check(TRITONBACKEND_ResponseOutput(response, &made, output.name, type_of(treadle_tensor_element(output.value)),
                                       output.dims.data(), static_cast<uint32_t>(output.dims.size())));
    fill(made, output.name, data, bytes);
  });
}

void add_bytes(TRITONBACKEND_Response* response, const char* name, std::string_view bytes,
               std::span<const int64_t> dims) {
  TRITONBACKEND_Output* made = nullptr;
  check(TRITONBACKEND_ResponseOutput(response, &made, name, TRITONSERVER_TYPE_UINT8, dims.data(),
                                     static_cast<uint32_t>(dims.size())));
  fill(made, name, bytes.data(), bytes.size());
}

void update_state(TRITONBACKEND_Request* request, const Output& state) {
  with_wire_bytes(state, [&](const void* data, size_t bytes) {
    TRITONBACKEND_State* made = nullptr;
    check(TRITONBACKEND_StateNew(&made, request, state.name, type_of(treadle_tensor_element(state.value)),
                                 state.dims.data(), static_cast<uint32_t>(state.dims.size())));
    void* to = nullptr;
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    int64_t memory_id = 0;
    check(TRITONBACKEND_StateBuffer(made, &to, bytes, &memory, &memory_id));
    put(state.name, to, memory, data, bytes);
    check(TRITONBACKEND_StateUpdate(made));
  });
}

}  // namespace backend

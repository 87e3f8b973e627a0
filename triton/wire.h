#pragma once
// Conversions between tensors of requests, treadle and responses.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "failure.h"

namespace backend {

// ONNX's number of an element type, 0 if there is none; and back, TRITONSERVER_TYPE_INVALID if there is none.
int element_of(TRITONSERVER_DataType type);
TRITONSERVER_DataType type_of(int element);

std::string shape_text(std::span<const int64_t> dims);

// An input of a request; the memory is the server's.
struct Arrived {
  TRITONBACKEND_Input* input = nullptr;
  std::string_view name;
  TRITONSERVER_DataType type = TRITONSERVER_TYPE_INVALID;
  std::span<const int64_t> dims;
  uint64_t bytes = 0;
  uint32_t buffers = 0;
};
std::vector<Arrived> inputs_of(TRITONBACKEND_Request* request);

// Copies the input's bytes, which may be in several buffers, to memory with room for them.
void copy_bytes(const Arrived& from, void* to);
std::string bytes_of(const Arrived& from);
// A tensor with the input's contents. Errors: InvalidArgument for bytes that do not fit its shape.
treadle::Value tensor_of(const Arrived& from);
// The texts of a tensor of TRITONSERVER_TYPE_BYTES: each has a length of four bytes (little-endian), then its bytes.
std::vector<std::string> texts_of(const Arrived& from);

// A tensor, or its elements [begin, end), with sizes `dims`.
struct Output {
  Output(const char* called, const treadle_value* tensor, std::vector<int64_t> sizes);  // the whole tensor
  Output(const char* called, const treadle_value* tensor, std::vector<int64_t> sizes, int64_t from, int64_t to)
      : name(called), value(tensor), dims(std::move(sizes)), begin(from), end(to) {}

  const char* name;
  const treadle_value* value;
  std::vector<int64_t> dims;
  int64_t begin, end;
};
void add_output(TRITONBACKEND_Response* response, const Output& output);
// Adds bytes as a tensor of TRITONSERVER_TYPE_UINT8.
void add_bytes(TRITONBACKEND_Response* response, const char* name, std::string_view bytes,
               std::span<const int64_t> dims);
// Sets the state that the server gives as input with the sequence's next request.
void update_state(TRITONBACKEND_Request* request, const Output& state);

}  // namespace backend

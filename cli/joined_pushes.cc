#include "joined_pushes.h"

#include <fmt/format.h>

#include <cstring>

#include "common.h"

namespace cli {

using treadle::Value;

namespace {

// Bytes of the axes from `axis` on.
size_t row_bytes(const Value& value, size_t axis) {
  const std::vector<int64_t> dims = value.dims();
  size_t bytes = treadle::element_width(value.element());
  for (size_t i = axis; i < dims.size(); ++i) bytes *= static_cast<size_t>(dims[i]);
  return bytes;
}

// Whether two tensors differ along this axis at most.
bool fit(const Value& a, const Value& b, size_t axis) {
  std::vector<int64_t> left = a.dims(), right = b.dims();
  if (a.element() != b.element() || left.size() != right.size() || axis >= left.size()) return false;
  left[axis] = right[axis];
  return left == right;
}

Value concatenated(const std::vector<Value>& parts, size_t axis) {
  std::vector<int64_t> dims = parts[0].dims();
  dims[axis] = 0;
  for (const Value& part : parts) dims[axis] += part.dims()[axis];
  Value whole = Value::tensor(parts[0].element(), dims);
  if (whole.bytes() == 0) return whole;
  const size_t rows = whole.bytes() / row_bytes(whole, axis);
  char* to = whole.mutable_data<char>();
  for (size_t row = 0; row < rows; ++row) {
    for (const Value& part : parts) {
      const size_t bytes = row_bytes(part, axis);
      if (bytes > 0) std::memcpy(to, part.data<char>() + row * bytes, bytes);
      to += bytes;
    }
  }
  return whole;
}

}  // namespace

JoinedPushes::JoinedPushes(const treadle::Stream& stream) : names_(stream.output_names()) {
  for (size_t i = 0; i < names_.size(); ++i) axes_.push_back(stream.output_axis(i));
  parts_.resize(names_.size());
}

void JoinedPushes::add(std::vector<Value> results) {
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].get()) continue;
    if (axes_[i] < 0) parts_[i].clear();
    parts_[i].push_back(std::move(results[i]));
  }
}

Value JoinedPushes::value(size_t output) const {
  const std::vector<Value>& parts = parts_[output];
  if (parts.empty()) return {};
  if (parts.size() == 1) return parts[0];
  const auto axis = static_cast<size_t>(axes_[output]);
  for (const Value& part : parts) {
    const bool is_tensor = part.kind() == TREADLE_TENSOR && part.element() != kString;
    if (is_tensor && fit(parts[0], part, axis)) continue;
    throw InputError(fmt::format("output '{}' cannot be joined: one push gave {}, another {}", names_[output],
                                 parts[0].type_text(), part.type_text()));
  }
  return concatenated(parts, axis);
}

}  // namespace cli

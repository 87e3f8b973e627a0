// Sparse tensors, and files that hold single values: sequences, maps, optionals.
#include <cstring>

#include "check/walk.h"

namespace treadle::checking {

namespace {

// Calls `fn` for each number of an int64 tensor whose data is in the file.
template <class Fn>
void for_each_int64(const wire::TensorProto& tensor, Fn&& fn) {
  if (!tensor.raw_data || tensor.raw_data->empty()) {
    tensor.int64_data.for_each(fn);
    return;
  }
  for (size_t at = 0; at + sizeof(int64_t) <= tensor.raw_data->size(); at += sizeof(int64_t)) {
    int64_t value = 0;
    std::memcpy(&value, tensor.raw_data->data() + at, sizeof value);
    fn(value);
  }
}

}  // namespace

void Walk::check_sparse_tensor(const wire::SparseTensorProto& sparse, What what) {
  const wire::TensorProto &values = sparse.values, &indices = sparse.indices;
  const size_t errors = report_.errors;
  const auto wrong = [&](std::string_view message) -> Diagnostic& {
    return report(Problem::kSparseTensor, values.name, "{} {}: {}", what.text(), quoted(values.name), message);
  };
  check_tensor(values, "the values of a sparse tensor");
  if (values.dims.size() != 1) {
    Diagnostic& d = wrong("the rank of its values");
    d.expected = "1";
    d.found = std::to_string(values.dims.size());
    return;
  }
  if (sparse.dims.empty()) {
    wrong("it has no sizes").expected = "a rank of 1 or more";
    return;
  }
  for (const int64_t dim : sparse.dims) {
    if (dim > 0) continue;
    Diagnostic& d = wrong("a size");
    d.expected = "1 or more";
    d.found = std::to_string(dim);
    return;
  }
  const bool has_indices = indices.data_type != 0 || !indices.dims.empty() || is_present(indices.name);
  if (!has_indices) {
    if (values.dims[0] != 0) wrong("it has values, but no indices");
    return;
  }
  check_tensor(indices, "the indices of a sparse tensor");
  if (indices.data_type != static_cast<int32_t>(ElementType::kInt64)) {
    wrong("the type of its indices").expected = "int64";
  } else if (indices.dims.size() != 1 && indices.dims.size() != 2) {
    Diagnostic& d = wrong("the rank of its indices");
    d.expected = "1 or 2";
    d.found = std::to_string(indices.dims.size());
  } else if (indices.dims[0] != values.dims[0] ||
             (indices.dims.size() == 2 && static_cast<uint64_t>(indices.dims[1]) != sparse.dims.size())) {
    Diagnostic& d = wrong("the sizes of its indices");
    d.expected = indices.dims.size() == 1 ? fmt::format("[{}]", values.dims[0])
                                          : fmt::format("[{},{}]", values.dims[0], sparse.dims.size());
    d.found = indices.dims.size() == 1 ? fmt::format("[{}]", indices.dims[0])
                                       : fmt::format("[{},{}]", indices.dims[0], indices.dims[1]);
  } else if (report_.errors == errors && indices.data_location == wire::TensorProto::kInline) {
    check_sparse_indices(sparse, what, indices.dims[0]);
  }
}

// Indices are inside the tensor and ascending. An index is one number per axis, or a single number.
void Walk::check_sparse_indices(const wire::SparseTensorProto& sparse, What what, int64_t count) {
  const size_t per_index = sparse.indices.dims.size() == 2 ? sparse.dims.size() : 1;
  int64_t size = 1;
  bool fits = true;
  for (const int64_t dim : sparse.dims) fits = fits && !__builtin_mul_overflow(size, dim, &size);
  if (!fits) {
    report(Problem::kTensorDims, sparse.values.name, "{} {}: the product of its sizes does not fit 63 bits",
           what.text(), quoted(sparse.values.name));
    return;
  }
  int64_t before = -1, linear = 0, position = 0;
  size_t axis = 0;
  bool outside = false, falling = false;
  for_each_int64(sparse.indices, [&](int64_t number) {
    if (outside || falling || position >= count) return;
    const int64_t limit = per_index == 1 ? size : sparse.dims[axis];
    outside = number < 0 || number >= limit;
    if (outside) return;
    linear = linear * limit + number;
    if (++axis < per_index) return;
    if (per_index == 1) linear = number;
    falling = linear <= before;
    if (falling) return;
    before = linear;
    linear = 0;
    axis = 0;
    ++position;
  });
  if (!outside && !falling) return;
  report(Problem::kSparseTensor, sparse.values.name, "{} {}: index {} {}", what.text(), quoted(sparse.values.name),
         position, outside ? "lies outside of the tensor" : "is not behind the one before");
}

// ---- Files with single values. Values can be nested; the reader has limited the depth.

void Walk::check_sequence(const wire::SequenceProto& sequence) {
  switch (sequence.elem_type) {
    case wire::kTensorValue:
      for (const wire::TensorProto& tensor : sequence.tensors) check_tensor(tensor, "an element");
      break;
    case wire::kSparseTensorValue:
      for (const wire::SparseTensorProto& tensor : sequence.sparse_tensors) check_sparse_tensor(tensor, "an element");
      break;
    case wire::kSequenceValue:
      for (const wire::SequenceProto& inner : sequence.sequences) check_sequence(inner);
      break;
    case wire::kMapValue:
      for (const wire::MapProto& map : sequence.maps) check_map(map);
      break;
    case wire::kOptionalValue:
      for (const wire::OptionalProto& optional : sequence.optionals) check_optional(optional);
      break;
    default:
      report(Problem::kValueInvalid, sequence.name, "sequence {}: its element type", quoted(sequence.name)).found =
          std::to_string(sequence.elem_type);
  }
}

void Walk::check_optional(const wire::OptionalProto& optional) {
  switch (optional.elem_type) {
    case wire::kUndefinedValue:
      break;
    case wire::kTensorValue:
      if (optional.tensor) check_tensor(*optional.tensor, "the value");
      break;
    case wire::kSparseTensorValue:
      if (optional.sparse_tensor) check_sparse_tensor(*optional.sparse_tensor, "the value");
      break;
    case wire::kSequenceValue:
      if (optional.sequence) check_sequence(*optional.sequence);
      break;
    case wire::kMapValue:
      if (optional.map) check_map(*optional.map);
      break;
    case wire::kOptionalValue:
      if (optional.optional) check_optional(*optional.optional);
      break;
    default:
      report(Problem::kValueInvalid, optional.name, "optional {}: its element type", quoted(optional.name)).found =
          std::to_string(optional.elem_type);
  }
}

namespace {

size_t element_count(const wire::SequenceProto& sequence) {
  switch (sequence.elem_type) {
    case wire::kTensorValue:
      return sequence.tensors.size();
    case wire::kSparseTensorValue:
      return sequence.sparse_tensors.size();
    case wire::kSequenceValue:
      return sequence.sequences.size();
    case wire::kMapValue:
      return sequence.maps.size();
    case wire::kOptionalValue:
      return sequence.optionals.size();
    default:
      return 0;
  }
}

}  // namespace

void Walk::check_map(const wire::MapProto& map) {
  const ElementType key = element_type_from_number(map.key_type);
  const bool allowed =
      key == ElementType::kString || (key != ElementType::kUndefined && is_integer(key) && !is_sub_byte(key));
  if (!allowed) {
    Diagnostic& d = report(Problem::kValueInvalid, map.name, "map {}: the type of its keys", quoted(map.name));
    d.expected = "string or an integer type";
    d.found = key == ElementType::kUndefined ? std::to_string(map.key_type) : std::string(name(key));
  }
  if (!map.keys.empty() && !map.string_keys.empty()) {
    report(Problem::kValueInvalid, map.name, "map {} has keys of two kinds", quoted(map.name));
  }
  check_sequence(map.values);
  const size_t keys = map.keys.size() + map.string_keys.size(), values = element_count(map.values);
  if (keys != values) {
    report(Problem::kValueInvalid, map.name, "map {} has {} and {}", quoted(map.name), counted(keys, "key"),
           counted(values, "value"));
  }
}

}  // namespace treadle::checking

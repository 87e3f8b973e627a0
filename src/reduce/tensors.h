#pragma once
// Tensors of a model: their types and contents, and tensors that take their place.

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "reduce/candidate.h"

namespace treadle::reduce {

wire::TypeProto type_of(const wire::TensorProto& tensor, Arena& arena);
wire::TypeProto tensor_type(int32_t element, std::span<const int64_t> dims, Arena& arena);

// Contents that zeros may have at most; a larger tensor becomes one element.
inline constexpr size_t kMostZeroBytes = size_t{16} << 20;

// Zeros (empty texts) of this type; sizes that the type does not know are 1. A null type, and one that is no tensor's:
// a number.
wire::TensorProto zeros_of(const wire::TypeProto* type, std::string_view name, Arena& arena);
wire::TensorProto int64s_of(std::span<const int64_t> values, bool scalar, std::string_view name, Arena& arena);
wire::TensorProto bool_of(bool value, std::string_view name, Arena& arena);
// A Constant node.
wire::NodeProto constant_of(const wire::TensorProto& tensor, Arena& arena);

inline bool is_external(const wire::TensorProto& tensor) {
  return tensor.data_location == wire::TensorProto::kExternal;
}
// Nothing for contents that cannot be read, and for external ones.
std::optional<Tensor> read(const wire::TensorProto& tensor);
// Puts `contents` in the place of what `tensor` has; its name stays.
void write(Tensor contents, wire::TensorProto& tensor, Candidate& candidate);
// The first elements along each axis. `dims`: at most those of `whole`.
Tensor first_part(const Tensor& whole, std::span<const int64_t> dims);

// All initializers, and the tensors in attributes of nodes.
std::vector<wire::TensorProto*> tensors_of(wire::ModelProto& model);

// The contents of an integer constant that a name refers to, if it is one.
std::optional<std::vector<int64_t>> constant_ints(const Names& names, size_t scope, std::string_view name);

}  // namespace treadle::reduce

// The initializers of a graph become constants, or default values of its inputs.
#include "model/importer.h"
#include "model/tensor_reader.h"
#include "model/types.h"

namespace treadle::model {

// Whether contents are left unread: sizes are computed from integers and a few floats; more floats are weights.
bool Importer::leaves_contents(const wire::TensorProto& proto) const {
  constexpr int64_t kFewElements = 64;
  if (!options_.for_types || !is_float(element_type_from_number(proto.data_type))) return false;
  int64_t count = 1;
  for (const int64_t size : proto.dims) {
    if (size < 0 || __builtin_mul_overflow(count, size, &count)) return false;
  }
  return count > kFewElements;
}

// Whether an initializer agrees with an input or value info of its name. For inspection, a contradiction is one of the
// model's problems. For a run, value infos do not matter.
Result<bool> Importer::fits_declared(std::string_view name, const Type& type, const DeclaredTypes& inputs,
                                     const ImportTarget& target) {
  const wire::TypeProto* const* input = inputs.find(name);
  TREADLE_ASSIGN(const Type stated,
                 declared_type(name, input || !options_.broken ? input : target.types.find(name), target));
  if (!stated.is_known() || merge(stated, type).ok()) return true;
  Status status = error(Code::kInvalidModel, "{}\"{}\" is declared as {}, but its initializer is {}",
                        input ? "input " : "", name, stated.to_string(), type.to_string());
  if (!target.paths.prefix().empty()) status = std::move(status).in(target.paths.prefix());
  if (!options_.broken) return status;
  options_.broken->push_back(std::move(status));
  return !input;
}

ImportOptions::GivenInitializer* Importer::given_initializer(std::string_view name) const {
  if (!options_.initializers) return nullptr;
  for (ImportOptions::GivenInitializer& given : *options_.initializers) {
    if (given.name != name) continue;
    given.found = true;
    return &given;
  }
  return nullptr;
}

Status Importer::fits_given(const wire::TensorProto& proto, const Tensor& given, const ImportTarget& target) {
  TREADLE_ASSIGN(const Type type, TensorReader::type_of(proto));
  const Type found = Type::tensor(given.type(), to_shape(given.dims()));
  if (merge(type, found).ok()) return {};
  return error(Code::kInvalidArgument, "initializer '{}' is {} in the model and cannot be replaced by {}", proto.name,
               type.to_string(), found.to_string())
      .in(target.paths.prefix());
}

Status Importer::import_initializers(const wire::GraphProto& proto, ImportTarget& target) {
  std::unordered_map<std::string_view, size_t> inputs;
  const bool top = target.region == &graph_->top();
  for (size_t i = 0; top && i < target.region->inputs.size(); ++i) inputs.emplace(target.region->inputs[i]->name, i);
  const DeclaredTypes declared =
      proto.initializers.empty() && proto.sparse_initializers.empty() ? DeclaredTypes() : types_of({&proto.inputs});

  const auto add_type = [&](const wire::TensorProto& weights) -> Status {
    TREADLE_ASSIGN(Type type, TensorReader::type_of(weights));
    TREADLE_TRY(fits_declared(weights.name, type, declared, target).status());
    if (inputs.contains(weights.name)) return {};
    return define(weights.name, graph_->new_value(value_name(weights.name, target), std::move(type), &graph_->top()),
                  target);
  };
  const auto add = [&](std::string_view name, Result<Tensor> tensor) -> Status {
    if (!tensor.ok()) return std::move(tensor).status().in(quoted("initializer", name)).in(target.paths.prefix());
    if (name.empty()) return error(Code::kInvalidModel, "an initializer has no name").in(target.paths.prefix());
    const Type type = Type::tensor(tensor->type(), to_shape(tensor->dims()));
    TREADLE_ASSIGN(const bool fits, fits_declared(name, type, declared, target));
    if (const auto it = inputs.find(name); it != inputs.end()) {
      Tensor& value = graph_->input_defaults[it->second];
      if (value.defined()) return error(Code::kInvalidModel, "\"{}\" is initialized twice", name);
      if (fits) value = std::move(*tensor);
      return {};
    }
    return define(name, graph_->new_constant(value_name(name, target), std::move(*tensor)), target);
  };
  const auto read_once = [&](const auto& tensor, auto read) -> Result<Tensor> {
    if (top) return read(tensor);
    if (const auto it = body_tensors_.find(&tensor); it != body_tensors_.end()) return it->second;
    auto result = read(tensor);
    if (result.ok()) body_tensors_.emplace(&tensor, *result);
    return result;
  };
  for (const wire::TensorProto& tensor : proto.initializers) {
    if (ImportOptions::GivenInitializer* const given = top ? given_initializer(tensor.name) : nullptr) {
      TREADLE_TRY(fits_given(tensor, given->contents, target));
      TREADLE_TRY(add(tensor.name, given->contents.clone()));  // sessions share contents, but the caller may write to
                                                               // its own
      continue;
    }
    if (leaves_contents(tensor)) {
      TREADLE_TRY(add_type(tensor));
      continue;
    }
    TREADLE_TRY(add(tensor.name, read_once(tensor, [&](const auto& t) { return tensors_.read(t); })));
  }
  for (const wire::SparseTensorProto& tensor : proto.sparse_initializers) {
    TREADLE_TRY(add(tensor.values.name, read_once(tensor, [&](const auto& t) { return tensors_.read_dense(t); })));
  }
  return {};
}

}  // namespace treadle::model

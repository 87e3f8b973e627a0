#include "session/inputs.h"

#include <utility>

namespace treadle::session {

namespace {

bool dims_fit(const Type& declared, const Tensor& t) {
  if (!declared.has_shape) return true;
  if (declared.shape.size() != t.dims().size()) return false;
  for (size_t i = 0; i < t.dims().size(); ++i) {
    if (declared.shape[i].is_known() && declared.shape[i].value() != t.dims()[i]) return false;
  }
  return true;
}

Status check_feed(const IoInfo& input, const AnyValue& value) {
  const Type& declared = input.type;
  auto mismatch = [&] {
    return error(Code::kInvalidArgument, "input '{}': expected {}, found {}", input.name, declared.to_string(),
                 value.type().to_string());
  };
  switch (declared.kind) {
    case Type::Kind::kTensor:
    case Type::Kind::kSparseTensor:
      if (!value.is_tensor() || value.tensor().type() != declared.element || !dims_fit(declared, value.tensor())) {
        return mismatch();
      }
      return {};
    case Type::Kind::kSequence:
      if (value.kind() != AnyValue::Kind::kSequence) return mismatch();
      for (const AnyValue& element : value.sequence().elements()) {
        if (!same_structure(element.type(), *declared.child)) return mismatch();
      }
      return {};
    case Type::Kind::kOptional:
      if (value.kind() != AnyValue::Kind::kOptional) return mismatch();
      if (value.optional().value && !same_structure(value.optional().value->type(), *declared.child)) return mismatch();
      return {};
    case Type::Kind::kMap:
      return value.kind() == AnyValue::Kind::kMap ? Status() : mismatch();
    case Type::Kind::kUnknown:
      return {};
  }
  return {};
}

// Whether `value` is a tensor of one element for a scalar input. Programs pass lists of one number, and other engines
// accept them.
bool stands_for_scalar(const Type& declared, const AnyValue& value) {
  return declared.kind == Type::Kind::kTensor && declared.has_shape && declared.shape.empty() && value.is_tensor() &&
         !value.tensor().dims().empty() && value.tensor().element_count() == 1 &&
         value.tensor().type() == declared.element;
}

// Whether a run needs its own copy of the container: several runs may use the caller's sequences at once, and sequences
// grow in place.
bool needs_own(const AnyValue& value) {
  return value.kind() == AnyValue::Kind::kSequence || value.kind() == AnyValue::Kind::kOptional;
}

AnyValue own(const AnyValue& value) {
  if (value.kind() == AnyValue::Kind::kSequence) {
    std::vector<AnyValue> elements;
    elements.reserve(value.sequence().size());
    for (const AnyValue& element : value.sequence().elements()) elements.push_back(own(element));
    return AnyValue(Sequence(value.sequence().element_type(), std::move(elements)));
  }
  if (value.kind() == AnyValue::Kind::kOptional && value.optional().value) {
    const Optional& optional = value.optional();
    return AnyValue(Optional{optional.element_type, std::make_shared<const AnyValue>(own(*optional.value))});
  }
  return value;
}

}  // namespace

Type without_element_shapes(const Type& type) {
  if (type.kind == Type::Kind::kTensor) return Type::tensor(type.element);
  if (!type.child) return type;
  Type out = type;
  out.child = std::make_shared<const Type>(without_element_shapes(*type.child));
  return out;
}

Inputs::Inputs(const ir::Graph& graph) {
  const auto& inputs = graph.top().inputs;
  const auto has_default = [&](size_t i) {
    return i < graph.input_defaults.size() && graph.input_defaults[i].defined();
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    (has_default(i) ? overridable_ : required_).push_back({inputs[i]->name, inputs[i]->type, has_default(i)});
    defaults_.push_back(has_default(i) ? AnyValue(graph.input_defaults[i]) : AnyValue());
  }
  size_t required = 0, overridable = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    by_position_.push_back(has_default(i) ? &overridable_[overridable++] : &required_[required++]);
  }
}

std::vector<Type> Inputs::types() const {
  std::vector<Type> types;
  for (const IoInfo* input : by_position_) types.push_back(input->type);
  return types;
}

Status Inputs::check(size_t i, const AnyValue& value) const {
  return check_feed(*by_position_[i], value);
}

Status Inputs::fill(std::span<const Feed> feeds, Given& given) const {
  const size_t count = by_position_.size();
  given.reserve(feeds.size(), count);
  size_t position = 0;  // feeds tend to come in the order of the inputs
  for (const Feed& feed : feeds) {
    size_t looked_at = 0;
    for (; looked_at < count; ++looked_at, ++position) {
      if (position >= count) position = 0;
      if (by_position_[position]->name == feed.name) break;
    }
    if (looked_at == count) {
      return error(Code::kInvalidArgument, "the model has no input '{}'", feed.name);
    }
    const size_t i = position++;
    if (feed.value->is_none()) {
      const IoInfo& input = *by_position_[i];
      if (input.has_default || input.type.kind == Type::Kind::kOptional) continue;
      given.absent.resize(count);
      given.absent[i] = true;
      continue;
    }
    if (stands_for_scalar(by_position_[i]->type, *feed.value)) {
      given.values[i] = given.keep(AnyValue(feed.value->tensor().reshaped({})));
      continue;
    }
    TREADLE_TRY(check(i, *feed.value));
    given.values[i] = needs_own(*feed.value) ? given.keep(own(*feed.value)) : feed.value;
  }
  for (size_t i = 0; i < count; ++i) {
    if (given.values[i] || (!given.absent.empty() && given.absent[i])) continue;
    if (by_position_[i]->has_default) {
      given.values[i] = &defaults_[i];
    } else if (by_position_[i]->type.kind == Type::Kind::kOptional) {
      given.values[i] = given.keep(Optional{*by_position_[i]->type.child, nullptr});
    } else {
      return error(Code::kInvalidArgument, "input '{}' is missing: expected {}", by_position_[i]->name,
                   by_position_[i]->type.to_string());
    }
  }
  return {};
}

Status Inputs::require_all(const Given& given) const {
  for (size_t i = 0; i < given.absent.size(); ++i) {
    if (!given.absent[i]) continue;
    return error(Code::kInvalidArgument, "input '{}' is None: expected {}", by_position_[i]->name,
                 by_position_[i]->type.to_string());
  }
  return {};
}

}  // namespace treadle::session

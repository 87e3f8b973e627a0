// Declared types.
#include <algorithm>

#include "check/walk.h"

namespace treadle::checking {

namespace {

// Whether it is a complete and correct tensor type, as most are.
bool is_sound_tensor(const wire::TypeProto& type) {
  if (!type.tensor || !type.tensor->shape) return false;
  if (element_type_from_number(type.tensor->elem_type) == ElementType::kUndefined) return false;
  return std::ranges::all_of(type.tensor->shape->dims,
                             [](const wire::Dimension& dim) { return !dim.value || *dim.value >= 0; });
}

}  // namespace

void Walk::check_value_info(const wire::ValueInfoProto& value, bool main, std::string_view what) {
  if (value.name.empty()) report(Problem::kNameMissing, {}, "an {} of the graph has no name", what);
  check_text(value.name, "a name");
  const auto typed = [&] { return fmt::format("the type of {} {}", what, quoted(value.name)); };
  if (value.type && is_sound_tensor(*value.type)) return;
  if (value.type) {
    check_type(*value.type, main, value.name, main ? typed() : "a type");
  } else if (main) {
    report(Problem::kTypeMissing, value.name, "{} {} of the model has no type", what, quoted(value.name));
  }
}

void Walk::check_value_type(const wire::ValueInfoProto& value) {
  if (!value.type || is_sound_tensor(*value.type)) return;
  check_type(*value.type, false, value.name, "the type of " + quoted(value.name));
}

// `whole`: the type must be complete.
void Walk::check_type(const wire::TypeProto& type, bool whole, std::string_view at, std::string_view what) {
  const auto missing = [&](std::string_view part) {
    if (whole) report(Problem::kTypeMissing, at, "{}: {} is missing", what, part);
  };
  const auto check_dense = [&](const wire::TensorTypeProto& tensor) {
    check_element_type(tensor.elem_type, whole, at, what);
    if (!tensor.shape) return missing("the shape");
    for (const wire::Dimension& dim : tensor.shape->dims) {
      if (!dim.value || *dim.value >= 0) continue;
      report(Problem::kSizeNegative, at, "{}: a size is {}", what, *dim.value).hint =
          "leave unknown sizes out, or name them";
    }
  };
  if (type.tensor) {
    check_dense(*type.tensor);
  } else if (type.sparse_tensor) {
    check_dense(*type.sparse_tensor);
  } else if (const wire::ElementTypeProto* element = type.sequence ? type.sequence : type.optional) {
    if (!element->elem_type) return missing("the element type");
    check_type(*element->elem_type, false, at, what);
  } else if (type.map) {
    check_element_type(type.map->key_type, whole, at, what);
    if (!type.map->value_type) return missing("the type of the values");
    check_type(*type.map->value_type, false, at, what);
  } else if (type.opaque) {
    if (type.opaque->name.empty()) missing("the name");
  } else {
    missing("what it is (a tensor, a sequence, ...)");
  }
}

void Walk::check_element_type(int32_t number, bool required, std::string_view at, std::string_view what) {
  if (element_type_from_number(number) != ElementType::kUndefined || (number == 0 && !required)) return;
  Diagnostic& d = report(number == 0 ? Problem::kTypeMissing : Problem::kTypeInvalid, at, "{}: the element type", what);
  d.expected = "a number from 1 to 28";
  d.found = number == 0 ? "none" : std::to_string(number);
}

}  // namespace treadle::checking

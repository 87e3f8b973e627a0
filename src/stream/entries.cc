#include "stream/entries.h"

#include <cstring>

#include "stream/tensor_slices.h"

namespace treadle::entries {

namespace {

// Calls fn(tensor of each, axis of its batch) for every value with entries. A state that still has its initial zeros
// has none: its size depends on the samples of its first run.
template <class Fn, class... Of>
void for_each_value(const PooledModel& model, const Carried& shape, Fn fn, Of&... carried) {
  for (size_t i = 0; i < shape.states.size(); ++i) {
    if (!shape.is_initial[i]) fn(model.states[i], carried.states[i].tensor()...);
  }
  for (size_t i = 0; i < shape.found.size(); ++i) {
    fn(model.states[shape.states.size() + i], carried.found[i].tensor()...);
  }
  for (size_t i = 0; i < shape.tails.size(); ++i) {
    if (shape.tails[i].defined()) fn(model.fed[i].batch, carried.tails[i]...);
  }
  for (size_t i = 0; i < shape.last_values.size(); ++i) {
    const bool has_entries = model.outputs[i] != kNoAxis && shape.last_values[i].is_tensor();
    if (has_entries) fn(model.outputs[i], carried.last_values[i].tensor()...);
  }
}

bool same_but_for(int64_t axis, const Tensor& a, const Tensor& b) {
  if (a.type() != b.type() || a.rank() != b.rank()) return false;
  for (size_t i = 0; i < a.dims().size(); ++i) {
    if (a.dims()[i] != b.dims()[i] && static_cast<int64_t>(i) != axis) return false;
  }
  return true;
}

bool same_kinds(std::span<const AnyValue> a, std::span<const AnyValue> b) {
  bool same = a.size() == b.size();
  for (size_t i = 0; same && i < a.size(); ++i) same = a[i].kind() == b[i].kind();
  return same;
}

// Sets the sizes of results without frames to those of the last results, for `count` entries.
void set_entries(const PooledModel& model, size_t count, Carried& carried) {
  for (size_t i = 0; i < carried.last_dims.size(); ++i) {
    Dims& dims = carried.last_dims[i];
    const auto axis = static_cast<size_t>(model.outputs[i]);
    if (model.outputs[i] != kNoAxis && axis < dims.size()) dims[axis] = static_cast<int64_t>(count);
  }
}

}  // namespace

bool fit_together(const PooledModel& model, const Carried& a, const Carried& b) {
  bool same = a.begun == b.begun && a.is_initial == b.is_initial && same_kinds(a.found, b.found) &&
              same_kinds(a.last_values, b.last_values) && a.tails.size() == b.tails.size();
  for (size_t i = 0; same && i < a.tails.size(); ++i) same = a.tails[i].defined() == b.tails[i].defined();
  if (!same) return false;
  for_each_value(
      model, a, [&](int64_t axis, const Tensor& x, const Tensor& y) { same &= same_but_for(axis, x, y); }, a, b);
  return same;
}

Result<Carried> gather(const PooledModel& model, std::span<const Entry> from, size_t room, Carried spare) {
  const Carried& first = *from.front().carried;
  const size_t count = std::max(from.size(), room);
  Carried made = first;
  const auto take = [](int64_t, Tensor& tensor, Tensor& free) { tensor = std::move(free); };
  if (fit_together(model, first, spare)) for_each_value(model, first, take, made, spare);
  set_entries(model, count, made);
  Status status;
  for_each_value(
      model, first,
      [&](int64_t axis, const Tensor& like, Tensor& tensor) {
        Dims dims = like.dims();
        dims[static_cast<size_t>(axis)] = static_cast<int64_t>(count);
        if (tensor.dims() == dims && tensor.exclusive()) return;
        auto allocated = Tensor::allocate(like.type(), std::move(dims));
        if (!allocated.ok()) {
          if (status.ok()) status = std::move(allocated).status();
          return;
        }
        tensor = std::move(*allocated);
      },
      first, made);
  TREADLE_TRY(std::move(status));
  for (size_t i = 0; i < from.size();) {
    size_t next = i + 1;  // contiguous entries are copied together
    while (next < from.size() && from[next].carried == from[i].carried && from[next].at == from[i].at + (next - i))
      ++next;
    put(model, from[i], next - i, made, i);
    i = next;
  }
  return made;
}

Result<std::optional<Carried>> beginning_like(const PooledModel& model, const Carried& other, const Carried& begin) {
  const Entry one{&other, 0};
  TREADLE_ASSIGN(Carried made, gather(model, {&one, 1}));
  bool fits = true;
  const auto clear = [&](int64_t, Tensor& t) {
    fits &= t.type() != ElementType::kString;
    if (fits) std::memset(t.mutable_raw(), 0, t.byte_size());
  };
  for_each_value(model, other, clear, made);
  for (size_t i = 0; i < made.states.size(); ++i) {
    if (begin.is_initial[i] || made.is_initial[i]) continue;
    fits &= begin.states[i].is_tensor() && same_but_for(kNoAxis, begin.states[i].tensor(), made.states[i].tensor());
    made.states[i] = begin.states[i];
  }
  if (!fits) return std::optional<Carried>();
  return std::optional(std::move(made));
}

Status make_exclusive(Carried& carried) {
  const auto own = [](AnyValue& value) -> Status {
    if (!value.is_tensor() || is_free(value)) return {};
    AnyValue copy;
    TREADLE_TRY(copy_into(value, copy));
    value = std::move(copy);
    return {};
  };
  for (auto* values : {&carried.states, &carried.found, &carried.last_values}) {
    for (AnyValue& value : *values) TREADLE_TRY(own(value));
  }
  for (Tensor& tail : carried.tails) {
    if (!tail.defined() || tail.exclusive()) continue;
    AnyValue copy;
    TREADLE_TRY(copy_into(AnyValue(tail), copy));
    tail = std::move(copy.tensor());
  }
  return {};
}

void put(const PooledModel& model, const Entry& from, size_t count, Carried& to, size_t at) {
  for_each_value(
      model, *from.carried,
      [&](int64_t axis, const Tensor& source, Tensor& target) {
        copy_along(source, static_cast<int64_t>(from.at), static_cast<int64_t>(count), target, static_cast<int64_t>(at),
                   axis);
      },
      *from.carried, to);
}

Result<AnyValue> of_result(const AnyValue& value, int64_t axis, size_t at) {
  if (axis == kNoAxis) return value;
  if (value.is_tensor()) {
    AnyValue own;
    TREADLE_TRY(slice_into(value.tensor(), axis, static_cast<int64_t>(at), 1, own));
    return own;
  }
  if (value.kind() != AnyValue::Kind::kSequence) return value;
  std::vector<AnyValue> elements;
  for (const AnyValue& element : value.sequence().elements()) {
    TREADLE_ASSIGN(AnyValue own, of_result(element, axis, at));
    elements.push_back(std::move(own));
  }
  return AnyValue(Sequence(value.sequence().element_type(), std::move(elements)));
}

}  // namespace treadle::entries

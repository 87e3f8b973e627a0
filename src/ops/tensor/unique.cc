// Unique: the different elements, or slices along an axis, of a tensor.

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>

#include "kernels/sort.h"
#include "op/op_def.h"
#include "op/work.h"
#include "ops/costs.h"
#include "ops/tensor/picked_slices.h"

namespace treadle {
namespace {

using tensor_ops::optional_axis;
using tensor_ops::pick_slices;
using tensor_ops::Positions;
using tensor_ops::Slices;

// 0, 1, ...
Result<Positions> ascending(size_t count) {
  Positions all(count);
  const bool done = in_pieces(static_cast<int64_t>(count), kByteNs * sizeof(int64_t), [&](int64_t begin, int64_t end) {
    std::iota(all.begin() + begin, all.begin() + end, begin);
  });
  if (!done) return stopped();
  return all;
}

Status infer_unique(InferContext& c) {
  const Shape* shape = c.shape(0);
  if (!c.attributes().has("axis")) {
    c.set_output(0, c.element(0), {Dim::unknown()});
  } else if (!shape) {
    c.set_output(0, c.element(0));
  } else {
    TREADLE_ASSIGN(const auto axis, optional_axis(c.attributes(), static_cast<int64_t>(shape->size())));
    Shape out = *shape;
    out[static_cast<size_t>(*axis)] = Dim::unknown();
    c.set_output(0, c.element(0), std::move(out));
  }
  for (size_t i = 1; i < 4; ++i) c.set_output(i, ElementType::kInt64, {Dim::unknown()});
  return {};
}

// -1, 0 or 1; NaNs are alike and after every number.
template <class T>
int compare_numbers(T a, T b) {
  if (a < b) return -1;
  if (b < a) return 1;
  return a == b ? 0 : static_cast<int>(a != a) - static_cast<int>(b != b);
}

using Compare = int (*)(const Tensor& t, int64_t a, int64_t b);

template <class T>
int compare_elements(const Tensor& t, int64_t a, int64_t b) {
  if constexpr (std::is_same_v<T, String>) {
    const int order = t.data<T>()[a].compare(t.data<T>()[b]);
    return order < 0 ? -1 : order > 0;
  } else {
    return compare_numbers(t.data<T>()[a], t.data<T>()[b]);
  }
}

template <class T>
int compare_complex(const Tensor& t, int64_t a, int64_t b) {
  const auto *x = t.data<T>() + 2 * a, *y = t.data<T>() + 2 * b;
  const int real = compare_numbers(x[0], y[0]);
  return real ? real : compare_numbers(x[1], y[1]);
}

int compare_half(const Tensor& t, int64_t a, int64_t b) {
  return compare_numbers(t.double_at(a), t.double_at(b));
}

Compare comparison(ElementType type) {
  switch (type) {
    case ElementType::kFloat:
      return compare_elements<float>;
    case ElementType::kDouble:
      return compare_elements<double>;
    case ElementType::kInt8:
      return compare_elements<int8_t>;
    case ElementType::kInt16:
      return compare_elements<int16_t>;
    case ElementType::kInt32:
      return compare_elements<int32_t>;
    case ElementType::kInt64:
      return compare_elements<int64_t>;
    case ElementType::kUint8:
    case ElementType::kBool:
      return compare_elements<uint8_t>;
    case ElementType::kUint16:
      return compare_elements<uint16_t>;
    case ElementType::kUint32:
      return compare_elements<uint32_t>;
    case ElementType::kUint64:
      return compare_elements<uint64_t>;
    case ElementType::kString:
      return compare_elements<String>;
    case ElementType::kComplex64:
      return compare_complex<float>;
    case ElementType::kComplex128:
      return compare_complex<double>;
    default:
      return compare_half;
  }
}

// Slices that are equal form a group; groups are listed by their first members.
struct Groups {
  Positions first;    // by group
  Positions count;    // by group
  Positions inverse;  // group by slice
};

// Elements that are equal have the same key: zeros of either sign do, and NaNs.
template <class T>
uint64_t key_of(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    if (x == 0) return 0;
    return std::bit_cast<uint64_t>(x != x ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(x));
  } else {
    return static_cast<uint64_t>(x);
  }
}

// Numbers keys in the order in which they come: an open table, as large as the number of different ones asks for.
class KeyNumbers {
 public:
  // kStopped: `stop` told it to end.
  int64_t number(uint64_t key, StopPoll& stop) {
    if (2 * keys_.size() >= places_.size() && !grow(stop)) return kStopped;
    int64_t& place = place_of(key);
    if (place < 0) {
      place = static_cast<int64_t>(keys_.size());
      keys_.push_back(key);
    }
    return place;
  }
  static constexpr int64_t kStopped = -1;

 private:
  int64_t& place_of(uint64_t key) {
    uint64_t mixed = (key ^ (key >> 32)) * 0x9e37'79b9'7f4a'7c15;
    mixed ^= mixed >> 29;
    const size_t mask = places_.size() - 1;
    size_t at = (mixed * 0xbf58'476d'1ce4'e5b9) >> 20 & mask;
    while (places_[at] >= 0 && keys_[static_cast<size_t>(places_[at])] != key) at = (at + 1) & mask;
    return places_[at];
  }
  bool grow(StopPoll& stop) {
    constexpr size_t kLeast = 64;
    places_ = Positions(std::max(kLeast, 2 * places_.size()));
    if (!fill_in_pieces(places_.data(), 0xff, places_.size() * sizeof places_[0])) return false;  // -1
    return in_pieces(static_cast<int64_t>(keys_.size()), costs::kUniquePlaceNs, stop, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) place_of(keys_[static_cast<size_t>(i)]) = i;
    });
  }

  CountedVector<uint64_t> keys_;  // by number
  Positions places_;              // a number, or -1
};

// Groups in the order of their values instead of their first members.
Result<Groups> in_order_of_values(const Tensor& t, Groups groups) {
  const Compare compare = comparison(t.type());
  TREADLE_ASSIGN(Positions order, ascending(groups.first.size()));
  Positions rank(order.size());
  const auto first = [&](int64_t group) { return groups.first[static_cast<size_t>(group)]; };
  const auto before = [&](int64_t a, int64_t b) { return compare(t, first(a), first(b)) < 0; };
  if (!kernels::sort(order.data(), static_cast<int64_t>(order.size()), before)) return stopped();
  Groups sorted;
  StopPoll stop;
  for (size_t i = 0; i < order.size(); ++i) {
    if (stop.after(costs::kUniqueMoveNs)) return stopped();
    rank[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
    sorted.first.push_back(first(order[i]));
    sorted.count.push_back(groups.count[static_cast<size_t>(order[i])]);
  }
  for (int64_t& group : groups.inverse) {
    group = rank[static_cast<size_t>(group)];
    if (stop.after(costs::kUniqueMoveNs)) return stopped();
  }
  sorted.inverse = std::move(groups.inverse);
  return sorted;
}

// Of numbers one by one: by tables.
template <class Get>
Result<Groups> group_numbers(const Tensor& t, bool sorted, Get&& get) {
  Groups groups;
  KeyNumbers numbers;
  groups.inverse.resize(static_cast<size_t>(t.element_count()));
  StopPoll stop;
  const bool goes_on = in_pieces(t.element_count(), costs::kUniqueKeyNs, stop, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t group = numbers.number(key_of(get(i)), stop);
      if (group == KeyNumbers::kStopped) return false;
      if (group == static_cast<int64_t>(groups.first.size())) {
        groups.first.push_back(i);
        groups.count.push_back(0);
      }
      ++groups.count[static_cast<size_t>(group)];
      groups.inverse[static_cast<size_t>(i)] = group;
    }
    return true;
  });
  if (!goes_on) return stopped();
  if (!sorted) return groups;
  return in_order_of_values(t, std::move(groups));
}

// Nothing: the elements are no numbers.
std::optional<Result<Groups>> group_if_numbers(const Tensor& t, bool sorted) {
  if (is_string(t.type()) || info(t.type()).type_class == TypeClass::kComplex) return std::nullopt;
  const auto grouped = [&](auto zero) {
    const auto* data = t.data<decltype(zero)>();
    return group_numbers(t, sorted, [data](int64_t i) { return data[i]; });
  };
  if (compute_type(t.type()) == ComputeType::kF32 && t.type() != ElementType::kFloat) {
    return group_numbers(t, sorted, [&](int64_t i) { return t.double_at(i); });
  }
  if (t.type() == ElementType::kFloat) return grouped(float());
  if (t.type() == ElementType::kDouble) return grouped(double());
  switch (byte_width(t.type())) {
    case 1:
      return grouped(uint8_t());
    case 2:
      return grouped(uint16_t());
    case 4:
      return grouped(uint32_t());
    default:
      return grouped(uint64_t());
  }
}

Result<Groups> group_slices(const Tensor& t, const Slices& s, bool sorted) {
  const Compare compare = comparison(t.type());
  StopPoll stop;
  bool is_stopped = false;
  auto compare_slices = [&](int64_t a, int64_t b) {
    for (int64_t o = 0; o < s.outer && !is_stopped; ++o) {
      for (int64_t i = 0; i < s.inner && !is_stopped; ++i) {
        const int order = compare(t, (o * s.count + a) * s.inner + i, (o * s.count + b) * s.inner + i);
        if (order) return order;
        is_stopped = stop.after(costs::kSelectedElementNs);
      }
    }
    return 0;
  };
  TREADLE_ASSIGN(Positions order, ascending(static_cast<size_t>(s.count)));
  const auto before = [&](int64_t a, int64_t b) {
    const int difference = compare_slices(a, b);
    return difference ? difference < 0 : a < b;
  };
  if (!kernels::sort(order.data(), s.count, before, costs::kUniqueCompareNs) || is_stopped) return stopped();
  Groups by_value;
  by_value.inverse.resize(order.size());
  for (size_t k = 0; k < order.size(); ++k) {
    if (stop.after(costs::kUniqueCompareNs) || is_stopped) return stopped();
    if (k == 0 || compare_slices(order[k - 1], order[k]) != 0) {
      by_value.first.push_back(order[k]);
      by_value.count.push_back(0);
    }
    ++by_value.count.back();
    by_value.inverse[static_cast<size_t>(order[k])] = static_cast<int64_t>(by_value.first.size()) - 1;
  }
  if (sorted) return by_value;
  // By first occurrence: rank of each group among the first members.
  TREADLE_ASSIGN(Positions groups, ascending(by_value.first.size()));
  const auto occurs_before = [&](int64_t a, int64_t b) {
    return by_value.first[static_cast<size_t>(a)] < by_value.first[static_cast<size_t>(b)];
  };
  if (!kernels::sort(groups.data(), static_cast<int64_t>(groups.size()), occurs_before)) return stopped();
  Groups by_occurrence;
  Positions place(groups.size());
  for (size_t k = 0; k < groups.size(); ++k) {
    if (stop.after(costs::kUniqueCompareNs)) return stopped();
    const auto g = static_cast<size_t>(groups[k]);
    place[g] = static_cast<int64_t>(k);
    by_occurrence.first.push_back(by_value.first[g]);
    by_occurrence.count.push_back(by_value.count[g]);
  }
  for (int64_t g : by_value.inverse) {
    by_occurrence.inverse.push_back(place[static_cast<size_t>(g)]);
    if (stop.after(costs::kUniqueCompareNs)) return stopped();
  }
  return by_occurrence;
}

Status compute_unique(ComputeContext& c) {
  const Tensor& in = c.tensor(0);
  TREADLE_ASSIGN(const auto axis, optional_axis(c.attributes(), in.rank()));
  const bool sorted = c.attributes().get_int("sorted", 1) != 0;
  std::optional<Result<Groups>> found;
  if (!axis) found = group_if_numbers(in, sorted);
  if (!found) found = group_slices(in, Slices(in.dims(), axis), sorted);
  TREADLE_ASSIGN(const Groups groups, std::move(*found));
  TREADLE_TRY(pick_slices(c, in, axis, groups.first));
  const Positions* lists[] = {&groups.first, &groups.inverse, &groups.count};
  for (size_t i = 1; i < c.outputs.size(); ++i) {
    const Positions& list = *lists[i - 1];
    TREADLE_ASSIGN(Tensor * out, c.allocate(i, ElementType::kInt64, {static_cast<int64_t>(list.size())}));
    if (!copy_in_pieces(out->mutable_data<int64_t>(), list.data(), list.size() * sizeof list[0])) return stopped();
  }
  return {};
}

}  // namespace
}  // namespace treadle

TREADLE_OP(Unique, "") {
  op.since(11)
      .in("X", "T")
      .out("Y", "T")
      .out("indices", "tensor(int64)", Arity::kOptional)
      .out("inverse_indices", "tensor(int64)", Arity::kOptional)
      .out("counts", "tensor(int64)", Arity::kOptional)
      .optional("axis", ir::AttributeKind::kInt)
      .attr("sorted", 1)
      .type("T", types::kAllTensors);
  op.since(28).type("T", types::kAllTensorsIr4);
  op.infer(infer_unique)
      .compute(compute_unique)
      .no_axes("what it finds depends on all positions")
      .work(work::one_by_one);
}

// Operators whose output sizes depend on all of their data: NonZero, Compress, Unique.

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <optional>

#include "base/unset.h"
#include "kernels/sort.h"
#include "op/axis_rules.h"
#include "op/dynamic_kernel.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/pieces.h"
#include "op/work.h"

namespace treadle {
namespace {

// --- NonZero

Status infer_non_zero(InferContext& c) {
  const Shape* shape = c.shape(0);
  const Dim rank = shape ? Dim(static_cast<int64_t>(shape->size())) : Dim();
  c.set_output(0, ElementType::kInt64, {rank, Dim::unknown()});
  return {};
}

using Positions = UnsetVector<int64_t>;

// About what an element takes that is looked at, and perhaps kept.
constexpr double kElementNs = 3;

// 0, 1, ...
Result<Positions> in_turn(size_t count) {
  Positions all(count);
  const bool done = in_pieces(static_cast<int64_t>(count), kByteNs * sizeof(int64_t), [&](int64_t begin, int64_t end) {
    std::iota(all.begin() + begin, all.begin() + end, begin);
  });
  if (!done) return stopped();
  return all;
}

// Those of [0, count) that `test` holds for. Counted before they are kept: to make a long list longer is to copy it.
template <class Test>
Result<Positions> positions_where(int64_t count, Test&& test) {
  StopPoll stop;
  size_t kept = 0;
  const auto count_kept = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) kept += test(i) ? 1 : 0;
  };
  if (!in_pieces(count, kElementNs, stop, count_kept)) return stopped();
  Positions found(kept);
  size_t at = 0;
  const auto keep = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end && at < kept; ++i) {  // without a branch that would be hard to foresee
      found[at] = i;
      at += test(i) ? 1 : 0;
    }
  };
  if (!in_pieces(count, kElementNs, stop, keep)) return stopped();
  return found;
}

// Bits that make an element differ from zero: for floats all but the sign.
template <class Word>
Result<Positions> non_zero_words(const Tensor& t, Word mask, int64_t words) {
  const auto* data = t.data<Word>();
  return positions_where(t.element_count(), [&](int64_t i) {
    bool any = false;
    for (int64_t w = 0; w < words; ++w) any |= (data[i * words + w] & mask) != 0;
    return any;
  });
}

Result<Positions> non_zero_positions(const Tensor& t) {
  if (is_string(t.type())) {
    return positions_where(t.element_count(), [&](int64_t i) { return !t.data<String>()[i].empty(); });
  }
  const bool signed_zero = is_float(t.type()) || info(t.type()).type_class == TypeClass::kComplex;
  const int64_t words = info(t.type()).type_class == TypeClass::kComplex ? 2 : 1;
  switch (byte_width(t.type()) / static_cast<size_t>(words)) {
    case 1:
      return non_zero_words<uint8_t>(t, 0xff, words);
    case 2:
      return non_zero_words<uint16_t>(t, signed_zero ? 0x7fff : 0xffff, words);
    case 4:
      return non_zero_words<uint32_t>(t, signed_zero ? ~uint32_t{0} >> 1 : ~uint32_t{0}, words);
    default:
      return non_zero_words<uint64_t>(t, signed_zero ? ~uint64_t{0} >> 1 : ~uint64_t{0}, words);
  }
}

// The coordinates in dimension d of `count` flat positions, which may lie in `to`. Divisions of 64 bits take long.
template <class Position>
void write_coordinates(const int64_t* flat, int64_t count, int64_t stride, int64_t size, int64_t* to) {
  const auto by = static_cast<Position>(stride), of = static_cast<Position>(size);
  for (int64_t i = 0; i < count; ++i) {
    auto at = static_cast<Position>(flat[i]);
    if (stride > 1) at /= by;
    to[i] = static_cast<int64_t>(size > 0 ? at % of : at);
  }
}

void write_coordinates(const int64_t* flat, int64_t count, const Dims& dims, const Dims& strides, size_t d,
                       int64_t* to) {
  const int64_t size = d == 0 ? 0 : dims[d];  // the first one is what is left
  if (dims[0] * strides[0] <= std::numeric_limits<uint32_t>::max()) {
    write_coordinates<uint32_t>(flat, count, strides[d], size, to);
  } else {
    write_coordinates<uint64_t>(flat, count, strides[d], size, to);
  }
}

Status compute_non_zero(ComputeContext& c) {
  const Tensor& in = c.tensor(0);
  TREADLE_ASSIGN(const Positions found, non_zero_positions(in));
  const auto count = static_cast<int64_t>(found.size());
  TREADLE_ASSIGN(Tensor * out, c.allocate(0, ElementType::kInt64, {in.rank(), count}));
  const Dims strides = contiguous_strides(in.dims());
  auto* to = out->mutable_data<int64_t>();
  StopPoll stop;
  for (size_t d = 0; d < strides.size(); ++d, to += count) {
    const auto write = [&](int64_t begin, int64_t end) {
      write_coordinates(found.data() + begin, end - begin, in.dims(), strides, d, to + begin);
    };
    if (!in_pieces(count, kElementNs, stop, write)) return stopped();
  }
  return {};
}

// Of elements of 1, 4 or 8 bytes.
template <class Word>
struct DynamicNonZero {
  Word mask = 0;
};

// Places of `found` elements that are not zero, in order.
template <class Word>
void place_non_zero(const Word* data, int64_t count, Word mask, int64_t found, int64_t* to) {
  const int64_t* end = to + found;
  int64_t i = 0;
  constexpr int64_t kRare = 4;  // one in so many
  if (sizeof(Word) == 1 && found < count / kRare) {
    for (; i + 8 <= count; i += 8) {
      uint64_t eight = 0;
      std::memcpy(&eight, data + i, sizeof eight);
      constexpr uint64_t kLow = 0x7f7f'7f7f'7f7f'7f7f;
      for (uint64_t any = (((eight & kLow) + kLow) | eight) & ~kLow; any != 0; any &= any - 1) {
        *to++ = i + std::countr_zero(any) / 8;
      }
    }
  }
  for (; to < end; ++i) {  // without a branch that would be hard to foresee
    *to = i;
    to += (data[i] & mask) != 0 ? 1 : 0;
  }
}

template <class Word>
uint32_t run_dynamic_non_zero(const DynamicNonZero<Word>& s, DynamicCall& call) {
  const DynamicOperand& in = call.inputs[0];
  const auto* data = static_cast<const Word*>(in.data);
  int64_t count = 0;
  for (int64_t i = 0; i < in.count; ++i) count += (data[i] & s.mask) != 0;
  const int64_t dims[] = {in.rank(), count};
  auto* to = static_cast<int64_t*>(call.make(0, dims));
  if (!to) return kNotDynamic;
  if (in.rank() == 0) return 0;
  // Flat positions lie where the last coordinates will be, which are taken off them last.
  int64_t* const flat = to + (in.rank() - 1) * count;
  place_non_zero(data, in.count, s.mask, count, flat);
  const Dims strides = contiguous_strides(*in.dims);
  for (size_t d = 0; d < strides.size() && in.rank() > 1; ++d) {
    write_coordinates(flat, count, *in.dims, strides, d, to + static_cast<int64_t>(d) * count);
  }
  return 0;
}

template <class Word>
DynamicKernel dynamic_non_zero_of(const DynamicContext& c, bool signed_zero) {
  const DynamicNonZero<Word> made{static_cast<Word>(signed_zero ? static_cast<Word>(~Word{0}) >> 1 : ~Word{0})};
  return dynamic_kernel<DynamicNonZero<Word>, run_dynamic_non_zero<Word>>(c, made);
}

DynamicKernel dynamic_non_zero(const DynamicContext& c) {
  const ElementType type = c.element(0);
  if (info(type).type_class == TypeClass::kComplex) return {};
  switch (byte_width(type)) {
    case 1:
      return is_float(type) ? DynamicKernel() : dynamic_non_zero_of<uint8_t>(c, false);
    case 4:
      return dynamic_non_zero_of<uint32_t>(c, is_float(type));
    case 8:
      return dynamic_non_zero_of<uint64_t>(c, is_float(type));
    default:
      return {};
  }
}

// A tensor as `count` slices, each of `outer` runs of `inner` elements, along one axis; without an axis every element
// is a slice.
struct Slices {
  int64_t outer = 1, count = 1, inner = 1;

  Slices(const Dims& dims, std::optional<int64_t> axis) {
    for (int64_t i = 0; i < static_cast<int64_t>(dims.size()); ++i) {
      const int64_t size = dims[static_cast<size_t>(i)];
      (!axis || i == *axis ? count : i < *axis ? outer : inner) *= size;
    }
  }
};

Result<std::optional<int64_t>> optional_axis(const ir::Attributes& attributes, int64_t rank) {
  const ir::Attribute* axis = attributes.find("axis");
  if (!axis) return std::optional<int64_t>();
  TREADLE_ASSIGN(const int64_t a, normalize_axis(axis->as_int(), rank));
  return std::optional<int64_t>(a);
}

// Output 0: the slices of `in` that `which` names, in that order.
Status pick_slices(ComputeContext& c, const Tensor& in, std::optional<int64_t> axis, std::span<const int64_t> which) {
  const auto count = static_cast<int64_t>(which.size());
  Dims dims{count};
  if (axis) {
    dims = in.dims();
    dims[static_cast<size_t>(*axis)] = count;
  }
  TREADLE_ASSIGN(Tensor * out, c.allocate(0, in.type(), std::move(dims)));
  if (out->element_count() == 0) return {};
  const Slices s(in.dims(), axis);
  const size_t width = byte_width(in.type());
  int64_t to = 0;
  StopPoll stop;
  for (int64_t o = 0; o < s.outer; ++o) {
    for (int64_t slice : which) {
      const int64_t from = (o * s.count + slice) * s.inner;
      if (is_string(in.type())) {
        for (int64_t i = 0; i < s.inner; ++i) {
          out->mutable_data<String>()[to + i] = in.data<String>()[from + i];
          if (stop.after(text_ns(in.data<String>()[from + i]))) return stopped();
        }
      } else {
        const auto bytes = static_cast<size_t>(s.inner) * width;
        copy_in_pieces(out->mutable_data<char>() + static_cast<size_t>(to) * width,
                       in.data<char>() + static_cast<size_t>(from) * width, bytes);
        if (stop.after(kElementNs + kByteNs * static_cast<double>(bytes))) return stopped();
      }
      to += s.inner;
    }
  }
  return {};
}

// --- Compress

Status infer_compress(InferContext& c) {
  if (const Shape* condition = c.shape(1); condition && condition->size() != 1) {
    return error(Code::kInvalidArgument, "condition has shape {}, expected rank 1", to_string(*condition));
  }
  const Shape* shape = c.shape(0);
  if (!c.attributes().has("axis")) return c.set_output(0, c.element(0), {Dim::unknown()}), Status();
  if (!shape) return c.set_output(0, c.element(0)), Status();
  TREADLE_ASSIGN(const auto axis, optional_axis(c.attributes(), static_cast<int64_t>(shape->size())));
  Shape out = *shape;
  out[static_cast<size_t>(*axis)] = Dim::unknown();
  c.set_output(0, c.element(0), std::move(out));
  return {};
}

Status compute_compress(ComputeContext& c) {
  const Tensor &in = c.tensor(0), &condition = c.tensor(1);
  TREADLE_ASSIGN(const auto axis, optional_axis(c.attributes(), in.rank()));
  const int64_t slices = Slices(in.dims(), axis).count;
  if (condition.rank() != 1) {
    return error(Code::kInvalidArgument, "condition has shape {}, expected rank 1", to_string(condition.dims()));
  }
  TREADLE_ASSIGN(const Positions kept,
                 positions_where(condition.element_count(), [&](int64_t i) { return condition.data<bool>()[i]; }));
  if (!kept.empty() && kept.back() >= slices) {
    const int64_t beyond = *std::lower_bound(kept.begin(), kept.end(), slices);
    return error(Code::kRuntime, "condition selects slice {}, expected one of the {} slices", beyond, slices);
  }
  return pick_slices(c, in, axis, kept);
}

// Elements that are wanted, `count` of them, without a branch that would be hard to foresee.
template <class Word>
void compress_elements(const char* from, const bool* wanted, int64_t count, char* to) {
  const char* end = to + static_cast<size_t>(count) * sizeof(Word);
  for (; to < end; from += sizeof(Word), ++wanted) {
    std::memcpy(to, from, sizeof(Word));
    to += sizeof(Word) * static_cast<size_t>(*wanted);
  }
}

// The same of slices of `bytes`.
void compress_slices(const char* from, size_t bytes, const bool* wanted, int64_t count, char* to) {
  if (bytes == 4) return compress_elements<uint32_t>(from, wanted, count, to);
  if (bytes == 8) return compress_elements<uint64_t>(from, wanted, count, to);
  for (; count > 0; from += bytes, ++wanted) {
    if (!*wanted) continue;
    std::memcpy(to, from, bytes);
    to += bytes;
    --count;
  }
}

struct DynamicCompress {
  std::optional<int64_t> axis;
  size_t width = 0;
};

uint32_t run_dynamic_compress(const DynamicCompress& s, DynamicCall& call) {
  const DynamicOperand &in = call.inputs[0], &condition = call.inputs[1];
  const auto axis = s.axis ? in.axis(*s.axis) : std::nullopt;
  if (condition.rank() != 1 || (s.axis && !axis)) return kNotDynamic;
  const Slices slices(*in.dims, axis);
  const auto* wanted = static_cast<const bool*>(condition.data);
  const bool* end = wanted + condition.count;
  const bool* beyond = wanted + std::min(condition.count, slices.count);
  if (std::find(beyond, end, true) != end) return kNotDynamic;
  const int64_t count = std::count(wanted, beyond, true);
  Dims dims{count};
  if (axis) {
    dims = *in.dims;
    dims[*axis] = count;
  }
  auto* to = static_cast<char*>(call.make(0, dims));
  if (!to) return kNotDynamic;
  const auto bytes = static_cast<size_t>(slices.inner) * s.width;
  const auto* from = static_cast<const char*>(in.data);
  for (int64_t o = 0; o < slices.outer && bytes > 0; ++o, from += static_cast<size_t>(slices.count) * bytes) {
    compress_slices(from, bytes, wanted, count, to);
    to += static_cast<size_t>(count) * bytes;
  }
  return 0;
}

DynamicKernel dynamic_compress(const DynamicContext& c) {
  DynamicCompress made{std::nullopt, byte_width(c.element(0))};
  if (c.attributes().has("axis")) made.axis = c.attributes().get_int("axis");
  return dynamic_kernel<DynamicCompress, run_dynamic_compress>(c, made);
}

// --- Unique

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
    constexpr double kPlaceNs = 10;
    places_ = Positions(std::max(kLeast, 2 * places_.size()));
    if (!fill_in_pieces(places_.data(), 0xff, places_.size() * sizeof places_[0])) return false;  // -1
    return in_pieces(static_cast<int64_t>(keys_.size()), kPlaceNs, stop, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) place_of(keys_[static_cast<size_t>(i)]) = i;
    });
  }

  CountedVector<uint64_t> keys_;  // by number
  Positions places_;              // a number, or -1
};

// Groups in the order of their values instead of their first members.
Result<Groups> in_order_of_values(const Tensor& t, Groups groups) {
  const Compare compare = comparison(t.type());
  TREADLE_ASSIGN(Positions order, in_turn(groups.first.size()));
  Positions rank(order.size());
  const auto first = [&](int64_t group) { return groups.first[static_cast<size_t>(group)]; };
  const auto before = [&](int64_t a, int64_t b) { return compare(t, first(a), first(b)) < 0; };
  if (!kernels::sort(order.data(), static_cast<int64_t>(order.size()), before)) return stopped();
  Groups sorted;
  StopPoll stop;
  constexpr double kMoveNs = 5;
  for (size_t i = 0; i < order.size(); ++i) {
    if (stop.after(kMoveNs)) return stopped();
    rank[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
    sorted.first.push_back(first(order[i]));
    sorted.count.push_back(groups.count[static_cast<size_t>(order[i])]);
  }
  for (int64_t& group : groups.inverse) {
    group = rank[static_cast<size_t>(group)];
    if (stop.after(kMoveNs)) return stopped();
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
  constexpr double kKeyNs = 10;
  const bool goes_on = in_pieces(t.element_count(), kKeyNs, stop, [&](int64_t begin, int64_t end) {
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
        is_stopped = stop.after(kElementNs);
      }
    }
    return 0;
  };
  TREADLE_ASSIGN(Positions order, in_turn(static_cast<size_t>(s.count)));
  const auto before = [&](int64_t a, int64_t b) {
    const int difference = compare_slices(a, b);
    return difference ? difference < 0 : a < b;
  };
  constexpr double kCompareNs = 20;
  if (!kernels::sort(order.data(), s.count, before, kCompareNs) || is_stopped) return stopped();
  Groups by_value;
  by_value.inverse.resize(order.size());
  for (size_t k = 0; k < order.size(); ++k) {
    if (stop.after(kCompareNs) || is_stopped) return stopped();
    if (k == 0 || compare_slices(order[k - 1], order[k]) != 0) {
      by_value.first.push_back(order[k]);
      by_value.count.push_back(0);
    }
    ++by_value.count.back();
    by_value.inverse[static_cast<size_t>(order[k])] = static_cast<int64_t>(by_value.first.size()) - 1;
  }
  if (sorted) return by_value;
  // By first occurrence: rank of each group among the first members.
  TREADLE_ASSIGN(Positions groups, in_turn(by_value.first.size()));
  const auto occurs_before = [&](int64_t a, int64_t b) {
    return by_value.first[static_cast<size_t>(a)] < by_value.first[static_cast<size_t>(b)];
  };
  if (!kernels::sort(groups.data(), static_cast<int64_t>(groups.size()), occurs_before)) return stopped();
  Groups by_occurrence;
  Positions place(groups.size());
  for (size_t k = 0; k < groups.size(); ++k) {
    if (stop.after(kCompareNs)) return stopped();
    const auto g = static_cast<size_t>(groups[k]);
    place[g] = static_cast<int64_t>(k);
    by_occurrence.first.push_back(by_value.first[g]);
    by_occurrence.count.push_back(by_value.count[g]);
  }
  for (int64_t g : by_value.inverse) {
    by_occurrence.inverse.push_back(place[static_cast<size_t>(g)]);
    if (stop.after(kCompareNs)) return stopped();
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

Status compressed_axes(AxisContext& c) {
  TREADLE_TRY(axes::only_first(c));
  if (!c.attributes().has("axis")) return looks_along("it picks among all elements");
  if (c.axis(c.rank(0), 0) == c.in(0)) return looks_along("it picks positions of it");
  return c.give(0, c.in(0));
}

}  // namespace
}  // namespace treadle

TREADLE_OP(NonZero, "") {
  op.since(9).in("X", "T").out("Y", "tensor(int64)").type("T", types::kAllTensors);
  op.since(13).type("T", types::kAllTensorsIr4);
  op.infer(infer_non_zero)
      .compute(compute_non_zero)
      .dynamic(dynamic_non_zero)
      .no_axes("what it finds depends on all positions")
      .work(work::one_by_one);
}

TREADLE_OP(Compress, "") {
  op.since(9)
      .in("input", "T")
      .in("condition", "T1")
      .out("output", "T")
      .optional("axis", ir::AttributeKind::kInt)
      .type("T", types::kAllTensors)
      .type("T1", types::kBools);
  op.since(11);
  op.since(28).type("T", types::kAllTensorsIr4);
  op.infer(infer_compress).compute(compute_compress).dynamic(dynamic_compress).can_fail().axes(compressed_axes);
}

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

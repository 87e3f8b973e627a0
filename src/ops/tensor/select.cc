// Operators that list or pick the elements that are not zero or that a condition names: NonZero, Compress.

#include <algorithm>
#include <cstring>
#include <optional>

#include "op/axis_rules.h"
#include "op/dynamic_kernel.h"
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

// The numbers of [0, count) for which `test` is true. They are counted first, since a list that grows is copied.
template <class Test>
Result<Positions> positions_where(int64_t count, Test&& test) {
  StopPoll stop;
  size_t kept = 0;
  const auto count_kept = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) kept += test(i) ? 1 : 0;
  };
  if (!in_pieces(count, costs::kSelectedElementNs, stop, count_kept)) return stopped();
  Positions found(kept);
  size_t at = 0;
  const auto keep = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end && at < kept; ++i) {  // without a branch that would be hard to foresee
      found[at] = i;
      at += test(i) ? 1 : 0;
    }
  };
  if (!in_pieces(count, costs::kSelectedElementNs, stop, keep)) return stopped();
  return found;
}

// --- NonZero

Status infer_non_zero(InferContext& c) {
  const Shape* shape = c.shape(0);
  const Dim rank = shape ? Dim(static_cast<int64_t>(shape->size())) : Dim();
  c.set_output(0, ElementType::kInt64, {rank, Dim::unknown()});
  return {};
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
    if (!in_pieces(count, costs::kSelectedElementNs, stop, write)) return stopped();
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

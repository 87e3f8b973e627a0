#include "kernels/isa/chain_steps.h"
#include "kernels/isa/tables.h"

#if defined(__AVX512BW__)
#include <immintrin.h>
#endif

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

namespace {

ChainIterations run_iterations(const ChainStep* first, void** table, int64_t iterations) {
  const Register none{};
  const int64_t left = reinterpret_cast<StepFn>(first->run)(first, table, iterations, 0, none, none, none, none);
  return left < 0 ? ChainIterations{iterations - ~left, false} : ChainIterations{iterations - left, true};
}

uint32_t run(const void* steps, void* const* table, const uint32_t*) {
  const Register none{};
  const auto* first = static_cast<const ChainStep*>(steps);
  reinterpret_cast<StepFn>(first->run)(first, table, 0, 0, none, none, none, none);
  return kOk;
}

int64_t end(TREADLE_STEP_ARGUMENTS) {
  (void)step;
  (void)table;
  return iterations;
}

int64_t call(TREADLE_STEP_ARGUMENTS) {
  const auto& what = *static_cast<const ChainCall*>(step->detail);
  what.run(what, *step, table);
  const Register none{};
  TREADLE_TAIL_CALL next_step(step)(step + 1, table, iterations, 0, none, none, none, none);
}

// --- the back edge; only a loop, whose table may change, has these ---

int64_t swap(TREADLE_STEP_ARGUMENTS) {
  auto* const places = const_cast<void**>(table);
  void* const before = places[step->in[0]];
  places[step->in[0]] = places[step->out];
  places[step->out] = before;
  TREADLE_TAIL_CALL next_step(step)(step + 1, table, iterations, made, a, b, c, d);
}

int64_t advance(TREADLE_STEP_ARGUMENTS) {
  auto*& place = const_cast<void**>(table)[step->out];
  place = static_cast<std::byte*>(place) + reinterpret_cast<int64_t>(step->detail);
  TREADLE_TAIL_CALL next_step(step)(step + 1, table, iterations, made, a, b, c, d);
}

int64_t count(TREADLE_STEP_ARGUMENTS) {
  ++*static_cast<int64_t*>(table[step->out]);
  TREADLE_TAIL_CALL next_step(step)(step + 1, table, iterations, made, a, b, c, d);
}

int64_t again(TREADLE_STEP_ARGUMENTS) {
  if (--iterations == 0) return 0;
  step -= reinterpret_cast<int64_t>(step->detail);
  TREADLE_TAIL_CALL next_step(step - 1)(step, table, iterations, made, a, b, c, d);
}

int64_t again_if(TREADLE_STEP_ARGUMENTS) {
  if (*static_cast<const uint8_t*>(table[step->in[0]]) == 0) return ~(iterations - 1);
  TREADLE_TAIL_CALL again(step, table, iterations, made, a, b, c, d);
}

template <size_t kBytes>
int64_t copy_small(TREADLE_STEP_ARGUMENTS) {
  std::memcpy(table[step->out], table[step->in[0]], kBytes);
  TREADLE_TAIL_CALL next_step(step)(step + 1, table, iterations, made, a, b, c, d);
}

int64_t copy_any(TREADLE_STEP_ARGUMENTS) {
  std::memcpy(table[step->out], table[step->in[0]], reinterpret_cast<size_t>(step->detail));
  TREADLE_TAIL_CALL next_step(step)(step + 1, table, iterations, made, a, b, c, d);
}

ChainFn copy_of(size_t bytes) {
  static constexpr auto kFn = [](StepFn fn) { return reinterpret_cast<ChainFn>(fn); };
  switch (bytes) {
    case 1:
      return kFn(copy_small<1>);
    case 4:
      return kFn(copy_small<4>);
    case 8:
      return kFn(copy_small<8>);
    case 16:
      return kFn(copy_small<16>);
    case 32:
      return kFn(copy_small<32>);
    default:
      return kFn(copy_any);
  }
}

ChainForms operation(ElementwiseOp op, ComputeType type, ChainShape shape) {
  switch (type) {
    case ComputeType::kF32:
      return f32_operation(op, shape);
    case ComputeType::kF64:
      return f64_operation(op, shape);
    case ComputeType::kI32:
      return i32_operation(op, shape);
    case ComputeType::kI64:
      return i64_operation(op, shape);
    case ComputeType::kBool:
      return operation_forms<uint8_t>(op, shape);
    default:
      return {};
  }
}

ChainForms where(ComputeType type, ChainShape shape) {
  switch (type) {
    case ComputeType::kF32:
      return where_forms<float>(shape);
    case ComputeType::kF64:
      return where_forms<double>(shape);
    case ComputeType::kI32:
    case ComputeType::kU32:
      return where_forms<int32_t>(shape);
    case ComputeType::kI64:
    case ComputeType::kU64:
      return where_forms<int64_t>(shape);
    case ComputeType::kBool:
      return where_forms<uint8_t>(shape);
    default:
      return {};
  }
}

template <class T>
ChainFn splat_of(ChainShape shape) {
  ChainFn found = nullptr;
  with_shape<T>(shape, [&](auto lanes, auto vectors) {
    found = reinterpret_cast<ChainFn>(&SplatStep<T, lanes.value, vectors.value>::run);
  });
  return found;
}

ChainFn splat(size_t width, ChainShape shape) {
  switch (width) {
    case 1:
      return splat_of<uint8_t>(shape);
    case 4:
      return splat_of<uint32_t>(shape);
    case 8:
      return splat_of<uint64_t>(shape);
    default:
      return nullptr;
  }
}

// --- odd numbers of elements ---

#if defined(__AVX512BW__)

TREADLE_ALWAYS_INLINE void load_part(std::byte* to, const std::byte* from, size_t n) {
  _mm512_storeu_si512(to, _mm512_maskz_loadu_epi8((uint64_t{1} << n) - 1, from));
}

TREADLE_ALWAYS_INLINE void store_part(std::byte* to, const std::byte* from, size_t n) {
  _mm512_mask_storeu_epi8(to, (uint64_t{1} << n) - 1, _mm512_loadu_si512(from));
}

#else

template <size_t kPiece>
TREADLE_ALWAYS_INLINE void copy_ends(std::byte* to, const std::byte* from, size_t n) {
  std::byte head[kPiece], tail[kPiece];
  std::memcpy(head, from, kPiece);
  std::memcpy(tail, from + n - kPiece, kPiece);
  std::memcpy(to, head, kPiece);
  std::memcpy(to + n - kPiece, tail, kPiece);
}

TREADLE_ALWAYS_INLINE void copy_part(std::byte* to, const std::byte* from, size_t n) {
  for (; n > 32; n -= 16, to += 16, from += 16) std::memcpy(to, from, 16);
  if (n >= 16) return copy_ends<16>(to, from, n);
  if (n >= 8) return copy_ends<8>(to, from, n);
  if (n >= 4) return copy_ends<4>(to, from, n);
  for (; n > 0; --n) *to++ = *from++;
}

TREADLE_ALWAYS_INLINE void load_part(std::byte* to, const std::byte* from, size_t n) {
  const Register none{};
  std::memcpy(to, &none, sizeof(none));
  copy_part(to, from, n);
}

TREADLE_ALWAYS_INLINE void store_part(std::byte* to, const std::byte* from, size_t n) {
  copy_part(to, from, n);
}

#endif

template <void (*kPart)(std::byte*, const std::byte*, size_t)>
int64_t copy_parts(TREADLE_STEP_ARGUMENTS) {
  const auto* from = static_cast<const std::byte*>(table[step->in[0]]);
  auto* to = static_cast<std::byte*>(table[step->out]);
  auto left = reinterpret_cast<size_t>(step->detail);
  for (; left >= kVectorBytes; left -= kVectorBytes, from += kVectorBytes, to += kVectorBytes) {
    std::memcpy(to, from, kVectorBytes);
  }
  if (left > 0) kPart(to, from, left);
  TREADLE_TAIL_CALL next_step(step)(step + 1, table, iterations, made, a, b, c, d);
}

}  // namespace

const ChainTable& chain_table() {
  static constexpr auto kFn = [](StepFn fn) { return reinterpret_cast<ChainFn>(fn); };
  static const ChainTable table{.vector_bytes = kVectorBytes,
                                .run = run,
                                .operation = operation,
                                .where = where,
                                .splat = splat,
                                .load = kFn(copy_parts<load_part>),
                                .store = kFn(copy_parts<store_part>),
                                .call = kFn(call),
                                .end = kFn(end),
                                .run_iterations = run_iterations,
                                .copy = copy_of,
                                .swap = kFn(swap),
                                .advance = kFn(advance),
                                .count = kFn(count),
                                .again = kFn(again),
                                .again_if = kFn(again_if)};
  return table;
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE

#pragma once
// The steps of chains (kernels/chain.h), as templates over operation, type and shape.
//
// All steps are functions of one type. Each ends by calling the next step with the same arguments in the same
// registers, which compiles to a jump: clang is forced to do so, and g++ does so when it optimises. Integers and bools
// of a chain over single elements are passed on in a general register, all other values in vector registers.
// `iterations` is the number of iterations of a loop that remain, the current one included. A chain returns the number
// that remains after it, or ~n if the body's condition ended the loop.

#include <array>

#include "kernels/chain.h"
#include "kernels/isa/rows.h"

#if defined(__clang__)
#define TREADLE_TAIL_CALL [[clang::musttail]] return
#else
#define TREADLE_TAIL_CALL return
#endif

namespace treadle::kernels {
namespace TREADLE_ISA_NAMESPACE {

typedef unsigned char Register __attribute__((vector_size(kVectorBytes)));

#define TREADLE_STEP_ARGUMENTS                                                                                    \
  const ChainStep *step, void *const *table, [[maybe_unused]] int64_t iterations, [[maybe_unused]] uint64_t made, \
      [[maybe_unused]] Register a, [[maybe_unused]] Register b, [[maybe_unused]] Register c,                      \
      [[maybe_unused]] Register d
using StepFn = int64_t (*)(const ChainStep*, void* const*, int64_t, uint64_t, Register, Register, Register, Register);

TREADLE_ALWAYS_INLINE StepFn next_step(const ChainStep* step) {
  return reinterpret_cast<StepFn>(step[1].run);
}

// The result of a step: `kVectors` times N elements of T, in the registers that pass it on.
template <class T, int N>
inline constexpr bool kInGeneralRegister = N == 1 && std::is_integral_v<T>;

template <class T, int N>
TREADLE_ALWAYS_INLINE Vec<T, N> from_register([[maybe_unused]] uint64_t made, [[maybe_unused]] Register r) {
  if constexpr (kInGeneralRegister<T, N>) {
    return Vec<T, N>::of(static_cast<T>(made));
  } else {
    Vec<T, N> x;
    std::memcpy(&x.v, &r, sizeof(x.v));
    return x;
  }
}

template <class T, int N>
TREADLE_ALWAYS_INLINE void to_register(Vec<T, N> x, [[maybe_unused]] uint64_t& made, [[maybe_unused]] Register& r) {
  if constexpr (kInGeneralRegister<T, N>) {
    made = static_cast<std::make_unsigned_t<T>>(x.v);
  } else {
    Register whole{};  // zero instead of the old contents, which an instruction would otherwise wait for
    std::memcpy(&whole, &x.v, sizeof(x.v));
    r = whole;
  }
}

// Makes a bool 0 or 1. A single bool from memory may be any byte that is not 0.
template <class T, int N>
TREADLE_ALWAYS_INLINE Vec<T, N> canonical(Vec<T, N> x) {
  if constexpr (std::is_same_v<T, uint8_t> && N == 1) {
    return Vec<T, N>::of(x.v != 0);
  } else {
    return x;
  }
}

template <class T, int N, int kVectors>
struct Values {
  Vec<T, N> v[kVectors];

  TREADLE_ALWAYS_INLINE static Values load(const void* from) {
    Values x;
    for (int i = 0; i < kVectors; ++i) x.v[i] = Vec<T, N>::load(static_cast<const T*>(from) + i * N);
    return x;
  }
  TREADLE_ALWAYS_INLINE static Values take(uint64_t made, Register a, Register b, Register c, Register d) {
    Values x;
    x.v[0] = from_register<T, N>(made, a);
    if constexpr (kVectors > 1) x.v[1] = from_register<T, N>(made, b);
    if constexpr (kVectors > 2) x.v[2] = from_register<T, N>(made, c);
    if constexpr (kVectors > 3) x.v[3] = from_register<T, N>(made, d);
    return x;
  }
  TREADLE_ALWAYS_INLINE void pass_on(uint64_t& made, Register& a, Register& b, Register& c, Register& d) const {
    to_register(v[0], made, a);
    if constexpr (kVectors > 1) to_register(v[1], made, b);
    if constexpr (kVectors > 2) to_register(v[2], made, c);
    if constexpr (kVectors > 3) to_register(v[3], made, d);
  }
  TREADLE_ALWAYS_INLINE void store(void* to) const {
    for (int i = 0; i < kVectors; ++i) v[i].store(static_cast<T*>(to) + i * N);
  }
};

template <class T, int N>
TREADLE_ALWAYS_INLINE Vec<T, N> stored(Vec<T, N> x) {
  return x;
}
template <size_t kBytes, int N>
TREADLE_ALWAYS_INLINE Vec<uint8_t, N> stored(Mask<kBytes, N> mask) {
  return to_bool_bytes(mask);
}

// Calls evaluate(i) for every vector.
template <int kVectors, class Evaluate>
TREADLE_ALWAYS_INLINE auto each_vector(Evaluate evaluate) {
  using V = decltype(stored(evaluate(0)));
  Values<typename V::Scalar, V::kLanes, kVectors> y;
  for (int i = 0; i < kVectors; ++i) y.v[i] = stored(evaluate(i));
  return y;
}

template <class Op, class V>
TREADLE_ALWAYS_INLINE auto evaluate_unary(V x, [[maybe_unused]] const ChainStep* step) {
  if constexpr (requires { Op::eval(x); }) {
    return Op::eval(x);
  } else {
    const auto* params = static_cast<const ElementwiseParams*>(step->detail);
    using T = typename V::Scalar;
    return Op::eval(x, functions::Params<V>{V(static_cast<T>(params->alpha)), V(static_cast<T>(params->beta))});
  }
}

template <class Op, class T, int N, int kVectors>
struct UnaryStep {
  using V = Values<T, N, kVectors>;

  static int64_t first(TREADLE_STEP_ARGUMENTS) {
    const V x = V::take(made, a, b, c, d);
    const auto y = each_vector<kVectors>([&](int i) { return evaluate_unary<Op>(canonical(x.v[i]), step); });
    y.store(table[step->out]);
    y.pass_on(made, a, b, c, d);
    TREADLE_TAIL_CALL next_step(step)(step + 1, table, iterations, made, a, b, c, d);
  }
  static int64_t memory(TREADLE_STEP_ARGUMENTS) {
    V::load(table[step->in[0]]).pass_on(made, a, b, c, d);
    TREADLE_TAIL_CALL first(step, table, iterations, made, a, b, c, d);
  }
  static ChainForms forms() { return {reinterpret_cast<ChainFn>(&memory), reinterpret_cast<ChainFn>(&first), nullptr}; }
};

template <class Op, class T, int N, int kVectors>
struct BinaryStep {
  using V = Values<T, N, kVectors>;

  static int64_t first(TREADLE_STEP_ARGUMENTS) {
    const V x = V::take(made, a, b, c, d);
    const V y = V::load(table[step->in[1]]);
    const auto z = each_vector<kVectors>([&](int i) { return Op::eval(canonical(x.v[i]), canonical(y.v[i])); });
    z.store(table[step->out]);
    z.pass_on(made, a, b, c, d);
    TREADLE_TAIL_CALL next_step(step)(step + 1, table, iterations, made, a, b, c, d);
  }
  static int64_t second(TREADLE_STEP_ARGUMENTS) {
    const V x = V::load(table[step->in[0]]);
    const V y = V::take(made, a, b, c, d);
    const auto z = each_vector<kVectors>([&](int i) { return Op::eval(canonical(x.v[i]), canonical(y.v[i])); });
    z.store(table[step->out]);
    z.pass_on(made, a, b, c, d);
    TREADLE_TAIL_CALL next_step(step)(step + 1, table, iterations, made, a, b, c, d);
  }
  static int64_t memory(TREADLE_STEP_ARGUMENTS) {
    V::load(table[step->in[0]]).pass_on(made, a, b, c, d);
    TREADLE_TAIL_CALL first(step, table, iterations, made, a, b, c, d);
  }
  static ChainForms forms() {
    return {reinterpret_cast<ChainFn>(&memory), reinterpret_cast<ChainFn>(&first), reinterpret_cast<ChainFn>(&second)};
  }
};

template <class T, int N, int kVectors>
struct WhereStep {
  using V = Values<T, N, kVectors>;
  using Condition = Values<uint8_t, N, kVectors>;

  static int64_t first(TREADLE_STEP_ARGUMENTS) {
    using Lane = typename SizedInt<sizeof(T)>::Signed;
    const Condition condition = Condition::take(made, a, b, c, d);
    const V x = V::load(table[step->in[1]]);
    const V y = V::load(table[step->in[2]]);
    const auto z = each_vector<kVectors>([&](int i) {
      const Vec<Lane, N> wide = convert_lanes<Lane>(condition.v[i]);
      return select(wide != Vec<Lane, N>(Lane(0)), x.v[i], y.v[i]);
    });
    z.store(table[step->out]);
    z.pass_on(made, a, b, c, d);
    TREADLE_TAIL_CALL next_step(step)(step + 1, table, iterations, made, a, b, c, d);
  }
  static int64_t memory(TREADLE_STEP_ARGUMENTS) {
    Condition::load(table[step->in[0]]).pass_on(made, a, b, c, d);
    TREADLE_TAIL_CALL first(step, table, iterations, made, a, b, c, d);
  }
  static ChainForms forms() { return {reinterpret_cast<ChainFn>(&memory), reinterpret_cast<ChainFn>(&first), nullptr}; }
};

template <class T, int N, int kVectors>
struct SplatStep {
  static int64_t run(TREADLE_STEP_ARGUMENTS) {
    const T x = *static_cast<const T*>(table[step->in[0]]);
    const auto y = each_vector<kVectors>([&](int) { return Vec<T, N>(x); });
    y.store(table[step->out]);
    y.pass_on(made, a, b, c, d);
    TREADLE_TAIL_CALL next_step(step)(step + 1, table, iterations, made, a, b, c, d);
  }
};

// Calls found(lanes, vectors) with the constants of `shape` if values of T may have that shape: a single element, one
// vector of 16 bytes or more, or several vectors of full width. Bools take the shape of any wider type.
template <class T, int N, int kVectors, class Found>
void try_shape(ChainShape shape, Found found) {
  if (shape == ChainShape{N, kVectors})
    found(std::integral_constant<int, N>(), std::integral_constant<int, kVectors>());
}
template <class T, int N, class Found>
void try_lanes(ChainShape shape, Found found) {
  constexpr bool kIsBool = std::is_same_v<T, uint8_t>;
  constexpr size_t kBytes = sizeof(T) * N;
  if constexpr (N == 1 || kIsBool || (kBytes >= 16 && kBytes <= kVectorBytes)) try_shape<T, N, 1>(shape, found);
  if constexpr (N > 1 && (kIsBool || kBytes == kVectorBytes)) {
    try_shape<T, N, 2>(shape, found);
    try_shape<T, N, 4>(shape, found);
  }
}
template <class T, class Found>
void with_shape(ChainShape shape, Found found) {
  try_lanes<T, 1>(shape, found);
  try_lanes<T, 2>(shape, found);
  try_lanes<T, 4>(shape, found);
  try_lanes<T, 8>(shape, found);
  try_lanes<T, 16>(shape, found);
}

// Operations with a step of their own. Other operations, which are rare and long, are called.
template <class T, ElementwiseOp kOp>
constexpr bool has_step() {
  constexpr bool kFloat = std::is_floating_point_v<T>;
  switch (kOp) {
    case ElementwiseOp::kSin:
    case ElementwiseOp::kCos:
    case ElementwiseOp::kErf:
      return std::is_same_v<T, float>;
    case ElementwiseOp::kCeil:
    case ElementwiseOp::kFloor:
    case ElementwiseOp::kRound:
    case ElementwiseOp::kSqrt:
    case ElementwiseOp::kReciprocal:
    case ElementwiseOp::kExp:
    case ElementwiseOp::kLog:
    case ElementwiseOp::kTanh:
    case ElementwiseOp::kSigmoid:
    case ElementwiseOp::kLeakyRelu:
    case ElementwiseOp::kHardSigmoid:
    case ElementwiseOp::kIsNaN:
    case ElementwiseOp::kDiv:
      return kFloat;
    case ElementwiseOp::kAbs:
    case ElementwiseOp::kNeg:
    case ElementwiseOp::kSign:
    case ElementwiseOp::kRelu:
    case ElementwiseOp::kNot:
    case ElementwiseOp::kAdd:
    case ElementwiseOp::kSub:
    case ElementwiseOp::kMul:
    case ElementwiseOp::kMin:
    case ElementwiseOp::kMax:
    case ElementwiseOp::kEqual:
    case ElementwiseOp::kLess:
    case ElementwiseOp::kGreater:
    case ElementwiseOp::kLessOrEqual:
    case ElementwiseOp::kGreaterOrEqual:
    case ElementwiseOp::kAnd:
    case ElementwiseOp::kOr:
    case ElementwiseOp::kXor:
    case ElementwiseOp::kBitwiseAnd:
    case ElementwiseOp::kBitwiseOr:
    case ElementwiseOp::kBitwiseXor:
    case ElementwiseOp::kBitwiseNot:
      return true;
    default:
      return false;
  }
}

template <class T, class Op, int kInputs>
ChainForms forms_of(ChainShape shape) {
  ChainForms forms;
  with_shape<T>(shape, [&](auto lanes, auto vectors) {
    if constexpr (kInputs == 1) {
      forms = UnaryStep<Op, T, lanes.value, vectors.value>::forms();
    } else {
      forms = BinaryStep<Op, T, lanes.value, vectors.value>::forms();
    }
  });
  return forms;
}

template <class T>
ChainForms operation_forms(ElementwiseOp op, ChainShape shape) {
  switch (op) {
#define X(name, inputs, domain, ...)                                                              \
  case ElementwiseOp::k##name:                                                                    \
    if constexpr (in_domain<T, OpDomain::k##domain>() && has_step<T, ElementwiseOp::k##name>()) { \
      return forms_of<T, functions::name, inputs>(shape);                                         \
    }                                                                                             \
    return {};
    TREADLE_ELEMENTWISE_OPS(X)
#undef X
  }
  return {};
}

template <class T>
ChainForms where_forms(ChainShape shape) {
  ChainForms forms;
  with_shape<T>(shape, [&](auto lanes, auto vectors) { forms = WhereStep<T, lanes.value, vectors.value>::forms(); });
  return forms;
}

// Each type has a source of its own.
ChainForms f32_operation(ElementwiseOp op, ChainShape shape);
ChainForms f64_operation(ElementwiseOp op, ChainShape shape);
ChainForms i32_operation(ElementwiseOp op, ChainShape shape);
ChainForms i64_operation(ElementwiseOp op, ChainShape shape);

}  // namespace TREADLE_ISA_NAMESPACE
}  // namespace treadle::kernels

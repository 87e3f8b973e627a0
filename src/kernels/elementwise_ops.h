#pragma once
// The elementwise operations, in one table.
//
// X(enumerator, inputs, domain, result, effect)
//   domain: the compute types that have rows: Float (f32 f64), Number (all but bool),
//           Integer (i32 i64 u32 u64), Bool, Any
//   result: Same as the compute type, or Bool
//   effect: Total, or CanFail (integer division by zero)
// Operations on narrow integers run in 32 bits and wrap on the way out, which gives what narrow arithmetic would.
//
// Notes, by operation (alpha and beta are fields of ElementwiseParams):
//   Round to even; Sign(NaN) is NaN; integer Neg and Abs wrap.
//   LeakyRelu, Elu, Celu, ThresholdedRelu (x > alpha), ThresholdedReluEqual (x >= alpha; the RNN activation): alpha.
//   Selu: alpha, gamma = beta. HardSigmoid: alpha x + beta. Affine: alpha x + beta. ScaledTanh: alpha tanh(beta x).
//   Shrink: lambd = alpha, bias = beta. Swish: x sigmoid(alpha x). IsInf: alpha != 0 detects -inf, beta != 0 +inf.
//   Div and Mod of integers by zero fail; Div truncates. Mod has the sign of the divisor (floats: as numpy.mod), Fmod
//   that of the dividend. Pow of integers wraps; a negative exponent gives the truncated result (0 unless |base| is 1).
//   Min and Max propagate NaN. Shifts by the width or more, or by less than 0, give 0, or -1
//   for a negative number shifted right.
//   PRelu: b is the slope. Clip: min(max(x, lo), hi), inputs x, lo, hi, the bounds being scalars or absent.
//   Where: condition (bool), x, y; any element type.
#define TREADLE_ELEMENTWISE_OPS(X)               \
  X(Abs, 1, Number, Same, Total)                 \
  X(Neg, 1, Number, Same, Total)                 \
  X(Sign, 1, Number, Same, Total)                \
  X(Ceil, 1, Float, Same, Total)                 \
  X(Floor, 1, Float, Same, Total)                \
  X(Round, 1, Float, Same, Total)                \
  X(Sqrt, 1, Float, Same, Total)                 \
  X(Reciprocal, 1, Float, Same, Total)           \
  X(Exp, 1, Float, Same, Total)                  \
  X(Log, 1, Float, Same, Total)                  \
  X(Sin, 1, Float, Same, Total)                  \
  X(Cos, 1, Float, Same, Total)                  \
  X(Tan, 1, Float, Same, Total)                  \
  X(Asin, 1, Float, Same, Total)                 \
  X(Acos, 1, Float, Same, Total)                 \
  X(Atan, 1, Float, Same, Total)                 \
  X(Sinh, 1, Float, Same, Total)                 \
  X(Cosh, 1, Float, Same, Total)                 \
  X(Tanh, 1, Float, Same, Total)                 \
  X(Asinh, 1, Float, Same, Total)                \
  X(Acosh, 1, Float, Same, Total)                \
  X(Atanh, 1, Float, Same, Total)                \
  X(Erf, 1, Float, Same, Total)                  \
  X(Sigmoid, 1, Float, Same, Total)              \
  X(Relu, 1, Number, Same, Total)                \
  X(LeakyRelu, 1, Float, Same, Total)            \
  X(Elu, 1, Float, Same, Total)                  \
  X(Selu, 1, Float, Same, Total)                 \
  X(Celu, 1, Float, Same, Total)                 \
  X(Softplus, 1, Float, Same, Total)             \
  X(Softsign, 1, Float, Same, Total)             \
  X(HardSigmoid, 1, Float, Same, Total)          \
  X(HardSwish, 1, Float, Same, Total)            \
  X(ThresholdedRelu, 1, Float, Same, Total)      \
  X(ThresholdedReluEqual, 1, Float, Same, Total) \
  X(Shrink, 1, Number, Same, Total)              \
  X(Mish, 1, Float, Same, Total)                 \
  X(GeluErf, 1, Float, Same, Total)              \
  X(GeluTanh, 1, Float, Same, Total)             \
  X(Swish, 1, Float, Same, Total)                \
  X(Affine, 1, Float, Same, Total)               \
  X(ScaledTanh, 1, Float, Same, Total)           \
  X(IsNaN, 1, Float, Bool, Total)                \
  X(IsInf, 1, Float, Bool, Total)                \
  X(Not, 1, Bool, Same, Total)                   \
  X(BitwiseNot, 1, Integer, Same, Total)         \
  X(Add, 2, Number, Same, Total)                 \
  X(Sub, 2, Number, Same, Total)                 \
  X(Mul, 2, Number, Same, Total)                 \
  X(Div, 2, Number, Same, CanFail)               \
  X(Mod, 2, Number, Same, CanFail)               \
  X(Fmod, 2, Number, Same, CanFail)              \
  X(Pow, 2, Number, Same, Total)                 \
  X(Min, 2, Number, Same, Total)                 \
  X(Max, 2, Number, Same, Total)                 \
  X(PRelu, 2, Number, Same, Total)               \
  X(Equal, 2, Any, Bool, Total)                  \
  X(Less, 2, Number, Bool, Total)                \
  X(Greater, 2, Number, Bool, Total)             \
  X(LessOrEqual, 2, Number, Bool, Total)         \
  X(GreaterOrEqual, 2, Number, Bool, Total)      \
  X(And, 2, Bool, Same, Total)                   \
  X(Or, 2, Bool, Same, Total)                    \
  X(Xor, 2, Bool, Same, Total)                   \
  X(BitwiseAnd, 2, Integer, Same, Total)         \
  X(BitwiseOr, 2, Integer, Same, Total)          \
  X(BitwiseXor, 2, Integer, Same, Total)         \
  X(ShiftLeft, 2, Integer, Same, Total)          \
  X(ShiftRight, 2, Integer, Same, Total)         \
  X(Clip, 3, Number, Same, Total)                \
  X(Where, 3, Any, Same, Total)

#include <cstdint>
#include <string_view>

#include "type/element_type.h"

namespace treadle::kernels {

enum class ElementwiseOp : uint8_t {
#define X(enumerator, ...) k##enumerator,
  TREADLE_ELEMENTWISE_OPS(X)
#undef X
};
inline constexpr int kElementwiseOpCount = 0
#define X(...) +1
    TREADLE_ELEMENTWISE_OPS(X)
#undef X
    ;

enum class OpDomain : uint8_t { kFloat, kNumber, kInteger, kBool, kAny };

struct ElementwiseOpInfo {
  std::string_view name;
  uint8_t inputs;
  OpDomain domain;
  bool bool_result;
  bool can_fail;  // for integers
};

const ElementwiseOpInfo& info(ElementwiseOp op);
bool has_rows(ElementwiseOp op, ComputeType type);

// Each operation reads the fields named above; f32 rows round them to float.
struct ElementwiseParams {
  double alpha = 0;
  double beta = 0;
};

}  // namespace treadle::kernels

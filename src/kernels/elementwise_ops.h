#pragma once
// The elementwise operations, in one table.
//
// X(enumerator, inputs, domain, result, effect, price)
//   domain: the compute types that have rows: Float (f32 f64), Number (all but bool),
//           Integer (i32 i64 u32 u64), Bool, Any
//   result: Same as the compute type, or Bool
//   effect: Total, or CanFail (integer division by zero)
//   price: Bits (a selection or a comparison), Arithmetic (a few additions and multiplications), Division,
//          Remainder (divisions that are corrected), Function (a polynomial or a call)
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
#define TREADLE_ELEMENTWISE_OPS(X)                           \
  X(Abs, 1, Number, Same, Total, Bits)                       \
  X(Neg, 1, Number, Same, Total, Bits)                       \
  X(Sign, 1, Number, Same, Total, Bits)                      \
  X(Ceil, 1, Float, Same, Total, Arithmetic)                 \
  X(Floor, 1, Float, Same, Total, Arithmetic)                \
  X(Round, 1, Float, Same, Total, Arithmetic)                \
  X(Sqrt, 1, Float, Same, Total, Division)                   \
  X(Reciprocal, 1, Float, Same, Total, Division)             \
  X(Exp, 1, Float, Same, Total, Function)                    \
  X(Log, 1, Float, Same, Total, Function)                    \
  X(Sin, 1, Float, Same, Total, Function)                    \
  X(Cos, 1, Float, Same, Total, Function)                    \
  X(Tan, 1, Float, Same, Total, Function)                    \
  X(Asin, 1, Float, Same, Total, Function)                   \
  X(Acos, 1, Float, Same, Total, Function)                   \
  X(Atan, 1, Float, Same, Total, Function)                   \
  X(Sinh, 1, Float, Same, Total, Function)                   \
  X(Cosh, 1, Float, Same, Total, Function)                   \
  X(Tanh, 1, Float, Same, Total, Function)                   \
  X(Asinh, 1, Float, Same, Total, Function)                  \
  X(Acosh, 1, Float, Same, Total, Function)                  \
  X(Atanh, 1, Float, Same, Total, Function)                  \
  X(Erf, 1, Float, Same, Total, Function)                    \
  X(Sigmoid, 1, Float, Same, Total, Function)                \
  X(Relu, 1, Number, Same, Total, Arithmetic)                \
  X(LeakyRelu, 1, Float, Same, Total, Arithmetic)            \
  X(Elu, 1, Float, Same, Total, Function)                    \
  X(Selu, 1, Float, Same, Total, Function)                   \
  X(Celu, 1, Float, Same, Total, Function)                   \
  X(Softplus, 1, Float, Same, Total, Function)               \
  X(Softsign, 1, Float, Same, Total, Division)               \
  X(HardSigmoid, 1, Float, Same, Total, Arithmetic)          \
  X(HardSwish, 1, Float, Same, Total, Arithmetic)            \
  X(ThresholdedRelu, 1, Float, Same, Total, Arithmetic)      \
  X(ThresholdedReluEqual, 1, Float, Same, Total, Arithmetic) \
  X(Shrink, 1, Number, Same, Total, Arithmetic)              \
  X(Mish, 1, Float, Same, Total, Function)                   \
  X(GeluErf, 1, Float, Same, Total, Function)                \
  X(GeluTanh, 1, Float, Same, Total, Function)               \
  X(Swish, 1, Float, Same, Total, Function)                  \
  X(Affine, 1, Float, Same, Total, Arithmetic)               \
  X(ScaledTanh, 1, Float, Same, Total, Function)             \
  X(IsNaN, 1, Float, Bool, Total, Bits)                      \
  X(IsInf, 1, Float, Bool, Total, Bits)                      \
  X(Not, 1, Bool, Same, Total, Bits)                         \
  X(BitwiseNot, 1, Integer, Same, Total, Bits)               \
  X(Add, 2, Number, Same, Total, Arithmetic)                 \
  X(Sub, 2, Number, Same, Total, Arithmetic)                 \
  X(Mul, 2, Number, Same, Total, Arithmetic)                 \
  X(Div, 2, Number, Same, CanFail, Division)                 \
  X(Mod, 2, Number, Same, CanFail, Remainder)                \
  X(Fmod, 2, Number, Same, CanFail, Remainder)               \
  X(Pow, 2, Number, Same, Total, Function)                   \
  X(Min, 2, Number, Same, Total, Arithmetic)                 \
  X(Max, 2, Number, Same, Total, Arithmetic)                 \
  X(PRelu, 2, Number, Same, Total, Arithmetic)               \
  X(Equal, 2, Any, Bool, Total, Bits)                        \
  X(Less, 2, Number, Bool, Total, Bits)                      \
  X(Greater, 2, Number, Bool, Total, Bits)                   \
  X(LessOrEqual, 2, Number, Bool, Total, Bits)               \
  X(GreaterOrEqual, 2, Number, Bool, Total, Bits)            \
  X(And, 2, Bool, Same, Total, Bits)                         \
  X(Or, 2, Bool, Same, Total, Bits)                          \
  X(Xor, 2, Bool, Same, Total, Bits)                         \
  X(BitwiseAnd, 2, Integer, Same, Total, Bits)               \
  X(BitwiseOr, 2, Integer, Same, Total, Bits)                \
  X(BitwiseXor, 2, Integer, Same, Total, Bits)               \
  X(ShiftLeft, 2, Integer, Same, Total, Bits)                \
  X(ShiftRight, 2, Integer, Same, Total, Bits)               \
  X(Clip, 3, Number, Same, Total, Arithmetic)                \
  X(Where, 3, Any, Same, Total, Bits)

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

// What an element takes, in the order of time.
enum class Price : uint8_t { kBits, kArithmetic, kDivision, kRemainder, kFunction };

struct ElementwiseOpInfo {
  std::string_view name;
  uint8_t inputs;
  OpDomain domain;
  bool bool_result;
  bool can_fail;  // for integers
  Price price;
};

const ElementwiseOpInfo& info(ElementwiseOp op);
bool has_rows(ElementwiseOp op, ComputeType type);

// Each operation reads the fields named above; f32 rows round them to float.
struct ElementwiseParams {
  double alpha = 0;
  double beta = 0;
};

}  // namespace treadle::kernels

#pragma once
// The elementwise operations, in one table.
//
// X(enumerator, inputs, domain, result, effect, price, grouping)
//   domain: the compute types that have rows: Float (f32 f64), Number (all but bool),
//           Integer (i32 i64 u32 u64), Bool, Any
//   result: Same as the compute type, or Bool
//   effect: Total, or CanFail (integer division by zero)
//   price: Bits (a selection or a comparison), Arithmetic (a few additions and multiplications), Division,
//          Remainder (a corrected division), Function (a polynomial or a call)
//   grouping: which chains of the operation give the same bits however they are grouped:
//          Fixed: none
//          Integers: chains of integers and of bools, with operands in any order
//          Ordered: as Integers, and chains of floats if the operands keep their order (of several NaNs, or of zeros of
//          both signs, one operand is the result)
// Operations on narrow integers run in 32 bits, and their results wrap when stored, as narrow arithmetic would.
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
#define TREADLE_ELEMENTWISE_OPS(X)                                  \
  X(Abs, 1, Number, Same, Total, Bits, Fixed)                       \
  X(Neg, 1, Number, Same, Total, Bits, Fixed)                       \
  X(Sign, 1, Number, Same, Total, Bits, Fixed)                      \
  X(Ceil, 1, Float, Same, Total, Arithmetic, Fixed)                 \
  X(Floor, 1, Float, Same, Total, Arithmetic, Fixed)                \
  X(Round, 1, Float, Same, Total, Arithmetic, Fixed)                \
  X(Sqrt, 1, Float, Same, Total, Division, Fixed)                   \
  X(Reciprocal, 1, Float, Same, Total, Division, Fixed)             \
  X(Exp, 1, Float, Same, Total, Function, Fixed)                    \
  X(Log, 1, Float, Same, Total, Function, Fixed)                    \
  X(Sin, 1, Float, Same, Total, Function, Fixed)                    \
  X(Cos, 1, Float, Same, Total, Function, Fixed)                    \
  X(Tan, 1, Float, Same, Total, Function, Fixed)                    \
  X(Asin, 1, Float, Same, Total, Function, Fixed)                   \
  X(Acos, 1, Float, Same, Total, Function, Fixed)                   \
  X(Atan, 1, Float, Same, Total, Function, Fixed)                   \
  X(Sinh, 1, Float, Same, Total, Function, Fixed)                   \
  X(Cosh, 1, Float, Same, Total, Function, Fixed)                   \
  X(Tanh, 1, Float, Same, Total, Function, Fixed)                   \
  X(Asinh, 1, Float, Same, Total, Function, Fixed)                  \
  X(Acosh, 1, Float, Same, Total, Function, Fixed)                  \
  X(Atanh, 1, Float, Same, Total, Function, Fixed)                  \
  X(Erf, 1, Float, Same, Total, Function, Fixed)                    \
  X(Sigmoid, 1, Float, Same, Total, Function, Fixed)                \
  X(Relu, 1, Number, Same, Total, Arithmetic, Fixed)                \
  X(LeakyRelu, 1, Float, Same, Total, Arithmetic, Fixed)            \
  X(Elu, 1, Float, Same, Total, Function, Fixed)                    \
  X(Selu, 1, Float, Same, Total, Function, Fixed)                   \
  X(Celu, 1, Float, Same, Total, Function, Fixed)                   \
  X(Softplus, 1, Float, Same, Total, Function, Fixed)               \
  X(Softsign, 1, Float, Same, Total, Division, Fixed)               \
  X(HardSigmoid, 1, Float, Same, Total, Arithmetic, Fixed)          \
  X(HardSwish, 1, Float, Same, Total, Arithmetic, Fixed)            \
  X(ThresholdedRelu, 1, Float, Same, Total, Arithmetic, Fixed)      \
  X(ThresholdedReluEqual, 1, Float, Same, Total, Arithmetic, Fixed) \
  X(Shrink, 1, Number, Same, Total, Arithmetic, Fixed)              \
  X(Mish, 1, Float, Same, Total, Function, Fixed)                   \
  X(GeluErf, 1, Float, Same, Total, Function, Fixed)                \
  X(GeluTanh, 1, Float, Same, Total, Function, Fixed)               \
  X(Swish, 1, Float, Same, Total, Function, Fixed)                  \
  X(Affine, 1, Float, Same, Total, Arithmetic, Fixed)               \
  X(ScaledTanh, 1, Float, Same, Total, Function, Fixed)             \
  X(IsNaN, 1, Float, Bool, Total, Bits, Fixed)                      \
  X(IsInf, 1, Float, Bool, Total, Bits, Fixed)                      \
  X(Not, 1, Bool, Same, Total, Bits, Fixed)                         \
  X(BitwiseNot, 1, Integer, Same, Total, Bits, Fixed)               \
  X(Add, 2, Number, Same, Total, Arithmetic, Integers)              \
  X(Sub, 2, Number, Same, Total, Arithmetic, Fixed)                 \
  X(Mul, 2, Number, Same, Total, Arithmetic, Integers)              \
  X(Div, 2, Number, Same, CanFail, Division, Fixed)                 \
  X(Mod, 2, Number, Same, CanFail, Remainder, Fixed)                \
  X(Fmod, 2, Number, Same, CanFail, Remainder, Fixed)               \
  X(Pow, 2, Number, Same, Total, Function, Fixed)                   \
  X(Min, 2, Number, Same, Total, Arithmetic, Ordered)               \
  X(Max, 2, Number, Same, Total, Arithmetic, Ordered)               \
  X(PRelu, 2, Number, Same, Total, Arithmetic, Fixed)               \
  X(Equal, 2, Any, Bool, Total, Bits, Fixed)                        \
  X(Less, 2, Number, Bool, Total, Bits, Fixed)                      \
  X(Greater, 2, Number, Bool, Total, Bits, Fixed)                   \
  X(LessOrEqual, 2, Number, Bool, Total, Bits, Fixed)               \
  X(GreaterOrEqual, 2, Number, Bool, Total, Bits, Fixed)            \
  X(And, 2, Bool, Same, Total, Bits, Integers)                      \
  X(Or, 2, Bool, Same, Total, Bits, Integers)                       \
  X(Xor, 2, Bool, Same, Total, Bits, Integers)                      \
  X(BitwiseAnd, 2, Integer, Same, Total, Bits, Integers)            \
  X(BitwiseOr, 2, Integer, Same, Total, Bits, Integers)             \
  X(BitwiseXor, 2, Integer, Same, Total, Bits, Integers)            \
  X(ShiftLeft, 2, Integer, Same, Total, Bits, Fixed)                \
  X(ShiftRight, 2, Integer, Same, Total, Bits, Fixed)               \
  X(Clip, 3, Number, Same, Total, Arithmetic, Fixed)                \
  X(Where, 3, Any, Same, Total, Bits, Fixed)

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

// The cost of an operation on an element, in ascending order.
enum class Price : uint8_t { kBits, kArithmetic, kDivision, kRemainder, kFunction };

enum class Grouping : uint8_t { kFixed, kIntegers, kOrdered };

struct ElementwiseOpInfo {
  std::string_view name;
  uint8_t inputs;
  OpDomain domain;
  bool bool_result;
  bool can_fail;  // for integers
  Price price;
  Grouping grouping;
};

const ElementwiseOpInfo& info(ElementwiseOp op);
// Whether op(op(a, b), c) and op(a, op(b, c)) give the same bits for all elements of the type.
bool is_associative(ElementwiseOp op, ElementType type);
// Whether op(a, b) and op(b, a) give the same bits. Only for an associative operation.
bool is_commutative(ElementwiseOp op, ElementType type);
bool has_rows(ElementwiseOp op, ComputeType type);

// Each operation reads the fields named above; f32 rows round them to float.
struct ElementwiseParams {
  double alpha = 0;
  double beta = 0;
};

}  // namespace treadle::kernels

#include "c/sums.h"

#include <functional>

#include "c/types.h"
#include "kernels/gemm.h"
#include "kernels/sum_order.h"
#include "kernels/written_operations.h"

namespace treadle::c {

namespace {

using kernels::ElementwiseOp;
using kernels::ReduceOp;

std::string replaced(std::string text, char mark, const std::string& by) {
  for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + by.size())) {
    text.replace(at, 1, by);
  }
  return text;
}

constexpr char kLane = '@';  // stands for the number of a lane in expressions of vectors

// The argument of kernels/sum_order.h: writes the steps as statements.
class Row {
 public:
  // An element, or a vector as an expression of its lane. A variable is assigned to by a statement.
  struct Value {
    const Row* row;
    std::string expression;
    size_t lanes = 1;
    bool is_variable = false;

    Value(const Row* r, std::string e, size_t n, bool variable)
        : row(r), expression(std::move(e)), lanes(n), is_variable(variable) {}
    Value(const Value&) = default;
    ~Value() = default;
    Value& operator=(const Value& other) {
      if (this != &other) row->assign(*this, other);
      return *this;
    }
  };
  struct Position {
    const Row* row;
    std::string expression;
    bool is_variable = false;

    Position(const Row* r, std::string e, bool variable) : row(r), expression(std::move(e)), is_variable(variable) {}
    Position(const Position&) = default;
    ~Position() = default;
    Position& operator=(const Position& other) {
      if (this != &other) row->text_.line("{} = {};", expression, other.expression);
      return *this;
    }
  };
  using Element = Value;
  using ElementAt = std::function<std::string(const std::string& position)>;
  using Combine = std::function<std::string(const std::string& x, const std::string& y)>;

  Row(Text& text, ElementType type, int lanes, ElementAt at, Combine combine)
      : text_(text),
        type_(type),
        lanes_(static_cast<size_t>(lanes)),
        at_(std::move(at)),
        combine_(std::move(combine)) {}

  size_t lanes() const { return lanes_; }
  Position first() const { return {this, "0", false}; }
  Position after(const Position& i, size_t more) const {
    if (more == 0) return i;
    return {this, i.expression == "0" ? std::to_string(more) : fmt::format("{} + {}", i.expression, more), false};
  }
  static size_t has(size_t least) { return least; }
  struct Lacks {
    size_t least;
  };
  static Lacks lacks(size_t least) { return {least}; }
  Value element(const Position& i) const { return {this, at_(i.expression), 1, false}; }
  Value vector(const Position& i) const {
    return {this, at_(i.expression == "0" ? std::string(1, kLane) : fmt::format("{} + {}", i.expression, kLane)),
            lanes_, false};
  }
  Value combine(const Value& x, const Value& y) const {
    return {this, combine_(x.expression, y.expression), x.lanes, false};
  }
  template <class Fn>
  Value split(const Value& v, const Fn& fn) const {
    if (v.lanes == 1) return {this, replaced(v.expression, kLane, "0"), 1, false};
    const Value kept = v.is_variable ? v : variable(v.lanes, &v);
    const size_t half = v.lanes / 2;
    const std::string name = kept.expression.substr(0, kept.expression.find('['));
    const Value low(this, fmt::format("{}[{}]", name, kLane), half, false);
    const Value high(this, fmt::format("{}[{} + {}]", name, kLane, half), half, false);
    return fn(low, high);
  }
  Value new_vector() const { return variable(lanes_, nullptr); }
  Position new_position() const {
    text_.line("ptrdiff_t i = 0;");
    return {this, "i", true};
  }
  Value new_element(const std::string& name) const {
    text_.line("{} {} = 0;", stored(type_), name);
    return {this, name, 1, true};
  }
  template <class Yes, class No>
  void either(size_t least, const Yes& yes, const No& no) const {
    branch(fmt::format("n >= {}", least), yes, no);
  }
  template <class Yes, class No>
  void either(Lacks lacks, const Yes& yes, const No& no) const {
    branch(fmt::format("n < {}", lacks.least), yes, no);
  }
  template <class Fn>
  void each(Position& i, size_t step, const Fn& fn) const {
    text_.open("for (; n - {0} >= {1}; {0} += {1})", i.expression, step);
    fn(i);
    text_.close();
  }

 private:
  template <class Yes, class No>
  void branch(const std::string& condition, const Yes& yes, const No& no) const {
    text_.open("if ({})", condition);
    yes();
    text_.otherwise();
    no();
    text_.close();
  }
  Value variable(size_t lanes, const Value* contents) const {
    const std::string name = fmt::format("s{}", names_++);
    text_.line("{} {}[{}];", stored(type_), name, lanes);
    const Value made(this, fmt::format("{}[{}]", name, kLane), lanes, true);
    if (contents) assign(made, *contents);
    return made;
  }
  void assign(const Value& to, const Value& from) const {
    if (to.lanes == 1) {
      text_.line("{} = {};", replaced(to.expression, kLane, "0"), replaced(from.expression, kLane, "0"));
    } else {
      text_.line("for (int l = 0; l < {}; ++l) {} = {};", to.lanes, replaced(to.expression, kLane, "l"),
                 replaced(from.expression, kLane, "l"));
    }
  }

  Text& text_;
  ElementType type_;
  size_t lanes_;
  ElementAt at_;
  Combine combine_;
  mutable int names_ = 0;
};

// The expression of two combined elements of a compute type.
Row::Combine combiner(Functions& functions, ReduceOp op, ElementType type) {
  const ElementwiseOp how = kernels::combining(op);
  if (type == ElementType::kBool) {
    const char* sign = op == ReduceOp::kMin ? "&" : "|";
    return
        [sign](const std::string& x, const std::string& y) { return fmt::format("(uint8_t)({} {} {})", x, sign, y); };
  }
  if (is_float(type) && (how == ElementwiseOp::kAdd || how == ElementwiseOp::kMul)) {
    const char* sign = how == ElementwiseOp::kAdd ? "+" : "*";
    return [sign](const std::string& x, const std::string& y) { return fmt::format("({} {} {})", x, sign, y); };
  }
  const std::string function = functions.operation(how, type);
  return [function](const std::string& x, const std::string& y) { return fmt::format("{}({}, {})", function, x, y); };
}

std::string_view name_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::kMax:
      return "max";
    case ReduceOp::kMin:
      return "min";
    case ReduceOp::kProd:
      return "prod";
    case ReduceOp::kL1:
      return "sum_abs";
    case ReduceOp::kL2:
    case ReduceOp::kSumSquare:
      return "sum_squares";
    case ReduceOp::kLogSumExp:
      return "sum_exps";
    default:
      return "sum";
  }
}

// The end of a parameter list: the shift that exponentials take from their elements.
std::string shift_parameter(ReduceOp op, ElementType compute) {
  return op == ReduceOp::kLogSumExp ? fmt::format(", {} shift", stored(compute)) : "";
}

// The term of a stored element, in `type`.
Row::ElementAt term(Functions& functions, ReduceOp op, ElementType from, ElementType type, const std::string& stride) {
  const ElementType wide = wide_type(from);
  const std::string widen = functions.convert(from, wide), convert = functions.convert(wide, type);
  const std::string absolute = op == ReduceOp::kL1 ? functions.operation(ElementwiseOp::kAbs, type) : "";
  const std::string exp = op == ReduceOp::kLogSumExp ? functions.operation(ElementwiseOp::kExp, type) : "";
  const bool squares = op == ReduceOp::kL2 || op == ReduceOp::kSumSquare;
  std::string square;
  if (squares) {
    square = functions.get(fmt::format("square_{}", suffix(type)), [&](Text& text, const std::string& name) {
      text.open("static inline {0} {1}({0} x)", stored(type), name);
      if (is_signed_integer(type)) {
        text.line("return ({1})(({0})x * ({0})x);", type == ElementType::kInt32 ? "uint32_t" : "uint64_t",
                  stored(type));
      } else {
        text.line("return x * x;");
      }
      text.close();
    });
  }
  return [=](const std::string& position) {
    std::string x = stride.empty() ? fmt::format("x[{}]", position) : fmt::format("x[({}) * {}]", position, stride);
    for (const std::string* step : {&widen, &convert, &absolute, &square}) {
      if (!step->empty()) x = fmt::format("{}({})", *step, x);
    }
    if (!exp.empty()) x = fmt::format("{}({} - shift)", exp, x);
    return x;
  };
}

bool is_extreme(ReduceOp op) {
  return op == ReduceOp::kMax || op == ReduceOp::kMin;
}

// Combines the result `block` of a block in the compute type with `sum`.
void add_block(Text& text, Functions& functions, ReduceOp op, ElementType compute, const std::string& block) {
  const ElementType wide = wide_sum(compute);
  const auto combine = combiner(functions, op, wide);
  const std::string widen = functions.convert(compute, wide);
  text.line("sum = {};", combine("sum", widen.empty() ? block : fmt::format("{}({})", widen, block)));
}

// Floats, but their products; extremes of integers.
bool is_in_blocks(ReduceOp op, ElementType compute) {
  return is_float(compute) ? op != ReduceOp::kProd : is_extreme(op);
}

}  // namespace

ElementType summed_type(ReduceOp op, ElementType type) {
  const ElementType compute = wide_type(type);
  return op == ReduceOp::kLogSumExp && !is_float(compute) ? ElementType::kDouble : compute;
}

ElementType wide_sum(ElementType type) {
  const ElementType compute = wide_type(type);
  if (compute == ElementType::kBool) return compute;
  if (is_float(compute)) return ElementType::kDouble;
  return is_signed_integer(compute) ? ElementType::kInt64 : ElementType::kUint64;
}

std::string neutral(ReduceOp op, ElementType type) {
  const ElementType wide = wide_sum(type);
  if (op == ReduceOp::kProd) return "1";
  if (!is_extreme(op)) return "0";
  const bool largest = op == ReduceOp::kMin;
  if (wide == ElementType::kBool) return largest ? "1" : "0";
  if (is_float(wide)) return largest ? "(1.0 / 0.0)" : "(-1.0 / 0.0)";
  const auto bits = static_cast<int>(byte_width(type)) * 8;
  if (is_signed_integer(wide)) {
    const int64_t high = bits == 64 ? INT64_MAX : (int64_t{1} << (bits - 1)) - 1;
    return literal(largest ? high : -high - 1);
  }
  return largest ? literal(bits == 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1) : "0";
}

std::string block_function(Functions& functions, ElementType type) {
  const auto combine = combiner(functions, ReduceOp::kSum, type);
  const auto at = term(functions, ReduceOp::kSum, type, type, "");
  return functions.get(fmt::format("sum_block_{}", suffix(type)), [&](Text& text, const std::string& name) {
    const std::string_view t = stored(type);
    text.open("static {} {}(const {} *x, ptrdiff_t n)", t, name, t);
    const Row row(text, type, functions.lanes(type), at, combine);
    Row::Value sum = row.new_element("sum");
    kernels::sum_order::combine_block(row, sum);
    text.line("return sum;");
    text.close();
  });
}

std::string row_function(Functions& functions, ReduceOp op, ElementType type) {
  const ElementType compute = summed_type(op, type), wide = wide_sum(compute);
  const bool blocks = is_in_blocks(op, compute);
  const auto combine = combiner(functions, op, blocks ? compute : wide);
  const auto at = term(functions, op, type, blocks ? compute : wide, "");
  const std::string_view t = stored(type), c = stored(compute), w = stored(wide);
  std::string block;
  if (blocks) {
    block =
        functions.get(fmt::format("{}_block_{}", name_of(op), suffix(type)), [&](Text& text, const std::string& name) {
          text.open("static {} {}(const {} *x, ptrdiff_t n{})", c, name, t, shift_parameter(op, compute));
          const Row row(text, compute, functions.lanes(compute), at, combine);
          Row::Value sum = row.new_element("sum");
          kernels::sum_order::combine_block(row, sum);
          text.line("return sum;");
          text.close();
        });
  }
  return functions.get(fmt::format("{}_row_{}", name_of(op), suffix(type)), [&](Text& text, const std::string& name) {
    text.open("static {} {}({} sum, const {} *x, ptrdiff_t n{})", w, name, w, t, shift_parameter(op, compute));
    if (!blocks && !is_float(compute)) {
      text.line("for (ptrdiff_t i = 0; i < n; ++i) sum = {};", combine("sum", at("i")));
    } else {
      text.open("for (ptrdiff_t start = 0; start < n; start += {})", kernels::kReduceBlock);
      text.line("const ptrdiff_t left = n - start, size = left < {0} ? left : {0};", kernels::kReduceBlock);
      if (blocks) {
        add_block(text, functions, op, compute,
                  fmt::format("{}(x + start, size{})", block, op == ReduceOp::kLogSumExp ? ", shift" : ""));
      } else {
        // Products of floats: long blocks in lanes.
        constexpr size_t kLanes = kernels::sum_order::kProductLanes;
        text.open("if (size < {})", kernels::sum_order::kLeastInLanes);
        text.line("for (ptrdiff_t i = start; i < start + size; ++i) sum *= {};", at("i"));
        text.otherwise();
        text.line("double lanes[{}];", kLanes);
        text.line("for (int l = 0; l < {}; ++l) lanes[l] = 1;", kLanes);
        text.line("for (ptrdiff_t i = 0; i < size; ++i) lanes[i % {}] *= {};", kLanes, at("start + i"));
        text.open("for (int width = {}; width > 0; width /= 2)", kLanes / 2);
        text.line("for (int l = 0; l < width; ++l) lanes[l] *= lanes[l + width];");
        text.close();
        text.line("sum *= lanes[0];");
        text.close();
      }
      text.close();
    }
    text.line("return sum;");
    text.close();
  });
}

std::string column_function(Functions& functions, ReduceOp op, ElementType type) {
  const ElementType compute = summed_type(op, type), wide = wide_sum(compute);
  const bool blocks = is_in_blocks(op, compute);
  const ElementType inner = blocks ? compute : wide;
  const auto combine = combiner(functions, op, inner);
  const auto at = term(functions, op, type, inner, "stride");
  const size_t size = type == compute ? kernels::kReduceBlock : kernels::kConvertedRows;
  const std::string_view t = stored(type), w = stored(wide);
  return functions.get(
      fmt::format("{}_column_{}", name_of(op), suffix(type)), [&](Text& text, const std::string& name) {
        text.open("static {} {}({} sum, const {} *x, ptrdiff_t n, ptrdiff_t stride{})", w, name, w, t,
                  shift_parameter(op, compute));
        if (blocks) {
          text.open("for (ptrdiff_t start = 0; start < n; start += {})", size);
          text.line("const ptrdiff_t end = n - start < {0} ? n : start + {0};", size);
          text.line("{} block = {};", stored(compute), at("start"));
          text.line("for (ptrdiff_t i = start + 1; i < end; ++i) block = {};", combine("block", at("i")));
          add_block(text, functions, op, compute, "block");
          text.close();
        } else {
          text.line("for (ptrdiff_t i = 0; i < n; ++i) sum = {};", combine("sum", at("i")));
        }
        text.line("return sum;");
        text.close();
      });
}

std::string columns_function(Functions& functions, ReduceOp op, ElementType type) {
  const ElementType compute = summed_type(op, type), wide = wide_sum(compute);
  const bool blocks = is_in_blocks(op, compute);
  const ElementType inner = blocks ? compute : wide;
  const auto combine = combiner(functions, op, inner), combine_wide = combiner(functions, op, wide);
  const auto at = term(functions, op, type, inner, "stride");
  const size_t size = type == compute ? kernels::kReduceBlock : kernels::kConvertedRows;
  const std::string widen = functions.convert(compute, wide), independent = functions.upper_prefix() + "_INDEPENDENT";
  return functions.get(
      fmt::format("{}_columns_{}", name_of(op), suffix(type)), [&](Text& text, const std::string& name) {
        text.line("/* The same of m neighbouring columns, a row at a time. */");
        text.open("static void {}({} *sums, const {} *first, ptrdiff_t n, ptrdiff_t stride, ptrdiff_t m{})", name,
                  stored(wide), stored(type), shift_parameter(op, compute));
        const auto each = [&](const auto& statement, bool reads) {
          text.line("{}", independent);
          text.open("for (ptrdiff_t j = 0; j < m; ++j)");
          if (reads) text.line("const {} *const x = first + j;", stored(type));
          statement();
          text.close();
        };
        if (blocks) {
          text.line("{} block[{}];", stored(compute), kColumns);
          text.open("for (ptrdiff_t start = 0; start < n; start += {})", size);
          text.line("const ptrdiff_t end = n - start < {0} ? n : start + {0};", size);
          each([&] { text.line("block[j] = {};", at("start")); }, true);
          text.open("for (ptrdiff_t i = start + 1; i < end; ++i)");
          each([&] { text.line("block[j] = {};", combine("block[j]", at("i"))); }, true);
          text.close();
          const std::string block = widen.empty() ? "block[j]" : fmt::format("{}(block[j])", widen);
          each([&] { text.line("sums[j] = {};", combine_wide("sums[j]", block)); }, false);
          text.close();
        } else {
          text.open("for (ptrdiff_t i = 0; i < n; ++i)");
          each([&] { text.line("sums[j] = {};", combine("sums[j]", at("i"))); }, true);
          text.close();
        }
        text.close();
      });
}

std::string dot_function(Functions& functions, ElementType type) {
  const std::string_view t = stored(type);
  if (!is_float(type)) {
    const std::string_view u = byte_width(type) == 8 ? "uint64_t" : "uint32_t";
    return functions.get(fmt::format("dot_{}", suffix(type)), [&](Text& text, const std::string& name) {
      text.open("static {0} {1}(const {0} *a, ptrdiff_t a_step, const {0} *b, ptrdiff_t b_step, ptrdiff_t n)", t, name);
      text.line("{} sum = 0;", u);
      text.line("for (ptrdiff_t i = 0; i < n; ++i) sum += ({0})a[i * a_step] * ({0})b[i * b_step];", u);
      text.line("return ({})sum;", t);
      text.close();
    });
  }
  const auto combine = combiner(functions, ReduceOp::kSum, type);
  const std::string fused = functions.fuses() ? functions.multiply_add(type) : "";
  const int lanes = functions.lanes(type);
  const Row::ElementAt product = [](const std::string& i) {
    return fmt::format("a[({0}) * a_step] * b[({0}) * b_step]", i);
  };
  const std::string brief = functions.get(fmt::format("short_dot_{}", suffix(type)), [&](Text& text,
                                                                                         const std::string& name) {
    text.open("static {0} {1}(const {0} *a, ptrdiff_t a_step, const {0} *b, ptrdiff_t b_step, ptrdiff_t n)", t, name);
    const Row row(text, type, lanes, product, combine);
    Row::Value sum = row.new_element("sum");
    kernels::sum_order::combine_block(row, sum);
    text.line("return sum + 0; /* never -0 */");
    text.close();
  });
  return functions.get(fmt::format("dot_{}", suffix(type)), [&](Text& text, const std::string& name) {
    text.open("static {0} {1}(const {0} *a, ptrdiff_t a_step, const {0} *b, ptrdiff_t b_step, ptrdiff_t n)", t, name);
    text.line("{} s[{}], *lane;", t, 4 * lanes);
    text.line("if (n > 0 && n <= {}) return {}(a, a_step, b, b_step, n);", kernels::kGemmShortDot, brief);
    text.line("for (int l = 0; l < {}; ++l) s[l] = 0;", 4 * lanes);
    text.open("for (ptrdiff_t i = 0; i < n; ++i)");
    text.line("const {} x = a[i * a_step], y = b[i * b_step];", t);
    text.line("lane = &s[i % {}];", 4 * lanes);
    if (fused.empty()) {
      text.line("const {} xy = x * y;", t);
      text.line("*lane = *lane + xy;");
    } else {
      text.line("*lane = {}(x, y, *lane);", fused);
    }
    text.close();
    text.line("for (int l = 0; l < {0}; ++l) s[l] = (s[l] + s[l + {0}]) + (s[l + {1}] + s[l + {2}]);", lanes, 2 * lanes,
              3 * lanes);
    text.open("for (int width = {}; width > 0; width /= 2)", lanes / 2);
    text.line("for (int l = 0; l < width; ++l) s[l] += s[l + width];");
    text.close();
    text.line("return s[0];");
    text.close();
  });
}

std::string columns_function(Functions& functions, ElementType from, ElementType to) {
  return functions.get(fmt::format("columns_{}_to_{}", suffix(from), suffix(to)), [&](Text& text,
                                                                                      const std::string& name) {
    text.open(
        "static void {}(const {} *x, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t n, {} *restrict y, ptrdiff_t y_step)",
        name, stored(from), stored(to));
    text.open("for (ptrdiff_t k = 0; k < n; ++k)");
    text.line("for (ptrdiff_t i = 0; i < rows; ++i) y[k * y_step + i] = {};",
              functions.converted(from, to, "x[i * step + k]"));
    text.close();
    text.close();
  });
}

}  // namespace treadle::c

// Elementwise operations as functions in C, from their definitions (kernels/elementwise_functions.h).

#include <optional>

#include "c/definitions.h"
#include "c/values.h"
#include "kernels/written_operations.h"

namespace treadle::c {

namespace {

using kernels::ElementwiseOp;

thread_local Scope* current_scope = nullptr;

bool mentions(const std::string& text, std::string_view word) {
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const bool begins = at == 0 || !is_word(text[at - 1]);
    const size_t end = at + word.size();
    if (begins && (end == text.size() || !is_word(text[end]))) return true;
  }
  return false;
}

// Leaves out statements whose results nothing reads.
std::string without_unread(const std::string& body, const std::string& result) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < body.size();) {
    const size_t end = body.find('\n', at);
    lines.push_back(body.substr(at, end - at + 1));
    at = end + 1;
  }
  std::string read = result, kept;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const size_t equals = line->find(" = ");
    const size_t name = line->rfind(' ', equals - 1) + 1;
    if (!mentions(read, line->substr(name, equals - name))) continue;
    read += line->substr(equals);
    kept.insert(0, *line);
  }
  return kept;
}

std::string lower_case(std::string_view name) {
  std::string lower;
  for (const char c : name) {
    if (std::isupper(static_cast<unsigned char>(c)) && !lower.empty()) lower += '_';
    lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return lower;
}

std::string parameters(int inputs, std::string_view type) {
  std::string list;
  for (int i = 0; i < inputs; ++i) {
    list += fmt::format("{}{} {}", i > 0 ? ", " : "", type, static_cast<char>('a' + i));
  }
  return list;
}

}  // namespace

Scope::Scope(Text& t, Functions& f, int& n) : text(t), functions(f), names(n), outer(current_scope) {
  current_scope = this;
}
Scope::~Scope() {
  current_scope = outer;
}
Scope& Scope::current() {
  return *current_scope;
}
const char* Scope::name(std::string_view type, std::string_view expression) {
  const char* const made = keep(fmt::format("t{}", names++));
  text.line("const {} {} = {};", type, made, expression);
  return made;
}

std::string write_function(Functions& functions, std::string_view name, ElementType type,
                           std::initializer_list<const char*> arguments, const std::function<std::string()>& evaluate) {
  Text body;
  body.set_depth(1);
  int names = 0;
  std::string result;
  {
    const Scope scope(body, functions, names);
    result = evaluate();
  }
  return functions.get(fmt::format("{}_{}", name, suffix(type)), [&](Text& text, const std::string& full) {
    std::string list;
    for (const char* argument : arguments) {
      list += fmt::format("{}{} {}", list.empty() ? "" : ", ", stored(type), argument);
    }
    text.open("static inline {} {}({})", stored(type), full, list);
    text.append(without_unread(body.str(), result));
    text.line("return {};", result);
    text.close();
  });
}

namespace {

// `evaluates`: writes the result to the Scope of the thread.
Definition definition_of(ElementwiseOp op, ElementType type, bool evaluates) {
  Definition found;
  kernels::with_written_type(type, [&](auto zero) { found = definition<decltype(zero)>(op, evaluates); });
  return found;
}

}  // namespace

bool Functions::has_parameters(ElementwiseOp op, ElementType type) {
  return definition_of(op, type, false).has_parameters;
}

std::string Functions::operation(ElementwiseOp op, ElementType type) {
  if (is_float(type)) {
    const std::string made = by_definition(op, type);
    return made.empty() ? by_library(op, type) : made;
  }
  if (type == ElementType::kBool) return by_definition(op, type);
  const std::string checked = of_integers(op, type);
  return checked.empty() ? by_definition(op, type) : checked;
}

std::string Functions::by_definition(ElementwiseOp op, ElementType type) {
  if (op == ElementwiseOp::kSin || op == ElementwiseOp::kCos || op == ElementwiseOp::kTan) return {};
  Text body;
  body.set_depth(1);
  int names = 0;
  Definition made;
  {
    const Scope scope(body, *this, names);
    made = definition_of(op, type, true);
  }
  const std::string& result = made.result;
  if (result.empty()) return {};
  const kernels::ElementwiseOpInfo& info = kernels::info(op);
  const std::string_view t = stored(type);
  return get(fmt::format("{}_{}", lower_case(info.name), suffix(type)), [&](Text& text, const std::string& name) {
    std::string list = parameters(info.inputs, t);
    if (made.has_parameters) list += fmt::format(", {} alpha, {} beta", t, t);
    text.open("static inline {} {}({})", info.bool_result ? "uint8_t" : t, name, list);
    const std::string kept = without_unread(body.str(), result);
    text.append(kept);
    for (const char* parameter : {"alpha", "beta"}) {
      if (made.has_parameters && !mentions(kept + result, parameter)) text.line("(void){};", parameter);
    }
    text.line("return {};", result);
    text.close();
  });
}

namespace {

std::string_view library_name(ElementwiseOp op) {
  switch (op) {
    case ElementwiseOp::kFmod:
    case ElementwiseOp::kMod:
      return "fmod";
    case ElementwiseOp::kGeluErf:
      return {};  // of doubles
    default:
      return kernels::info(op).name;
  }
}

}  // namespace

// Operations of floats that call the C library, as their definitions do.
std::string Functions::by_library(ElementwiseOp op, ElementType type) {
  if (!libm_ || library_name(op).empty()) return {};
  calls_libm_ = true;
  const std::string_view t = stored(type), end = type == ElementType::kFloat ? "f" : "";
  const std::string called = lower_case(library_name(op)) + std::string(end);
  std::string near;  // of moderate arguments, which have a formula
  Text body;
  body.set_depth(1);
  if (type == ElementType::kFloat &&
      (op == ElementwiseOp::kSin || op == ElementwiseOp::kCos || op == ElementwiseOp::kTan)) {
    using V = Value<float>;
    int names = 0;
    Scope scope(body, *this, names);
    using C = kernels::math::Coefficients<float>;
    const V a = V::of("a");
    const bool is_tan = op == ElementwiseOp::kTan;
    V y = is_tan ? kernels::math::tan_float(a) : kernels::math::sin_float(a, op == ElementwiseOp::kCos ? 1 : 0);
    if (op != ElementwiseOp::kCos) y = select(a == V(0.0f), a, y);
    near = select(kernels::math::absolute(a) <= V(is_tan ? C::kTanLimit : C::kTurnLimit), y,
                  V::of(scope.keep(fmt::format("{}(a)", called))))
               .v;
  }
  return get(fmt::format("{}_{}", lower_case(kernels::info(op).name), suffix(type)), [&](Text& text,
                                                                                         const std::string& name) {
    text.open("static inline {} {}({})", t, name, parameters(kernels::info(op).inputs, t));
    if (!near.empty()) {
      text.append(body.str());
      text.line("return {};", near);
    } else if (op == ElementwiseOp::kPow) {
      text.line("if (b == 2) return a * a;");
      text.open("if (b == 3)");
      text.line("const {} square = a * a;", t);
      text.line("return square * a;");
      text.close();
      text.line("if (b == -1) return 1 / a;");
      text.line("if (b == {} && a >= 0) return {}(a + 0);", type == ElementType::kFloat ? "0.5f" : "0.5", sqrt(type));
      text.line("if (b == {} && a >= 0) return 1 / {}(a + 0);", type == ElementType::kFloat ? "-0.5f" : "-0.5",
                sqrt(type));
      text.line("return {}(a, b);", called);
    } else if (op == ElementwiseOp::kMod) {
      text.line("const {} rest = {}(a, b);", t, called);
      text.line("if (rest == 0) return copysign{}(rest, b);", end);
      text.line("return (rest < 0) == (b < 0) ? rest : rest + b;");
    } else {
      text.line("return {}({});", called, kernels::info(op).inputs == 2 ? "a, b" : "a");
    }
    text.close();
  });
}

// Operations that check their operands: `integer` of their definitions.
std::string Functions::of_integers(ElementwiseOp op, ElementType type) {
  const std::string_view t = stored(type);
  const bool has_sign = is_signed_integer(type);
  const bool is_wide = byte_width(type) == 8;
  const std::string u = is_wide ? "uint64_t" : "uint32_t";
  const std::string name = fmt::format("{}_{}", lower_case(kernels::info(op).name), suffix(type));
  const auto checked = [&](auto&& rest) {
    return get(name, [&](Text& text, const std::string& full) {
      text.open("static inline {} {}({} a, {} b, int *error)", t, full, t, t);
      text.open("if (b == 0)");
      text.line("*error = {}_DIVISION_BY_ZERO;", upper_prefix());
      text.line("return 0;");
      text.close();
      rest(text);
      text.close();
    });
  };
  switch (op) {
    case ElementwiseOp::kDiv:
      return checked([&](Text& text) {
        if (has_sign) text.line("if (b == -1) return ({})(({})0 - ({})a);", t, u, u);
        text.line("return a / b;");
      });
    case ElementwiseOp::kFmod:
      return checked([&](Text& text) {
        if (has_sign) text.line("if (b == -1) return 0;");
        text.line("return a % b;");
      });
    case ElementwiseOp::kMod:
      return checked([&](Text& text) {
        if (!has_sign) {
          text.line("return a % b;");
          return;
        }
        text.line("const {} rest = b == -1 ? 0 : a % b;", t);
        text.line("return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;");
      });
    case ElementwiseOp::kPow:
      return get(name, [&](Text& text, const std::string& full) {
        text.open("static inline {} {}({} a, {} b)", t, full, t, t);
        text.line("{} power = 1, square = ({})a, rest = ({})b;", u, u, u);
        if (has_sign) text.line("if (b < 0) return a == 1 ? 1 : a == -1 ? ((b & 1) ? -1 : 1) : 0;");
        text.open("for (; rest != 0; rest >>= 1)");
        text.line("if (rest & 1u) power *= square;");
        text.line("square *= square;");
        text.close();
        text.line("return ({})power;", t);
        text.close();
      });
    case ElementwiseOp::kShiftLeft:
    case ElementwiseOp::kShiftRight:
      return get(name, [&](Text& text, const std::string& full) {
        text.open("static inline {} {}({} a, {} b)", t, full, t, t);
        const int bits = is_wide ? 64 : 32;
        if (op == ElementwiseOp::kShiftLeft) {
          text.line("return ({})b < {} ? ({})(({})a << ({})b) : 0;", u, bits, t, u, u);
        } else {
          text.line("return ({})b < {} ? a >> b : {};", u, bits, has_sign ? "a < 0 ? -1 : 0" : "0");
        }
        text.close();
      });
    case ElementwiseOp::kShrink:
      return get(name, [&](Text& text, const std::string& full) {
        // Computed in double; what does not fit becomes the lowest number.
        const int width = static_cast<int>(byte_width(type)) * 8;
        const std::string high = fmt::format("{}.0", has_sign ? (width == 64 ? "9223372036854775808" : "2147483648")
                                                              : (width == 64 ? "18446744073709551616" : "4294967296"));
        const std::string low = has_sign ? "-" + high : "0.0";
        text.open("static inline {} {}({} a, double alpha, double beta)", t, full, t);
        text.line("const double x = (double)a;");
        text.line("const double y = x < -alpha ? x + beta : x - beta;");
        text.line("if (!(x < -alpha) && !(x > alpha)) return 0;");
        text.line("return y > {} - 1 && y >= {} && y < {} ? ({})y : {};", low, low, high, t,
                  has_sign ? (is_wide ? literal(INT64_MIN) : literal(INT32_MIN)) : "0");
        text.close();
      });
    default:
      return {};
  }
}

}  // namespace treadle::c

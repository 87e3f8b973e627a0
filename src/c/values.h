#pragma once
// A value type for kernels/elementwise_functions.h whose operations write C. The definitions from which kernels are
// compiled thus become C, so both do the same operations in the same order.
//
// Each operation is a statement that names its result, so that no compiler joins a product and a sum unless the
// definition does. The file, the names and the way of multiplying and adding come from the thread's Scope.

#include <deque>
#include <string>
#include <type_traits>
#include <utility>

#include "c/functions.h"
#include "c/text.h"
#include "c/types.h"

namespace treadle::c {

// Where values write, and what keeps their texts: no value outlives the scope in which it was made.
struct Scope {
  Text& text;
  Functions& functions;
  int& names;  // names given so far in the function at hand
  Scope* outer;

  Scope(Text& t, Functions& f, int& n);
  ~Scope();
  Scope(const Scope&) = delete;
  static Scope& current();
  // Writes `type` t<number> = `expression`, and returns the name.
  const char* name(std::string_view type, std::string_view expression);
  const char* keep(std::string kept) { return texts_.emplace_back(std::move(kept)).c_str(); }

 private:
  std::deque<std::string> texts_;
};

template <class T>
constexpr ElementType element_of() {
  if constexpr (std::is_same_v<T, float>) return ElementType::kFloat;
  if constexpr (std::is_same_v<T, double>) return ElementType::kDouble;
  if constexpr (std::is_same_v<T, int32_t>) return ElementType::kInt32;
  if constexpr (std::is_same_v<T, uint32_t>) return ElementType::kUint32;
  if constexpr (std::is_same_v<T, int64_t>) return ElementType::kInt64;
  if constexpr (std::is_same_v<T, uint64_t>) return ElementType::kUint64;
  return ElementType::kBool;
}
template <class T>
std::string_view c_name() {
  return stored(element_of<T>());
}

struct Mask {
  const char* v = "";
  static Mask of(std::string_view expression) { return {Scope::current().name("int", expression)}; }
  friend Mask operator&(const Mask& a, const Mask& b) { return of(fmt::format("{} & {}", a.v, b.v)); }
  friend Mask operator|(const Mask& a, const Mask& b) { return of(fmt::format("{} | {}", a.v, b.v)); }
  friend Mask operator!(const Mask& a) { return of(fmt::format("!{}", a.v)); }
};

template <class T>
struct Value {
  using Scalar = T;
  using Unsigned = std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint8_t>>;
  using Bits = Value<Unsigned>;
  static constexpr bool kFloat = std::is_floating_point_v<T>;
  const char* v = "";  // a name or a number

  Value() = default;
  explicit Value(T scalar) : v(Scope::current().keep(literal(scalar))) {}
  static Value of(const char* name) {
    Value x;
    x.v = name;
    return x;
  }
  static Value make(const std::string& expression) { return of(Scope::current().name(c_name<T>(), expression)); }

  friend Value operator+(const Value& a, const Value& b) { return a.arithmetic("+", b); }
  friend Value operator-(const Value& a, const Value& b) { return a.arithmetic("-", b); }
  friend Value operator*(const Value& a, const Value& b) { return a.arithmetic("*", b); }
  friend Value operator/(const Value& a, const Value& b) {
    static_assert(kFloat, "integer division checks its divisor");
    return make(fmt::format("{} / {}", a.v, b.v));
  }
  friend Value operator-(const Value& a) { return make(fmt::format("-{}", a.v)); }
  friend Value operator&(const Value& a, const Value& b) { return a.bitwise("&", b); }
  friend Value operator|(const Value& a, const Value& b) { return a.bitwise("|", b); }
  friend Value operator^(const Value& a, const Value& b) { return a.bitwise("^", b); }
  friend Value operator~(const Value& a) { return make(cast(fmt::format("~{}", a.v))); }
  friend Value operator<<(const Value& a, int count) { return make(fmt::format("{} << {}", a.v, count)); }
  friend Value operator>>(const Value& a, int count) { return make(fmt::format("{} >> {}", a.v, count)); }

  friend Mask operator<(const Value& a, const Value& b) { return a.compare("<", b); }
  friend Mask operator>(const Value& a, const Value& b) { return a.compare(">", b); }
  friend Mask operator<=(const Value& a, const Value& b) { return a.compare("<=", b); }
  friend Mask operator>=(const Value& a, const Value& b) { return a.compare(">=", b); }
  friend Mask operator==(const Value& a, const Value& b) { return a.compare("==", b); }
  friend Mask operator!=(const Value& a, const Value& b) { return a.compare("!=", b); }

 private:
  // C makes an int of a narrower operand.
  static std::string cast(const std::string& expression) {
    return sizeof(T) == 1 ? fmt::format("({})({})", c_name<T>(), expression) : expression;
  }
  Value bitwise(const char* op, const Value& b) const { return make(cast(fmt::format("{} {} {}", v, op, b.v))); }
  // Signed integers wrap, which C leaves to unsigned ones.
  Value arithmetic(const char* op, const Value& b) const {
    if constexpr (std::is_signed_v<T> && !kFloat) {
      const auto wrapped = c_name<Unsigned>();
      return make(fmt::format("({})(({}){} {} ({}){})", c_name<T>(), wrapped, v, op, wrapped, b.v));
    } else {
      return make(cast(fmt::format("{} {} {}", v, op, b.v)));
    }
  }
  Mask compare(const char* op, const Value& b) const {
    // Only a float can differ from itself.
    if (!kFloat && std::string_view(v) == b.v)
      return Mask::of(std::string_view(op).ends_with("=") && op[0] != '!' ? "1" : "0");
    return Mask::of(fmt::format("{} {} {}", v, op, b.v));
  }
};

template <class T>
Value<T> select(const Mask& condition, const Value<T>& yes, const Value<T>& no) {
  return Value<T>::make(fmt::format("{} ? {} : {}", condition.v, yes.v, no.v));
}

template <class T>
auto to_bits(const Value<T>& x) {
  using Bits = typename Value<T>::Bits;
  if constexpr (std::is_floating_point_v<T>) {
    return Bits::make(fmt::format("{}({})", Scope::current().functions.bits_of(element_of<T>()), x.v));
  } else {
    return Bits::make(fmt::format("({}){}", c_name<typename Bits::Scalar>(), x.v));
  }
}
template <class V, class B>
V from_bits_of(const Value<B>& bits) {
  using T = typename V::Scalar;
  if constexpr (std::is_floating_point_v<T>) {
    return V::make(fmt::format("{}({})", Scope::current().functions.of_bits(element_of<T>()), bits.v));
  } else {
    return V::make(fmt::format("({}){}", c_name<T>(), bits.v));
  }
}

template <class T>
Value<T> multiply_add(const Value<T>& a, const Value<T>& b, const Value<T>& c) {
  Functions& functions = Scope::current().functions;
  if (!functions.fuses()) return a * b + c;
  return Value<T>::make(fmt::format("{}({}, {}, {})", functions.multiply_add(element_of<T>()), a.v, b.v, c.v));
}

#define TREADLE_C_FUNCTION(name)                                                                         \
  template <class T>                                                                                     \
  Value<T> name(const Value<T>& x) {                                                                     \
    return Value<T>::make(fmt::format("{}({})", Scope::current().functions.name(element_of<T>()), x.v)); \
  }
TREADLE_C_FUNCTION(floor)
TREADLE_C_FUNCTION(ceil)
TREADLE_C_FUNCTION(round_even)
TREADLE_C_FUNCTION(sqrt)
#undef TREADLE_C_FUNCTION

// Writes a C function and returns its name, `name`_<type>. The result and each of `arguments` have compute type `type`.
// `evaluate` writes the statements and returns the name of the result.
std::string write_function(Functions& functions, std::string_view name, ElementType type,
                           std::initializer_list<const char*> arguments, const std::function<std::string()>& evaluate);

}  // namespace treadle::c

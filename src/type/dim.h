#pragma once
// The size of an axis, or an element of a small integer tensor that sizes are computed from. It is a known integer, an
// expression over named symbols (`2*N+1`, `ceil((T-3)/2)`, `min(a,b)`), or unknown with a least value. Inference is
// written once over Dim. With known sizes a Dim costs one test on top of integer arithmetic, and allocates nothing.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace treadle {

namespace detail {
struct DimExpr;  // immutable, reference-counted, in canonical form
void retain(const DimExpr*);
void release(const DimExpr*);
}  // namespace detail

class Dim {
 public:
  Dim() = default;  // unknown
  Dim(int64_t value) : kind_(Kind::kKnown), value_(value) {}
  Dim(const Dim& other) : kind_(other.kind_), value_(other.value_) {
    if (kind_ == Kind::kExpr) detail::retain(expr_);
  }
  Dim(Dim&& other) noexcept : kind_(other.kind_), value_(other.value_) {
    other.kind_ = Kind::kUnknown;
    other.value_ = kUnbounded;
  }
  Dim& operator=(const Dim& other) {
    Dim copy(other);
    swap(copy);
    return *this;
  }
  Dim& operator=(Dim&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Dim() {
    if (kind_ == Kind::kExpr) detail::release(expr_);
  }

  static Dim unknown() { return {}; }
  // An unknown that is at least `least`.
  static Dim at_least(int64_t least) {
    Dim d;
    d.value_ = least;
    return d;
  }
  static Dim symbol(std::string_view name);

  bool is_known() const { return kind_ == Kind::kKnown; }
  bool is_known(int64_t value) const { return kind_ == Kind::kKnown && value_ == value; }
  bool is_unknown() const { return kind_ == Kind::kUnknown; }
  bool is_symbolic() const { return kind_ == Kind::kExpr; }
  int64_t value() const { return value_; }  // only if is_known()
  int64_t value_or(int64_t otherwise) const { return is_known() ? value_ : otherwise; }

  // The name of a bare symbol; empty for other Dims.
  std::string_view symbol_name() const;
  std::string to_string() const;  // "3", "2*N+1", "?"

  // Whether two sizes are provably equal. An unknown equals nothing, not even itself.
  friend bool same(const Dim& a, const Dim& b);
  // As same(), but any two unknowns are identical.
  friend bool identical(const Dim& a, const Dim& b);
  // The smallest possible value, given that symbols are sizes (>= 0); nullopt if unknown.
  std::optional<int64_t> lower_bound() const;

  friend bool depends_on(const Dim& d, std::string_view symbol);

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  friend Dim floor_div(const Dim& a, const Dim& b);
  friend Dim ceil_div(const Dim& a, const Dim& b);
  friend Dim mod(const Dim& a, const Dim& b);  // has the sign of the divisor
  friend Dim min(const Dim& a, const Dim& b);
  friend Dim max(const Dim& a, const Dim& b);

 private:
  enum class Kind : uint8_t { kUnknown, kKnown, kExpr };
  explicit Dim(const detail::DimExpr* expr) : kind_(Kind::kExpr), expr_(expr) {}  // takes over the reference
  friend struct DimAlgebra;
  void swap(Dim& other) noexcept {
    std::swap(kind_, other.kind_);
    std::swap(value_, other.value_);
  }

  static constexpr int64_t kUnbounded = INT64_MIN;

  Kind kind_ = Kind::kUnknown;
  union {
    int64_t value_ = kUnbounded;  // of an unknown: the least value
    const detail::DimExpr* expr_;
  };
};

Dim operator+(const Dim& a, const Dim& b);
Dim operator-(const Dim& a, const Dim& b);
Dim operator*(const Dim& a, const Dim& b);
Dim floor_div(const Dim& a, const Dim& b);
Dim ceil_div(const Dim& a, const Dim& b);
Dim mod(const Dim& a, const Dim& b);
Dim min(const Dim& a, const Dim& b);
Dim max(const Dim& a, const Dim& b);
bool same(const Dim& a, const Dim& b);
bool identical(const Dim& a, const Dim& b);
// Whether the expression contains `symbol`.
bool depends_on(const Dim& d, std::string_view symbol);

}  // namespace treadle

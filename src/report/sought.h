#pragma once
// What `--find` looks for in values.

#include <limits>
#include <string>
#include <string_view>

#include "base/status.h"
#include "kernels/statistics.h"

namespace treadle::report {

class Sought {
 public:
  // Parses kinds with commas between them: "nan", "inf" (of either sign), "over=LIMIT" (further from 0 than LIMIT,
  // infinities included), "denormal", "zero" (a tensor of more than one number that are all 0). Errors:
  // kInvalidArgument with the kinds that there are.
  static Result<Sought> parse(std::string_view text);

  // Whether a tensor with these statistics has any such number.
  bool is_in(const kernels::Statistics& of) const;
  // How many, if they are counted: of `over` and `zero` it is all or none.
  int64_t count_in(const kernels::Statistics& of) const;
  // Whether integers may be such numbers.
  bool in_integers() const { return zero_ || over_ < std::numeric_limits<double>::infinity(); }
  // Whether a number is one. `least_normal`: the least normal number of its type.
  bool is(double number, double least_normal) const;
  // As it was given.
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  bool nan_ = false, infinite_ = false, denormal_ = false, zero_ = false;
  double over_ = std::numeric_limits<double>::infinity();  // infinity: not asked for
};

}  // namespace treadle::report

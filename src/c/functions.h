#pragma once
// The functions of a C file that the code of its instructions calls: elementwise operations, conversions, rounding.
// A function is written when it is asked for the first time. Names begin with the prefix of the file.

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/cpu.h"
#include "c/names.h"
#include "c/text.h"
#include "kernels/convert.h"
#include "kernels/elementwise_ops.h"
#include "type/element_type.h"

namespace treadle::c {

class Functions {
 public:
  // `isa`: the instruction set whose kernels the code equals bit for bit.
  // `libm`: operations for which there is no formula call the C library's.
  // `names`: of the file, which functions get theirs from.
  Functions(std::string prefix, Isa isa, bool libm, Names& names)
      : prefix_(std::move(prefix)), isa_(isa), libm_(libm), taken_(names) {}

  const std::string& prefix() const { return prefix_; }
  std::string upper_prefix() const;  // for macros
  Isa isa() const { return isa_; }
  // Whether a * b + c rounds once.
  bool fuses() const { return isa_ != Isa::kBaseline; }
  // Elements of this compute type in a vector of the kernels: the order of sums follows from it.
  int lanes(ElementType type) const;

  // The name of function `name`, which `write` writes if it is new. Functions that it asks for stand in front of it.
  std::string get(std::string_view name, const std::function<void(Text&, const std::string&)>& write);

  // The same for a text that holds sizes of a node: `name`, `name`_2 and so on, one for each text.
  std::string get_alike(std::string_view name, const std::function<void(Text&, const std::string&)>& write);

  // Of floats: their bits, and floats of bits.
  std::string bits_of(ElementType type);
  std::string of_bits(ElementType type);
  std::string multiply_add(ElementType type);
  std::string floor(ElementType type);
  std::string ceil(ElementType type);
  std::string round_even(ElementType type);
  std::string sqrt(ElementType type);

  // f(x), f(a, b) or f(a, b, c) in a compute type; `alpha` and `beta` follow where the operation has parameters, and
  // the address of an error code where it can fail. Empty: only the C library has it.
  std::string operation(kernels::ElementwiseOp op, ElementType type);
  static bool has_parameters(kernels::ElementwiseOp op, ElementType type);
  static bool can_fail(kernels::ElementwiseOp op, ElementType type);
  // A function of the C library, where the engine calls it. Empty: not allowed.
  std::string library(std::string_view name) {
    if (libm_) calls_libm_ = true;
    return std::string(libm_ ? name : "");
  }
  // The natural logarithm of a double, as the engine takes it of sums.
  std::string logarithm() { return library("log"); }
  // The power and the size of floats, as the engine takes them of powers of pools: the C library's. Empty: not allowed.
  std::string power_of_size(ElementType type);
  // From one stored type to another, by the rules of kernels/convert.h. Empty: the same type.
  std::string convert(ElementType from, ElementType to, const kernels::CastOptions& options = {});
  // The expression `x` of `from` as one of `to`.
  std::string converted(ElementType from, ElementType to, const std::string& x,
                        const kernels::CastOptions& options = {});

  // Whether a function calls the C library.
  bool calls_libm() const { return calls_libm_; }
  // All functions so far, each behind those that it calls.
  const std::string& str() const { return text_; }

 private:
  std::string by_definition(kernels::ElementwiseOp op, ElementType type);
  std::string by_library(kernels::ElementwiseOp op, ElementType type);
  std::string of_integers(kernels::ElementwiseOp op, ElementType type);
  std::string rounding(std::string_view name, ElementType type, std::string_view correction);

  std::string prefix_;
  Isa isa_;
  bool libm_;
  Names& taken_;
  bool calls_libm_ = false;
  std::map<std::string, std::string, std::less<>> names_;  // of functions so far; empty: cannot be written
  std::map<std::string, std::string, std::less<>> alike_;  // of functions of get_alike, by their texts
  std::string text_;
};

}  // namespace treadle::c

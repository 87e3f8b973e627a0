#pragma once
// Reductions, positions of extremes, and products over a few elements that are at hand in vectors. The order of every
// sum is that of the kernels (kernels/reduce.h, kernels/gemm.h), so results are equal to the last bit.

#include "jit/flat.h"
#include "jit/steps.h"
#include "plan/kernel_code.h"

namespace treadle::jit {

class FlatMaths {
 public:
  FlatMaths(FlatBuilder& flats, StepHost& host, Isa isa)
      : flats_(flats),
        host_(host),
        vector_bytes_(isa == Isa::kAvx512 ? 64
                      : isa == Isa::kAvx2 ? 32
                                          : 16) {}

  // `from`: the whole operand. The result has one element for each that is kept.
  Flat reduce(const plan::ReductionCode& code, Flat from) const;
  // Of the elements `stride` apart from each of `bases` on.
  Flat extreme(const plan::ExtremeCode& code, const Flat& from, const Numbers& bases, int64_t stride) const;
  // `bias` is null where there is none.
  Flat product(const plan::ProductCode& code, const Flat& a, const Flat& b, const Flat* bias) const;

  Flat apply(kernels::ElementwiseOp op, ElementType type, std::initializer_list<const Flat*> arguments) const;
  Flat convert(const Flat& from, ElementType type, ElementType to) const;
  // a * b + c, fused where kernels do so.
  Flat multiply_add(ElementType type, const Flat& a, const Flat& b, const Flat& c) const;
  Flat number(ElementType type, double value, int64_t count) const;
  // A product's sums as the kernel ends them: alpha * sum + beta * bias. `bias`: an element for each, or null.
  Flat with_bias(const plan::ProductCode& code, Flat sum, const Flat* bias) const;

  static bool knows(const plan::ReductionCode& code);
  static bool knows(const plan::ExtremeCode& code);
  static bool knows(const plan::ProductCode& code);

  static constexpr int64_t kLongestChain = 64;  // that is written out

 private:
  int64_t lanes_of_kernel(ElementType type) const {
    return vector_bytes_ / static_cast<int64_t>(byte_width(compute_type(type)));
  }
  // Element i of each result: `from` at bases[i] + offset.
  Flat at(const Flat& from, const Numbers& bases, int64_t offset) const;
  // Rows of `width` (a power of two) lie one behind the other: lane i with lane i + width / 2, and so on.
  Flat fold(kernels::ElementwiseOp op, ElementType type, Flat rows, int64_t width) const;
  Flat reduce_block(kernels::ElementwiseOp op, ElementType type, const Flat& from, const Numbers& bases,
                    int64_t n) const;
  Flat chain(kernels::ElementwiseOp op, ElementType type, const Flat& from, const Numbers& bases, int64_t n,
             int64_t stride, const Flat* before = nullptr) const;
  Flat finish(const plan::ReductionCode& code, ElementType type, Flat sum, int64_t count) const;
  // Elements, and where in their rows they lie (32 bits).
  struct Extreme {
    Flat value, place;
  };
  // The more extreme of each pair: of what lies further back, and of what lies before it.
  using Contest = std::function<Extreme(const Extreme& back, const Extreme& front)>;
  Extreme knock_out(Extreme rows, int64_t count, const Contest& better) const;
  Flat constants(const Numbers& numbers) const;  // 32 bits each
  Flat sum_products(const plan::ProductCode& code, const Flat& a, const Flat& b, const Numbers& a_rows,
                    const Numbers& b_columns) const;
  Flat dots(const plan::ProductCode& code, const Flat& a, const Flat& b, const Numbers& a_rows,
            const Numbers& b_columns) const;

  FlatBuilder& flats_;
  StepHost& host_;
  int64_t vector_bytes_;
};

}  // namespace treadle::jit

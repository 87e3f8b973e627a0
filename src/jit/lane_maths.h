#pragma once
// Reductions, positions of extremes, and products over a few elements that are at hand in vectors. The order of every
// sum is that of the kernels (kernels/reduce.h, kernels/gemm.h), so results are equal to the last bit.

#include "jit/steps.h"
#include "jit/vector_lanes.h"
#include "plan/kernel_code.h"

namespace treadle::jit {

class LaneMaths {
 public:
  LaneMaths(LaneBuilder& flats, StepHost& host, Isa isa)
      : lanes_(flats),
        host_(host),
        isa_(isa),
        vector_bytes_(isa == Isa::kAvx512 ? 64
                      : isa == Isa::kAvx2 ? 32
                                          : 16) {}

  // `from`: the whole operand. The result has one element for each that is kept.
  Lanes reduce(const plan::ReductionCode& code, Lanes from) const;
  // The parts of reduce(): a block of n neighbours from each of `bases` on, and what becomes of the sum of `count`
  // elements in `type`.
  Lanes reduce_block(kernels::ElementwiseOp op, ElementType type, const Lanes& from, const Numbers& bases,
                     int64_t n) const;
  Lanes finish(const plan::ReductionCode& code, ElementType type, Lanes sum, int64_t count) const;
  int64_t lanes_of_kernel(ElementType type) const {
    return vector_bytes_ / static_cast<int64_t>(byte_width(compute_type(type)));
  }
  // Of the elements `stride` apart from each of `bases` on.
  Lanes extreme(const plan::ArgReductionCode& code, const Lanes& stored, const Numbers& bases, int64_t stride) const;
  // `bias` is null where there is none.
  Lanes product(const plan::ProductCode& code, const Lanes& a, const Lanes& b, const Lanes* bias) const;

  Lanes apply(kernels::ElementwiseOp op, ElementType type, std::initializer_list<const Lanes*> arguments) const;
  Lanes convert(const Lanes& from, ElementType type, ElementType to) const;
  // a * b + c, fused where kernels do so.
  Lanes multiply_add(ElementType type, const Lanes& a, const Lanes& b, const Lanes& c) const;
  Lanes number(ElementType type, double value, int64_t count) const;
  // A product's sums as the kernel ends them: alpha * sum + beta * bias. `bias`: an element for each, or null.
  Lanes with_bias(const plan::ProductCode& code, Lanes sum, const Lanes* bias) const;

  static bool knows(const plan::ReductionCode& code);
  static bool knows(const plan::ArgReductionCode& code);
  static bool knows(const plan::ProductCode& code);

  static constexpr int64_t kLongestChain = 64;  // that is written out

 private:
  // Element i of each result: `from` at bases[i] + offset.
  Lanes at(const Lanes& from, const Numbers& bases, int64_t offset) const;
  // Rows of `width` (a power of two) lie one behind the other: lane i with lane i + width / 2, and so on.
  Lanes fold(kernels::ElementwiseOp op, ElementType type, Lanes rows, int64_t width) const;
  Lanes chain(kernels::ElementwiseOp op, ElementType type, const Lanes& from, const Numbers& bases, int64_t n,
              int64_t stride, const Lanes* before = nullptr) const;
  // Elements, and where in their rows they lie (32 bits).
  struct Extreme {
    Lanes value, place;
  };
  // The more extreme of each pair: of what lies further back, and of what lies before it.
  using Contest = std::function<Extreme(const Extreme& back, const Extreme& front)>;
  Extreme knock_out(Extreme rows, int64_t count, const Contest& better) const;
  Lanes constants(const Numbers& numbers) const;  // 32 bits each
  Lanes sum_products(const plan::ProductCode& code, const Lanes& a, const Lanes& b, const Numbers& a_rows,
                     const Numbers& b_columns) const;
  Lanes dots(const plan::ProductCode& code, const Lanes& a, const Lanes& b, const Numbers& a_rows,
             const Numbers& b_columns) const;
  Lanes short_dots(const plan::ProductCode& code, const Lanes& a, const Lanes& b, const Numbers& a_rows,
                   const Numbers& b_columns) const;

  LaneBuilder& lanes_;
  StepHost& host_;
  Isa isa_;
  int64_t vector_bytes_;
};

}  // namespace treadle::jit

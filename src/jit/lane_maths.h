#pragma once
// Reductions, positions of extremes, and products over a few elements in vectors. Every sum has the order of the
// kernels (kernels/reduce.h, kernels/gemm.h), so results have the same bits.

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

  // `from`: the whole operand. The result has one element for each kept position.
  Lanes reduce(const plan::ReductionCode& code, Lanes from) const;
  // The parts of reduce(): the sum of a block of n neighbours from each of `bases` on, and the result for a sum of
  // `count` elements in `type`.
  Lanes reduce_block(kernels::ElementwiseOp op, ElementType type, const Lanes& from, const Numbers& bases,
                     int64_t n) const;
  Lanes finish(const plan::ReductionCode& code, ElementType type, Lanes sum, int64_t count) const;
  int64_t lanes_of_kernel(ElementType type) const {
    return vector_bytes_ / static_cast<int64_t>(byte_width(compute_type(type)));
  }
  // The position of the extreme among elements that are `stride` apart, from each of `bases` on.
  Lanes extreme(const plan::ArgReductionCode& code, const Lanes& stored, const Numbers& bases, int64_t stride) const;
  // `bias`: null if there is none.
  Lanes product(const plan::ProductCode& code, const Lanes& a, const Lanes& b, const Lanes* bias) const;

  Lanes apply(kernels::ElementwiseOp op, ElementType type, std::initializer_list<const Lanes*> arguments) const;
  Lanes convert(const Lanes& from, ElementType type, ElementType to) const;
  // a * b + c, fused where kernels fuse it.
  Lanes multiply_add(ElementType type, const Lanes& a, const Lanes& b, const Lanes& c) const;
  Lanes number(ElementType type, double value, int64_t count) const;
  // The kernel's last step of a product: alpha * sum + beta * bias. `bias`: one element for each sum, or null.
  Lanes with_bias(const plan::ProductCode& code, Lanes sum, const Lanes* bias) const;

  static bool supports(const plan::ReductionCode& code);
  static bool supports(const plan::ArgReductionCode& code);
  static bool supports(const plan::ProductCode& code);

  // The longest chain that is written out. The maximum of 64 rows of two takes 0.8 of the kernel's time, that of 80
  // rows 0.9 (measured).
  static constexpr int64_t kLongestChain = 64;

 private:
  // Element i of each result is element bases[i] + offset of `from`.
  Lanes at(const Lanes& from, const Numbers& bases, int64_t offset) const;
  struct Rows;
  Lanes chain(kernels::ElementwiseOp op, ElementType type, const Lanes& from, const Numbers& bases, int64_t n,
              int64_t stride, const Lanes* before = nullptr) const;
  // Elements, and their positions in their rows (32 bits).
  struct Extreme {
    Lanes value, place;
  };
  // Picks the more extreme of each pair. `front`: elements that come before those of `back` in their rows.
  using Contest = std::function<Extreme(const Extreme& back, const Extreme& front)>;
  Extreme knock_out(Extreme rows, int64_t count, const Contest& better) const;
  Lanes constants(const Numbers& numbers) const;  // 32-bit numbers
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

#pragma once
// Dynamic kernels (op/dynamic_kernel.h) of operators that read or make texts. A kernel overwrites the texts of its last
// call. New texts mostly fit the memory of the old ones, so that a loop allocates nothing for them.

#include "op/broadcast_loop.h"
#include "op/dynamic_kernel.h"
#include "op/pieces.h"

namespace treadle {

// The texts of an operand.
inline const String* texts_of(const DynamicOperand& operand) {
  return static_cast<const String*>(operand.data);
}

// Makes output 0, elements of type T, from the first operands of the call, broadcast by numpy's rule. each(to, at)
// writes one element; at[k] is the position of the element in operand k. It returns how many bytes of text it has read
// or written.
template <class T, size_t kOperands, class Each>
uint32_t make_spread(DynamicCall& call, Each&& each) {
  const auto operands = call.inputs.first(kOperands);
  const Dims* longest = operands[0].dims;
  bool single = true;
  for (const DynamicOperand& operand : operands) {
    single &= operand.count == 1;
    if (operand.dims->size() > longest->size()) longest = operand.dims;
  }
  if (single) {
    constexpr int64_t kFirst[kOperands] = {};
    T* const to = static_cast<T*>(call.make(0, *longest, 1));
    if (!to) return kNotDynamic;
    call.count_bytes(each(*to, kFirst));
    return 0;
  }
  Dims dims;
  for (const DynamicOperand& operand : operands) {
    Result<Dims> spread = broadcast_dims(dims, *operand.dims);
    if (!spread.ok()) return kNotDynamic;
    dims = std::move(spread).value();
  }
  T* const to = static_cast<T*>(call.make(0, dims));
  if (!to) return kNotDynamic;
  Dims strides[kOperands];
  for (size_t k = 0; k < kOperands; ++k) strides[k] = broadcast_strides(*operands[k].dims, dims);
  const Status done = for_each_broadcast(dims, strides, [&](int64_t i, const int64_t* at) {
    const size_t bytes = each(to[i], at);
    call.count_bytes(bytes);
    return text_ns(bytes);
  });
  return unless_stopped(done.ok());
}

}  // namespace treadle

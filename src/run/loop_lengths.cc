// How many iterations a loop makes, as it begins.
#include <algorithm>

#include "op/loop_signature.h"
#include "run/loops.h"

namespace treadle::run {

using plan::Loop;
using plan::ScanInput;

Status Loops::count_scan_iterations(const Loop& loop, LoopPosition& at) {
  at.iterations = loop.known_iterations;
  at.iterations_known = true;
  for (size_t i = 0; i < loop.scan_inputs.size(); ++i) {
    const uint32_t s = loop.scan_inputs[i].whole;
    if (!frame_.is_handle(s)) continue;
    const AnyValue& v = frame_.handle(s);
    if (!v.is_tensor() || v.tensor().rank() < 1) {
      return error(Code::kRuntime, "scan input {} must be a tensor of rank 1 or more, found {}", i,
                   v.type().to_string());
    }
    const int64_t length = v.tensor().dims()[0];
    if (at.iterations >= 0 && at.iterations != length) return check_lengths(loop);
    at.iterations = length;
  }
  at.rows = at.iterations;
  if (loop.masked && at.iterations > 1) at.iterations = count_masked_iterations(loop.scan_inputs[0], at.iterations);
  return {};
}

Status Loops::count_iterations(const Loop& loop, LoopPosition& at) {
  if (loop.is_scan) return count_scan_iterations(loop, at);
  at.iterations = INT64_MAX;
  at.iterations_known = loop.trip_count != plan::kNoSlot && loop.continues == plan::kNoSlot;
  if (loop.trip_count != plan::kNoSlot) {
    if (frame_.is_handle(loop.trip_count)) {
      const AnyValue& m = frame_.handle(loop.trip_count);
      if (!m.is_tensor() || m.tensor().type() != ElementType::kInt64 || m.tensor().element_count() != 1) {
        return error(Code::kRuntime, "M is {}, expected one int64", m.type().to_string());
      }
    }
    at.iterations = *static_cast<const int64_t*>(frame_.address(loop.trip_count));
  }
  if (loop.condition != plan::kNoSlot) {
    bool condition = false;
    TREADLE_TRY(frame_.read_flag(loop.condition, "cond", condition));
    if (!condition) at.iterations = 0;
  }
  at.iterations = at.rows = std::max<int64_t>(at.iterations, 0);
  return {};
}

// Checks in the order of the inputs: the error names the first input whose length differs.
Status Loops::check_lengths(const Loop& loop) const {
  int64_t length = -1;
  for (size_t i = 0; i < loop.scan_inputs.size(); ++i) {
    const uint32_t s = loop.scan_inputs[i].whole;
    const bool is_handle = frame_.is_handle(s);
    if (is_handle && (!frame_.handle(s).is_tensor() || frame_.handle(s).tensor().rank() < 1)) continue;
    const int64_t own = is_handle ? frame_.handle(s).tensor().dims()[0] : program_.slots[s].type.shape[0].value();
    if (length >= 0 && own != length) return unequal_lengths(i, own, length);
    length = own;
  }
  return {};
}

// The number of iterations up to the last one whose mask is not all false. At least one, which determines the sizes of
// rows.
int64_t Loops::count_masked_iterations(const ScanInput& mask, int64_t length) const {
  const bool* within = static_cast<const bool*>(frame_.address(mask.whole));
  const int64_t count = frame_.is_handle(mask.whole) ? frame_.handle(mask.whole).tensor().element_count()
                                                     : known_element_count(program_.slots[mask.whole].type.shape);
  int64_t last = count - 1;
  while (last > 0 && !within[last]) --last;
  return count > 0 ? last / (count / length) + 1 : 1;
}

}  // namespace treadle::run

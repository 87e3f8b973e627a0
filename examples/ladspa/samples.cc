#include "samples.h"

#include <algorithm>

Samples::Samples(treadle::Stream stream, const std::string& input, const std::vector<int64_t>& dims, size_t block)
    : pushes_(std::move(stream), input, dims, static_cast<int64_t>(block)), block_(block) {
  // A block waits until it is complete, and the model's answer for as long as it looks ahead.
  set_latency(block_ + pushes_.delay());
  ready_.resize(2 * block_);
}

void Samples::restart() {
  pushes_.begin();
  filled_ = oldest_ = 0;
  kept_ = block_;
  std::fill(ready_.begin(), ready_.end(), 0.0f);
}

bool Samples::push() {
  filled_ = 0;
  const float* const given = pushes_.push();
  if (!given) return false;
  const size_t count = pushes_.result_count();
  if (kept_ + count > ready_.size()) return false;
  for (size_t i = 0; i < count; ++i) ready_[(oldest_ + kept_ + i) % ready_.size()] = given[i];
  kept_ += count;
  return true;
}

bool Samples::advance(const float* in, float* out, size_t count) {
  while (count > 0) {
    const size_t taken = std::min(count, block_ - filled_);
    if (kept_ < taken) return false;
    std::copy_n(in, taken, pushes_.chunk() + filled_);
    for (size_t i = 0; i < taken; ++i) out[i] = ready_[(oldest_ + i) % ready_.size()];
    oldest_ = (oldest_ + taken) % ready_.size();
    kept_ -= taken;
    filled_ += taken;
    if (filled_ == block_ && !push()) return false;
    in += taken;
    out += taken;
    count -= taken;
  }
  return true;
}

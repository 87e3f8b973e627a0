// Models that take samples and give as many.
#pragma once

#include "enhancer.h"
#include "pushes.h"

// The samples go to the model in blocks of one size, since a push of a new size would have to plan.
class Samples : public Enhancer {
 public:
  Samples(treadle::Stream stream, const std::string& input, const std::vector<int64_t>& dims, size_t block);

  std::string breaks_realtime() const override { return pushes_.breaks_realtime(); }
  std::string failure() const override { return pushes_.failure(); }

 private:
  void restart() override;
  bool advance(const float* in, float* out, size_t count) override;
  bool push();

  Pushes pushes_;
  size_t block_;
  size_t filled_ = 0;         // samples of the block that have come
  std::vector<float> ready_;  // what the model has given, a ring
  size_t oldest_ = 0, kept_ = 0;
};

// How many threads onnxruntime's session runs a node on. onnxruntime does not tell it, but lends them.
#pragma once

#include <mutex>

#include "host.h"

namespace treadle::provider {

class Threads {
 public:
  // Learned in the first run, where threads get up to 20 milliseconds to show up; at most one for each processor.
  int of(const OrtKernelContext* context);

 private:
  std::once_flag once_;
  int count_ = 1;
};

}  // namespace treadle::provider

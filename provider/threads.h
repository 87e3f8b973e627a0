// How many threads onnxruntime's session uses for a node. onnxruntime does not tell the number, but lends the threads.
#pragma once

#include <mutex>

#include "host.h"

namespace treadle::provider {

class Threads {
 public:
  // Counted in the first run, in which threads get up to 20 milliseconds to come; at most one per processor.
  int of(const OrtKernelContext* context);

 private:
  std::once_flag once_;
  int count_ = 1;
};

}  // namespace treadle::provider

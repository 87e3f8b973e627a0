#include "op/pieces.h"

#include "kernels/costs.h"

namespace treadle {

double text_ns(size_t bytes) {
  return costs::kTextNs + kByteNs * static_cast<double>(bytes);
}

}  // namespace treadle

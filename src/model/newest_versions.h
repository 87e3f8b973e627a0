#pragma once
// The newest operator sets that this build supports.

#include <cstdint>

namespace treadle::model {

constexpr int64_t kNewestOnnxOpset = 29, kNewestMlOpset = 5;

}  // namespace treadle::model

#pragma once

#include "op/context.h"

namespace treadle {

// Scan-8 as a Scan over the batch whose body scans over time.
Status lower_scan8(LowerContext& ctx);

}  // namespace treadle

#pragma once

#include "op/context.h"

namespace treadle {

// Lowers Scan-8 to a Scan over the batch whose body scans over time.
Status lower_scan8(LowerContext& ctx);

}  // namespace treadle

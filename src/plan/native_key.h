#pragma once
// What tells the native code of one loop from that of every other one.

#include "base/digest.h"
#include "base/processor.h"
#include "plan/native.h"

namespace treadle::plan {

// Of everything that the compiler may look at for this request, of the compiler's own version and of the processor.
// Equal keys mean equal code. A compiler that looks at more has to add it here; for the structures that this reads, a
// new member does not compile until it has been thought about.
Digest native_key(const NativeRequest& request, const std::string& processor = processor_id());

}  // namespace treadle::plan

#pragma once
// The key that identifies the native code of a loop.

#include "base/digest.h"
#include "base/processor.h"
#include "plan/native.h"

namespace treadle::plan {

// Digest of everything that the compiler may read for this request, of the compiler's version, and of the processor.
// Equal keys mean equal code. A compiler that reads more must add it here. A new member of the structures that this
// digests does not compile until this function handles it.
Digest native_key(const NativeRequest& request, const std::string& processor = processor_id());

}  // namespace treadle::plan

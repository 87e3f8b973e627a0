#pragma once
// From an object file in memory to a blob: sections laid out one behind the other, references among them resolved.

#include <llvm/ADT/StringRef.h>

#include <string>

#include "plan/native.h"

namespace treadle::jit {

// `entry`: name of the function. False: `why` names what cannot be resolved.
bool link_object(llvm::StringRef object, llvm::StringRef entry, plan::NativeBlob& blob, std::string& why);

}  // namespace treadle::jit

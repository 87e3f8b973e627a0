#pragma once
// Turns an object file in memory into a blob: lays sections out one after the other, and resolves the references
// between them.

#include <llvm/ADT/StringRef.h>

#include <string>

#include "plan/native.h"

namespace treadle::jit {

// `entry`: name of the function. False: `why` names the symbol that cannot be resolved.
bool link_object(llvm::StringRef object, llvm::StringRef entry, plan::NativeBlob& blob, std::string& why);

}  // namespace treadle::jit

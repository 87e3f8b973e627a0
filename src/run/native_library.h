#pragma once
// The shared object that loops are compiled by.

#include <string>

#include "plan/native.h"

namespace treadle::run {

// Loaded when this is first called, by whichever thread that is. Null: `why` says what stands in the way.
const plan::NativeCompiler* native_compiler(std::string& why);

// What stands in the way of the library that is installed, without loading it. Both empty: nothing, or none is
// installed.
struct InstalledCompiler {
  std::string damage;           // why it cannot be loaded
  std::string another_version;  // it belongs to another version of treadle
};
InstalledCompiler look_at_compiler();

// compiler.compile() on a thread of its own: its stack is all there before it is used, and its thread-local variables
// are made while that can still be refused. False: `why` says what stands in the way. Errors: std::bad_alloc.
bool compile_apart(const plan::NativeCompiler& compiler, const plan::NativeRequest& request, plan::NativeBlob& blob,
                   std::string& why);

// Why a file cannot be a whole shared object; empty: it can. The system's loader believes what a file says of its own
// length, and whoever reads what is missing ends with SIGBUS.
std::string why_not_whole(const std::string& path);

}  // namespace treadle::run

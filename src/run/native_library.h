#pragma once
// The shared object with the compiler of loops.

#include <string>

#include "plan/native.h"

namespace treadle::run {

// Loads the library on the first call, from any thread. Null: `why` gives the reason.
const plan::NativeCompiler* native_compiler(std::string& why);

// Problems of the installed library, found without loading it. Both are empty if there is none, or no library.
struct InstalledCompiler {
  std::string damage;           // why it cannot be loaded
  std::string another_version;  // it belongs to another version of treadle
};
InstalledCompiler find_installed_compiler();

// Calls compiler.compile() on a thread of its own. The whole stack of the thread exists before it is used, and its
// thread-local variables are made while failure can still be reported. False: `why` gives the reason. Errors:
// std::bad_alloc.
bool compile_apart(const plan::NativeCompiler& compiler, const plan::NativeRequest& request, plan::NativeBlob& blob,
                   std::string& why);

// Why a file cannot be a complete shared object; empty if it can. The system's loader trusts the lengths in the file,
// and a process that reads a missing part ends with SIGBUS.
std::string why_not_whole(const std::string& path);

}  // namespace treadle::run

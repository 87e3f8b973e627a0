#pragma once
// The shared object that loops are compiled by.

#include <string>

#include "plan/native.h"

namespace treadle::run {

// Loaded when this is first called, by whichever thread that is. Null: `why` says what stands in the way.
const plan::NativeCompiler* native_compiler(std::string& why);

// Without loading it: why the library that is installed cannot be; empty: it can, or none is installed.
std::string why_damaged();

// Why there is none although one is installed: it belongs to another version. Empty: there is one, or none at all.
std::string why_of_another_version();

// compiler.compile() on a thread of its own: its stack is all there before it is used, and its thread-local variables
// are made while that can still be refused. False: `why` says what stands in the way. Errors: std::bad_alloc.
bool compile_apart(const plan::NativeCompiler& compiler, const plan::NativeRequest& request, plan::NativeBlob& blob,
                   std::string& why);

// Why a file cannot be a whole shared object; empty: it can. The system's loader believes what a file says of its own
// length, and whoever reads what is missing ends with SIGBUS.
std::string why_not_whole(const std::string& path);

}  // namespace treadle::run

// Libraries of operators: opening them, and adding their operators to options of sessions.

#include <dlfcn.h>

#include "custom_operators.h"
#include "options.h"

namespace treadle::dropin {

namespace {

using Register = OrtStatus* (*)(OrtSessionOptions* options, const OrtApiBase* api);
constexpr const char* kRegister = "RegisterCustomOps";

void run_register(Register function, OrtSessionOptions* options) {
  if (OrtStatus* const status = function(options, OrtGetApiBase())) throw take_failure(status);
}

// The library stays open as long as the process: kernels of sessions run its code.
void* open_and_register(OrtSessionOptions* options, const char* path) {
  require(options && path, "the options of a session, or the path of a library, are missing");
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) throw Failure(ORT_FAIL, std::string("a library of operators cannot be opened: ") + dlerror());
  const auto function = reinterpret_cast<Register>(dlsym(library, kRegister));
  if (!function) {
    throw Failure(ORT_INVALID_ARGUMENT, std::string(path) + " has no function " + kRegister +
                                            ", which a library of operators has for onnxruntime");
  }
  run_register(function, options);
  return library;
}

}  // namespace

namespace api {

void CreateCustomOpDomain(const char* domain, OrtCustomOpDomain** out) {
  require(domain, "the name of a domain is missing");
  *out = new OrtCustomOpDomain{domain, {}};
}

void ReleaseCustomOpDomain(OrtCustomOpDomain* domain) {
  delete domain;
}

void CustomOpDomain_Add(OrtCustomOpDomain* domain, const OrtCustomOp* op) {
  require(domain && op, "a domain, or an operator for it, is missing");
  domain->operators.push_back(op);
}

void AddCustomOpDomain(OrtSessionOptions* options, OrtCustomOpDomain* domain) {
  require(options && domain, "the options of a session, or a domain of operators, are missing");
  options->domains.push_back(domain);
}

void RegisterCustomOpsLibrary(OrtSessionOptions* options, const char* path, void** library) {
  void* const opened = open_and_register(options, path);
  if (library) *library = opened;
}

void RegisterCustomOpsLibrary_V2(OrtSessionOptions* options, const char* path) {
  open_and_register(options, path);
}

void RegisterCustomOpsUsingFunction(OrtSessionOptions* options, const char* name) {
  require(options && name, "the options of a session, or the name of a function, are missing");
  const auto function = reinterpret_cast<Register>(dlsym(RTLD_DEFAULT, name));
  if (!function) throw Failure(ORT_INVALID_ARGUMENT, std::string("the process has no function ") + name);
  run_register(function, options);
}

}  // namespace api

}  // namespace treadle::dropin

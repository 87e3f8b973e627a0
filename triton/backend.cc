// The functions that the server calls. Each returns null or an error; none throws.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "batches.h"
#include "failure.h"
#include "metrics.h"
#include "model.h"
#include "sequences.h"

using namespace backend;  // NOLINT(google-build-using-namespace)

namespace {

template <class Fn>
TRITONSERVER_Error* guarded(Fn fn) noexcept {
  try {
    fn();
    return nullptr;
  } catch (...) {
    return current_error();
  }
}

template <class T, class Handle>
T& state_of(TRITONSERVER_Error* (*read)(Handle*, void**), Handle* handle) {
  void* state = nullptr;
  check(read(handle, &state));
  return *static_cast<T*>(state);
}

// Frees the object that belongs to a handle of the server.
template <class T, class Handle>
TRITONSERVER_Error* finalize(TRITONSERVER_Error* (*read)(Handle*, void**), Handle* handle) {
  return guarded([&] {
    void* state = nullptr;
    check(read(handle, &state));
    delete static_cast<T*>(state);
  });
}

// Gives the object to the handle, which owns it from here on.
template <class T, class Handle>
void keep(TRITONSERVER_Error* (*write)(Handle*, void*), Handle* handle, std::unique_ptr<T> made) {
  check(write(handle, made.get()));
  (void)made.release();
}

// Refuses --backend-config=treadle,KEY=VALUE of the server, except for keys that the server has for every backend.
void refuse_settings(TRITONBACKEND_Backend* handle) {
  TRITONSERVER_Message* message = nullptr;
  check(TRITONBACKEND_BackendConfig(handle, &message));
  static constexpr std::array kOfServer = {"auto-complete-config", "backend-directory", "default-max-batch-size",
                                           "min-compute-capability"};
  const Json config = json_of(message);
  for (const auto& setting : config["cmdline"].members()) {
    if (std::ranges::find(kOfServer, setting.first) != kOfServer.end()) continue;
    throw InvalidArgument(
        fmt::format("--backend-config=treadle,{}={}: treadle has no settings for all models; write "
                    "parameters into config.pbtxt",
                    setting.first, setting.second.text()));
  }
}

std::unique_ptr<Runner> runner_of(TRITONBACKEND_ModelInstance* instance) {
  TRITONBACKEND_Model* handle = nullptr;
  TRITONBACKEND_Backend* backend = nullptr;
  const char* name = nullptr;
  TRITONSERVER_InstanceGroupKind kind{};
  check(TRITONBACKEND_ModelInstanceModel(instance, &handle));
  check(TRITONBACKEND_ModelBackend(handle, &backend));
  check(TRITONBACKEND_ModelInstanceName(instance, &name));
  check(TRITONBACKEND_ModelInstanceKind(instance, &kind));
  const Model& model = state_of<Model>(TRITONBACKEND_ModelState, handle);
  if (kind == TRITONSERVER_INSTANCEGROUPKIND_GPU) {
    throw InvalidArgument(
        fmt::format("{}: instance '{}' is to run on a GPU, and treadle runs on the processor; write "
                    "instance_group [ {{ kind: KIND_CPU }} ]",
                    model.label, name));
  }
  if (model.way == Model::Way::kBatches) return std::make_unique<Batches>(instance, model);
  const auto& families = state_of<MetricFamilies>(TRITONBACKEND_BackendState, backend);
  return std::make_unique<Sequences>(instance, model, families, name);
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names are Triton's

extern "C" {

#define TREADLE_EXPORTED __attribute__((visibility("default")))

TREADLE_EXPORTED TRITONSERVER_Error* TRITONBACKEND_Initialize(TRITONBACKEND_Backend* handle) {
  return guarded([&] {
    uint32_t major = 0, minor = 0;
    check(TRITONBACKEND_ApiVersion(&major, &minor));
    if (major != kTritonBackendMajor || minor < kTritonBackendMinor) {
      throw Failure(TRITONSERVER_ERROR_UNSUPPORTED,
                    fmt::format("the server's interface for backends is {}.{}, and treadle needs {}.{} or a later {}",
                                major, minor, kTritonBackendMajor, kTritonBackendMinor, kTritonBackendMajor));
    }
    refuse_settings(handle);
    keep(TRITONBACKEND_BackendSetState, handle, std::make_unique<MetricFamilies>());
    TREADLE_LOG(INFO, fmt::format("version {}, over the server's interface for backends {}.{}", treadle::version(),
                                  major, minor));
  });
}

TREADLE_EXPORTED TRITONSERVER_Error* TRITONBACKEND_Finalize(TRITONBACKEND_Backend* handle) {
  return finalize<MetricFamilies>(TRITONBACKEND_BackendState, handle);
}

// Models without an instance_group run on the processor, even if there is a GPU.
TREADLE_EXPORTED TRITONSERVER_Error* TRITONBACKEND_GetBackendAttribute(TRITONBACKEND_Backend*,
                                                                       TRITONBACKEND_BackendAttribute* attributes) {
  return TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(attributes, TRITONSERVER_INSTANCEGROUPKIND_CPU, 0,
                                                                 nullptr, 0);
}

TREADLE_EXPORTED TRITONSERVER_Error* TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model* handle) {
  return guarded([&] { keep(TRITONBACKEND_ModelSetState, handle, std::make_unique<Model>(handle)); });
}

TREADLE_EXPORTED TRITONSERVER_Error* TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model* handle) {
  return finalize<Model>(TRITONBACKEND_ModelState, handle);
}

TREADLE_EXPORTED TRITONSERVER_Error* TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance* handle) {
  return guarded([&] { keep(TRITONBACKEND_ModelInstanceSetState, handle, runner_of(handle)); });
}

TREADLE_EXPORTED TRITONSERVER_Error* TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance* handle) {
  return finalize<Runner>(TRITONBACKEND_ModelInstanceState, handle);
}

TREADLE_EXPORTED TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance* handle,
                                                                        TRITONBACKEND_Request** requests,
                                                                        uint32_t count) {
  return guarded([&] { state_of<Runner>(TRITONBACKEND_ModelInstanceState, handle).execute({requests, count}); });
}

}  // extern "C"

// NOLINTEND(readability-identifier-naming)

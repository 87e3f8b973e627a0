// The entry points of this library for onnxruntime: the factory of execution providers.

#include "provider.h"

namespace treadle::provider {

namespace {

class Factory : public OrtEpFactory {
 public:
  Factory() : OrtEpFactory{} {
    ort_version_supported = kOldestVersion;
    OrtEpFactory::GetName = [](const OrtEpFactory*) { return kName; };
    OrtEpFactory::GetVendor = [](const OrtEpFactory*) { return "treadle"; };
    OrtEpFactory::GetVendorId = [](const OrtEpFactory*) { return uint32_t{0}; };
    OrtEpFactory::GetVersion = [](const OrtEpFactory*) { return treadle_version(); };
    OrtEpFactory::GetSupportedDevices = supported_devices;
    OrtEpFactory::CreateEp = create;
    OrtEpFactory::ReleaseEp = [](OrtEpFactory*, OrtEp* provider) { delete static_cast<Provider*>(provider); };
    OrtEpFactory::CreateDataTransfer = [](OrtEpFactory*, OrtDataTransferImpl** out) -> OrtStatus* {
      *out = nullptr;  // values are in the processor's memory
      return nullptr;
    };
    OrtEpFactory::IsStreamAware = [](const OrtEpFactory*) { return false; };
  }

 private:
  static OrtStatus* supported_devices(OrtEpFactory* self, const OrtHardwareDevice* const* devices, size_t count,
                                      OrtEpDevice** out, size_t room, size_t* out_count) {
    return guarded([&] {
      *out_count = 0;
      for (size_t i = 0; i < count && *out_count < room; ++i) {
        if (ort().HardwareDevice_Type(devices[i]) != OrtHardwareDeviceType_CPU) continue;
        check(host().ep_api->CreateEpDevice(self, devices[i], nullptr, nullptr, &out[*out_count]));
        ++*out_count;
      }
    });
  }

  static OrtStatus* create(OrtEpFactory*, const OrtHardwareDevice* const*, const OrtKeyValuePairs* const*, size_t,
                           const OrtSessionOptions* options, const OrtLogger* logger, OrtEp** out) {
    return guarded([&] { *out = new Provider(options, logger); });
  }
};

}  // namespace

}  // namespace treadle::provider

extern "C" {

OrtStatus* CreateEpFactories(const char*, const OrtApiBase* base, const OrtLogger*, OrtEpFactory** factories,
                             size_t room, size_t* count) {
  try {
    treadle::provider::open_host(base);
    if (room < 1) throw treadle::provider::Failure(ORT_INVALID_ARGUMENT, "there is room for no factory");
    factories[0] = new treadle::provider::Factory;
    *count = 1;
    return nullptr;
  } catch (...) {
    return treadle::provider::status_of_exception(*base->GetApi(1));
  }
}

OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) {
  delete static_cast<treadle::provider::Factory*>(factory);
  return nullptr;
}

}  // extern "C"

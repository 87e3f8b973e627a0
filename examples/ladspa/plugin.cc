// A LADSPA plugin around an enhancer. Environment variables say which model it runs:
//
//   TREADLE_ENHANCE_MODEL  a path
//   TREADLE_ENHANCE_RATE   samples per second, for a model that does not say its rate
//   TREADLE_ENHANCE_HOP    samples between windows, for a model of spectra
//   TREADLE_ENHANCE_BLOCK  samples of a push, for a model of samples
//
// What is wrong is printed to stderr; the host then gets no instance.
#include <ladspa.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <stdexcept>

#include "enhancer.h"

namespace {

enum Port : unsigned long { kInput, kOutput, kAmount, kLatency, kPorts };

struct Instance {
  std::unique_ptr<Enhancer> enhancer;
  LADSPA_Data* ports[kPorts] = {};
};

int64_t number(const char* variable) {
  const char* const text = std::getenv(variable);
  if (!text || !*text) return 0;
  char* end = nullptr;
  const long long value = std::strtoll(text, &end, 10);
  if (*end || value <= 0)
    throw std::runtime_error(std::string(variable) + ": expected a number above 0, found " + text);
  return value;
}

LADSPA_Handle instantiate(const LADSPA_Descriptor*, unsigned long rate) try {
  const char* const model = std::getenv("TREADLE_ENHANCE_MODEL");
  if (!model || !*model) throw std::runtime_error("TREADLE_ENHANCE_MODEL is not set: expected the path of a model");
  Settings settings{model, static_cast<int64_t>(rate)};
  settings.model_rate = number("TREADLE_ENHANCE_RATE");
  settings.hop = number("TREADLE_ENHANCE_HOP");
  settings.block = number("TREADLE_ENHANCE_BLOCK");
  auto instance = std::make_unique<Instance>();
  instance->enhancer = Enhancer::open(settings);
  instance->enhancer->begin();
  const std::string why = instance->enhancer->breaks_realtime();
  if (!why.empty()) std::fprintf(stderr, "treadle_enhance: %s may be late: %s\n", model, why.c_str());
  return instance.release();
} catch (const std::exception& problem) {
  std::fprintf(stderr, "treadle_enhance: %s\n", problem.what());
  return nullptr;
}

void connect(LADSPA_Handle handle, unsigned long port, LADSPA_Data* data) {
  static_cast<Instance*>(handle)->ports[port] = data;
}

void activate(LADSPA_Handle handle) try {
  static_cast<Instance*>(handle)->enhancer->begin();
} catch (const std::exception& problem) {
  std::fprintf(stderr, "treadle_enhance: %s\n", problem.what());
}

void run(LADSPA_Handle handle, unsigned long count) {
  const auto& [enhancer, ports] = *static_cast<Instance*>(handle);
  const float amount = ports[kAmount] ? std::clamp(*ports[kAmount], 0.0f, 1.0f) : 1.0f;
  enhancer->process(ports[kInput], ports[kOutput], count, amount);
  if (ports[kLatency]) *ports[kLatency] = static_cast<float>(enhancer->latency());
}

void deactivate(LADSPA_Handle handle) {
  const std::string failure = static_cast<Instance*>(handle)->enhancer->failure();
  if (!failure.empty()) std::fprintf(stderr, "treadle_enhance: the model has failed: %s\n", failure.c_str());
}

void cleanup(LADSPA_Handle handle) {
  delete static_cast<Instance*>(handle);
}

const LADSPA_PortDescriptor kKinds[kPorts] = {
    LADSPA_PORT_INPUT | LADSPA_PORT_AUDIO,
    LADSPA_PORT_OUTPUT | LADSPA_PORT_AUDIO,
    LADSPA_PORT_INPUT | LADSPA_PORT_CONTROL,
    LADSPA_PORT_OUTPUT | LADSPA_PORT_CONTROL,
};
const char* const kNames[kPorts] = {"Input", "Output", "Amount", "latency"};  // hosts look for "latency"
const LADSPA_PortRangeHint kHints[kPorts] = {
    {}, {}, {LADSPA_HINT_BOUNDED_BELOW | LADSPA_HINT_BOUNDED_ABOVE | LADSPA_HINT_DEFAULT_1, 0.0f, 1.0f}, {}};

const LADSPA_Descriptor kPlugin = {
    999,  // numbers below 1000 are for plugins without one of their own
    "treadle_enhance",
    LADSPA_PROPERTY_HARD_RT_CAPABLE,
    "Enhance by a model (treadle)",
    "treadle",
    "Apache-2.0",
    kPorts,
    kKinds,
    kNames,
    kHints,
    nullptr,
    instantiate,
    connect,
    activate,
    run,
    nullptr,
    nullptr,
    deactivate,
    cleanup,
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const LADSPA_Descriptor* ladspa_descriptor(unsigned long index) {
  return index == 0 ? &kPlugin : nullptr;
}

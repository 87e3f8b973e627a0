// Models of Neural Amp Modeler's core, a checkout of which bench/peers.py compiles this file with.
#include <NAM/activations.h>
#include <NAM/dsp.h>
#include <NAM/get_dsp.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>

extern "C" {

// Null: the file is no model that the core reads. The core's own approximation of tanh is on, as in its plugin.
__attribute__((visibility("default"))) void* peer_open(const char* path, int64_t largest_block) try {
  nam::activations::Activation::enable_fast_tanh();
  std::unique_ptr<nam::DSP> model = nam::get_dsp(std::filesystem::path(path));
  model->Reset(48000, static_cast<int>(largest_block));
  return model.release();
} catch (const std::exception& problem) {
  std::fprintf(stderr, "%s: %s\n", path, problem.what());
  return nullptr;
}

__attribute__((visibility("default"))) void peer_process(void* model, int64_t calls, float* in, float* out,
                                                         int64_t frames) {
  for (int64_t i = 0; i < calls; ++i) static_cast<nam::DSP*>(model)->process(&in, &out, static_cast<int>(frames));
}

__attribute__((visibility("default"))) void peer_close(void* model) {
  delete static_cast<nam::DSP*>(model);
}
}

#pragma once
// For targets that read models: included by the one source file of a target, it gives libFuzzer mutations of models.

#include "fuzz/support/model_mutator.h"

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return treadle::fuzz::mutate_model(data, size, max_size, seed);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* data1, size_t size1, const uint8_t* data2, size_t size2,
                                            uint8_t* out, size_t max_size, unsigned seed) {
  return treadle::fuzz::cross_models(data1, size1, data2, size2, out, max_size, seed);
}

// A model, its inputs, and what memory a run needs.
#pragma once

#include <stddef.h>

struct tested_case {
  const char* name;
  int (*run)(const void* const* inputs, void* const* outputs, void* scratch);
  const void* const* inputs;
  size_t outputs;
  const size_t* output_bytes;
  size_t scratch_bytes;
};

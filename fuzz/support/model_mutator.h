#pragma once
// Mutations of a model as what it is: a tree of messages, whose nodes are operators. What results is a well-formed file
// (mostly), so that a fuzzer spends its time behind the reader.

#include <string>

#include "fuzz/support/texts.h"
#include "wire/onnx.h"

namespace treadle::fuzz {

// One change to a model: a field, a message copied from elsewhere in it or in `donor`, or a node that was not there.
void change(wire::ModelProto& model, const wire::ModelProto& donor, Random& random, Storage& storage);

// What libFuzzer's hooks of the same names want, for models as files or as texts. `as_text`: what comes out is a text.
// Bytes that are no model are left to libFuzzer, as are some that are.
size_t mutate_model(uint8_t* data, size_t size, size_t max_size, unsigned seed, bool as_text = false);
size_t cross_models(const uint8_t* data1, size_t size1, const uint8_t* data2, size_t size2, uint8_t* out,
                    size_t max_size, unsigned seed, bool as_text = false);

}  // namespace treadle::fuzz

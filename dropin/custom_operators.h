// Operators of libraries that were made for onnxruntime: what such a library fills in and asks for, over operators of
// treadle's own interface.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "values.h"

// An attribute of a node, all kinds in one memory.
struct OrtOpAttr {
  std::string name;
  int kind = 0;  // AttributeProto.AttributeType
  std::vector<int64_t> ints;
  std::vector<float> floats;
  std::vector<std::string> texts;
  std::shared_ptr<const OrtValue> tensor;
};

// What a kernel may ask about its node; a copy of what the model says.
struct OrtKernelInfo {
  explicit OrtKernelInfo(const treadle_node* node, int since_version);

  const OrtOpAttr* find(const char* name) const;

  std::string path, op, domain;
  int since = 1;
  size_t inputs = 0, outputs = 0;
  std::map<std::string, OrtOpAttr> attributes;
};

struct OrtCustomOpDomain {
  std::string name;
  std::vector<const OrtCustomOp*> operators;
};

struct OrtKernelContext {
  treadle_call* call;
  std::vector<int> output_elements;  // of each output; 0: nobody has said
  std::vector<std::unique_ptr<OrtValue>> inputs, outputs;
  std::vector<std::unique_ptr<char[]>> scratch;

  const OrtValue* input(size_t index);
  OrtValue* output(size_t index, const int64_t* dims, size_t rank);
  // Hands over what lies in another form than treadle's.
  void finish();
};

struct OrtShapeInferContext {
  treadle_inference* inference;
  const OrtKernelInfo& info;
  std::vector<std::unique_ptr<OrtTensorTypeAndShapeInfo>> types;  // given to the library, which does not free them
};

namespace treadle::dropin {

// Sessions with these options have the operators of the domain.
void add_operators(treadle_options* options, const OrtCustomOpDomain& domain);

}  // namespace treadle::dropin

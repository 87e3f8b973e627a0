// Operators of libraries that were made for onnxruntime: their structs and functions, over operators of treadle's own
// interface.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "values.h"

// An attribute of a node, with room for every kind.
struct OrtOpAttr {
  std::string name;
  int kind = 0;  // AttributeProto.AttributeType
  std::vector<int64_t> ints;
  std::vector<float> floats;
  std::vector<std::string> texts;
  std::shared_ptr<const OrtValue> tensor;
};

// A copy of the model's data about a node, for the questions of its kernel.
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
  std::vector<int> output_elements;  // of each output; 0: not set
  std::vector<std::unique_ptr<OrtValue>> inputs, outputs;
  std::vector<std::unique_ptr<char[]>> scratch;

  const OrtValue* input(size_t index);
  OrtValue* output(size_t index, const int64_t* dims, size_t rank);
  // Passes on results that are stored in another form than treadle's.
  void finish();
};

struct OrtShapeInferContext {
  treadle_inference* inference;
  const OrtKernelInfo& info;
  std::vector<std::unique_ptr<OrtTensorTypeAndShapeInfo>> types;  // lent to the library, which does not free them
};

namespace treadle::dropin {

// Adds the operators of the domain to sessions with these options.
void add_operators(treadle_options* options, const OrtCustomOpDomain& domain);

}  // namespace treadle::dropin

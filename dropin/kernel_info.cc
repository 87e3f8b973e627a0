// Questions of a library's kernels about their node, before and while they run.

#include <algorithm>
#include <cstring>

#include "custom_operators.h"
#include "environment.h"
#include "memory.h"

namespace treadle::dropin {

namespace {

const OrtOpAttr& attribute_of(const OrtKernelInfo* info, const char* name) {
  require(info && name, "the information of a kernel, or the name of an attribute, is missing");
  const OrtOpAttr* found = info->find(name);
  if (!found) throw Failure(ORT_FAIL, std::string("the node has no attribute ") + name);
  return *found;
}

[[noreturn]] void refuse_kind(const OrtOpAttr& attribute, const char* wanted) {
  throw Failure(ORT_INVALID_ARGUMENT, "attribute " + attribute.name + " is no " + wanted);
}

// A caller without memory gets the size; one with too little memory gets an error with the size.
template <class T>
void give(const T* from, size_t count, T* out, size_t* size, const char* what) {
  const size_t room = *size;
  *size = count;
  if (!out) return;
  if (room < count) {
    refuse_argument(std::string(what) + " takes " + std::to_string(count) + " places, found " + std::to_string(room));
  }
  std::copy(from, from + count, out);
}

void give_text(const std::string& text, char* out, size_t* size, const char* what) {
  give(text.c_str(), text.size() + 1, out, size, what);
}

OrtLogger* logger() {
  return reinterpret_cast<OrtLogger*>(&logger);  // the environment's, the only one
}

OrtOpAttrType type_of(const OrtOpAttr& attribute) {
  enum Kind { kFloat = 1, kInt = 2, kText = 3, kTensor = 4, kGraph = 5, kFloats = 6, kInts = 7, kTexts = 8 };
  switch (attribute.kind) {
    case kFloat:
      return ORT_OP_ATTR_FLOAT;
    case kInt:
      return ORT_OP_ATTR_INT;
    case kText:
      return ORT_OP_ATTR_STRING;
    case kTensor:
      return ORT_OP_ATTR_TENSOR;
    case kGraph:
      return ORT_OP_ATTR_GRAPH;
    case kFloats:
      return ORT_OP_ATTR_FLOATS;
    case kInts:
      return ORT_OP_ATTR_INTS;
    case kTexts:
      return ORT_OP_ATTR_STRINGS;
    default:
      return OrtOpAttrType{};
  }
}

}  // namespace

namespace api {

// ---- Attributes

void KernelInfoGetAttribute_float(const OrtKernelInfo* info, const char* name, float* out) {
  const OrtOpAttr& attribute = attribute_of(info, name);
  if (type_of(attribute) != ORT_OP_ATTR_FLOAT) refuse_kind(attribute, "float");
  *out = attribute.floats[0];
}

void KernelInfoGetAttribute_int64(const OrtKernelInfo* info, const char* name, int64_t* out) {
  const OrtOpAttr& attribute = attribute_of(info, name);
  if (type_of(attribute) != ORT_OP_ATTR_INT) refuse_kind(attribute, "integer");
  *out = attribute.ints[0];
}

void KernelInfoGetAttribute_string(const OrtKernelInfo* info, const char* name, char* out, size_t* size) {
  const OrtOpAttr& attribute = attribute_of(info, name);
  if (type_of(attribute) != ORT_OP_ATTR_STRING) refuse_kind(attribute, "text");
  give_text(attribute.texts[0], out, size, name);
}

void KernelInfoGetAttributeArray_float(const OrtKernelInfo* info, const char* name, float* out, size_t* size) {
  const OrtOpAttr& attribute = attribute_of(info, name);
  if (type_of(attribute) != ORT_OP_ATTR_FLOATS) refuse_kind(attribute, "list of floats");
  give(attribute.floats.data(), attribute.floats.size(), out, size, name);
}

void KernelInfoGetAttributeArray_int64(const OrtKernelInfo* info, const char* name, int64_t* out, size_t* size) {
  const OrtOpAttr& attribute = attribute_of(info, name);
  if (type_of(attribute) != ORT_OP_ATTR_INTS) refuse_kind(attribute, "list of integers");
  give(attribute.ints.data(), attribute.ints.size(), out, size, name);
}

void KernelInfoGetAttributeArray_string(const OrtKernelInfo* info, const char* name, OrtAllocator* allocator,
                                        char*** out, size_t* size) {
  const OrtOpAttr& attribute = attribute_of(info, name);
  if (type_of(attribute) != ORT_OP_ATTR_STRINGS) refuse_kind(attribute, "list of texts");
  auto** texts = static_cast<char**>(allocate(allocator, std::max<size_t>(attribute.texts.size(), 1) * sizeof(char*)));
  for (size_t i = 0; i < attribute.texts.size(); ++i) texts[i] = copy_text(allocator, attribute.texts[i]);
  *out = texts;
  *size = attribute.texts.size();
}

void KernelInfoGetAttribute_tensor(const OrtKernelInfo* info, const char* name, OrtAllocator*, OrtValue** out) {
  const OrtOpAttr& attribute = attribute_of(info, name);
  if (!attribute.tensor) refuse_kind(attribute, "tensor");
  *out = new OrtValue(attribute.tensor->share());
}

void OpAttr_GetType(const OrtOpAttr* attribute, OrtOpAttrType* out) {
  *out = type_of(*attribute);
}

void OpAttr_GetName(const OrtOpAttr* attribute, const char** out) {
  *out = attribute->name.c_str();
}

// `size`: in bytes.
void ReadOpAttr(const OrtOpAttr* attribute, OrtOpAttrType type, void* data, size_t size, size_t* needed) {
  require(attribute && needed, "an attribute, or where to put its size, is missing");
  const auto copy = [&](const void* from, size_t bytes) {
    *needed = bytes;
    if (size < bytes) refuse_argument("attribute " + attribute->name + " takes " + std::to_string(bytes) + " bytes");
    if (bytes > 0) std::memcpy(data, from, bytes);
  };
  if (type != type_of(*attribute)) refuse_kind(*attribute, "attribute of the kind that was asked for");
  switch (type) {
    case ORT_OP_ATTR_FLOAT:
    case ORT_OP_ATTR_FLOATS:
      return copy(attribute->floats.data(), attribute->floats.size() * sizeof(float));
    case ORT_OP_ATTR_INT:
    case ORT_OP_ATTR_INTS:
      return copy(attribute->ints.data(), attribute->ints.size() * sizeof(int64_t));
    case ORT_OP_ATTR_STRING:
    case ORT_OP_ATTR_STRINGS: {
      std::string texts;
      for (const std::string& text : attribute->texts) texts.append(text).append(1, '\0');
      return copy(texts.data(), texts.size());
    }
    default:
      refuse_kind(*attribute, "number or text");
  }
}

// ---- The node

void CopyKernelInfo(const OrtKernelInfo* info, OrtKernelInfo** out) {
  *out = new OrtKernelInfo(*info);
}
void ReleaseKernelInfo(OrtKernelInfo* info) {
  delete info;
}
void KernelInfo_GetInputCount(const OrtKernelInfo* info, size_t* out) {
  *out = info->inputs;
}
void KernelInfo_GetOutputCount(const OrtKernelInfo* info, size_t* out) {
  *out = info->outputs;
}
void KernelInfo_GetNodeName(const OrtKernelInfo* info, char* out, size_t* size) {
  give_text(info->path, out, size, "the name of the node");
}
void KernelInfo_GetOperatorDomain(const OrtKernelInfo* info, char* out, size_t* size) {
  give_text(info->domain, out, size, "the name of the domain");
}
void KernelInfo_GetOperatorType(const OrtKernelInfo* info, char* out, size_t* size) {
  give_text(info->op, out, size, "the name of the operator");
}
void KernelInfo_GetOperatorSinceVersion(const OrtKernelInfo* info, int* out) {
  *out = info->since;
}
void KernelInfoGetAllocator(const OrtKernelInfo*, OrtMemType, OrtAllocator** out) {
  *out = cpu_allocator();
}
void KernelInfo_GetLogger(const OrtKernelInfo*, const OrtLogger** out) {
  *out = logger();
}
// When a kernel is made, treadle does not know yet whether an input never changes.
void KernelInfoGetConstantInput_tensor(const OrtKernelInfo* info, size_t index, int* is_constant,
                                       const OrtValue** out) {
  require(info && index < info->inputs, "the node has no such input");
  *is_constant = 0;
  *out = nullptr;
}

// ---- A run

void KernelContext_GetInputCount(const OrtKernelContext* context, size_t* out) {
  *out = context->inputs.size();
}
void KernelContext_GetOutputCount(const OrtKernelContext* context, size_t* out) {
  *out = context->outputs.size();
}
void KernelContext_GetInput(const OrtKernelContext* context, size_t index, const OrtValue** out) {
  *out = const_cast<OrtKernelContext*>(context)->input(index);
}
void KernelContext_GetOutput(OrtKernelContext* context, size_t index, const int64_t* dims, size_t rank,
                             OrtValue** out) {
  *out = context->output(index, dims, rank);
}
void KernelContext_GetGPUComputeStream(const OrtKernelContext*, void** out) {
  *out = nullptr;  // as in onnxruntime on the CPU
}
void KernelContext_GetLogger(const OrtKernelContext*, const OrtLogger** out) {
  *out = logger();
}
void KernelContext_GetAllocator(const OrtKernelContext*, const OrtMemoryInfo* memory, OrtAllocator** out) {
  require_cpu(memory);
  *out = cpu_allocator();
}
void KernelContext_GetScratchBuffer(const OrtKernelContext* context, const OrtMemoryInfo* memory, size_t bytes,
                                    void** out) {
  require_cpu(memory);
  auto& scratch = const_cast<OrtKernelContext*>(context)->scratch;
  *out = scratch.emplace_back(std::make_unique<char[]>(bytes)).get();
}
// Runs the parts one after the other: the threads of a run work on its nodes, and a library's node has one of them.
void KernelContext_ParallelFor(const OrtKernelContext*, void (*fn)(void*, size_t), size_t total, size_t, void* data) {
  require(fn, "KernelContext_ParallelFor: argument 2 (void (*)(void*, size_t)) is NULL");
  for (size_t i = 0; i < total; ++i) fn(data, i);
}

void Logger_LogMessage(const OrtLogger*, OrtLoggingLevel level, const char* message, const char*, int, const char*) {
  if (level >= ORT_LOGGING_LEVEL_WARNING && message) Logger{}.warn(message);
}
void Logger_GetLoggingSeverityLevel(const OrtLogger*, OrtLoggingLevel* out) {
  *out = ORT_LOGGING_LEVEL_WARNING;
}

// ---- Inference

void ShapeInferContext_GetInputCount(const OrtShapeInferContext* context, size_t* out) {
  *out = context->info.inputs;
}

void ShapeInferContext_GetInputTypeShape(const OrtShapeInferContext* context, size_t index,
                                         OrtTensorTypeAndShapeInfo** out) {
  require(index < context->info.inputs, "the node has no such input");
  auto& types = const_cast<OrtShapeInferContext*>(context)->types;
  const treadle_type* type = treadle_inference_input(context->inference, index);
  auto described = type ? describe(type).tensor : OrtTensorTypeAndShapeInfo();
  described.has_shape = type && treadle_type_rank(type) >= 0;
  *out = types.emplace_back(std::make_unique<OrtTensorTypeAndShapeInfo>(std::move(described))).get();
}

void ShapeInferContext_GetAttribute(const OrtShapeInferContext* context, const char* name, const OrtOpAttr** out) {
  *out = &attribute_of(&context->info, name);
}

void ShapeInferContext_SetOutputTypeShape(const OrtShapeInferContext* context, size_t index,
                                          const OrtTensorTypeAndShapeInfo* type) {
  require(type, "the type of an output is missing");
  if (!type->has_shape) return;
  std::vector<const char*> symbols(type->dims.size(), nullptr);
  for (size_t i = 0; i < symbols.size() && i < type->symbols.size(); ++i) {
    if (!type->symbols[i].empty()) symbols[i] = type->symbols[i].c_str();
  }
  check(treadle_inference_set_output(context->inference, index, type->element, type->dims.data(), symbols.data(),
                                     type->dims.size()));
}

}  // namespace api

}  // namespace treadle::dropin

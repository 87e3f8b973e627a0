#include "custom_operators.h"

#include <algorithm>

#include "memory.h"
#include "operator_library.h"
#include "options.h"

namespace treadle::dropin {

namespace {

// Versions of OrtCustomOp that introduced members.
constexpr uint32_t kVariadicSince = 14, kStatusSince = 16, kInferenceSince = 17;
constexpr int kTensor = 4;

Handle borrowed(const treadle_value* value) {
  return {const_cast<treadle_value*>(value), [](treadle_value*) {}};
}

OrtOpAttr read_attribute(const treadle_attribute* from) {
  enum Kind { kFloat = 1, kInt = 2, kText = 3, kFloats = 6, kInts = 7, kTexts = 8 };
  OrtOpAttr to;
  to.name = treadle_attribute_name(from);
  to.kind = treadle_attribute_kind(from);
  for (size_t i = 0; i < treadle_attribute_size(from); ++i) {
    switch (to.kind) {
      case kFloat:
      case kFloats:
        to.floats.push_back(treadle_attribute_float(from, i));
        break;
      case kInt:
      case kInts:
        to.ints.push_back(treadle_attribute_int(from, i));
        break;
      case kText:
      case kTexts: {
        const treadle_text text = treadle_attribute_text(from, i);
        to.texts.emplace_back(text.data, text.size);
        break;
      }
      case kTensor: {
        treadle_value* tensor = nullptr;
        check(treadle_attribute_tensor(from, i, &tensor));
        to.tensor = std::make_shared<const OrtValue>(own(tensor));
        break;
      }
      default:
        break;
    }
  }
  return to;
}

treadle_code code_of(OrtErrorCode code) {
  switch (code) {
    case ORT_INVALID_ARGUMENT:
      return TREADLE_INVALID_ARGUMENT;
    case ORT_NO_SUCHFILE:
      return TREADLE_NO_SUCH_FILE;
    case ORT_INVALID_PROTOBUF:
      return TREADLE_INVALID_FILE;
    case ORT_NOT_IMPLEMENTED:
      return TREADLE_NOT_IMPLEMENTED;
    case ORT_INVALID_GRAPH:
      return TREADLE_INVALID_MODEL;
    default:
      return TREADLE_RUNTIME;
  }
}

const OrtApi* table() {
  return OrtGetApiBase()->GetApi(32);
}

treadle_status* to_engine(const Failure& failure) {
  return treadle_status_create(code_of(failure.code), failure.what());
}

// C++ libraries throw exceptions out of functions that return no status.
template <class Fn>
treadle_status* guarded(Fn&& fn) noexcept {
  try {
    OrtStatus* const status = fn();
    return status ? to_engine(take_failure(status)) : nullptr;
  } catch (const Failure& failure) {
    return to_engine(failure);
  } catch (const std::exception& error) {
    return treadle_status_create(TREADLE_RUNTIME, error.what());
  } catch (...) {
    return treadle_status_create(TREADLE_RUNTIME,
                                 "the operator threw an exception that is none of the standard library's");
  }
}

int since_of(const OrtCustomOp& op) {
  return op.version >= kInferenceSince && op.GetStartVersion ? op.GetStartVersion(&op) : 1;
}

// Checks a list of `declared` parameters, of which the last is variadic with at least `least` arguments.
void require_arity(const char* kind, size_t declared, int least, size_t found) {
  const size_t needed = declared - 1 + static_cast<size_t>(std::max(least, 0));
  if (found >= needed) return;
  refuse_argument("expected at least " + std::to_string(needed) + " " + kind + ", found " + std::to_string(found));
}

void require_arities(const OrtCustomOp& op, const OrtKernelInfo& node) {
  if (op.version < kVariadicSince) return;
  const size_t inputs = op.GetInputTypeCount(&op), outputs = op.GetOutputTypeCount(&op);
  if (inputs > 0 && op.GetInputCharacteristic(&op, inputs - 1) == INPUT_OUTPUT_VARIADIC) {
    require_arity("inputs", inputs, op.GetVariadicInputMinArity(&op), node.inputs);
  }
  if (outputs > 0 && op.GetOutputCharacteristic(&op, outputs - 1) == INPUT_OUTPUT_VARIADIC) {
    require_arity("outputs", outputs, op.GetVariadicOutputMinArity(&op), node.outputs);
  }
}

struct Kernel {
  const OrtCustomOp* op;
  OrtKernelInfo info;
  void* made = nullptr;
};

treadle_status* make_kernel(void* context, const treadle_node* node, void** out) {
  return guarded([&]() -> OrtStatus* {
    const auto* op = static_cast<const OrtCustomOp*>(context);
    auto kernel = std::make_unique<Kernel>(Kernel{op, OrtKernelInfo(node, since_of(*op))});
    require_arities(*op, kernel->info);
    if (op->version >= kStatusSince && op->CreateKernelV2) {
      if (OrtStatus* status = op->CreateKernelV2(op, table(), &kernel->info, &kernel->made)) return status;
    } else {
      kernel->made = op->CreateKernel(op, table(), &kernel->info);
    }
    *out = kernel.release();
    return nullptr;
  });
}

void free_kernel(void* context) {
  auto* kernel = static_cast<Kernel*>(context);
  if (kernel->op->KernelDestroy) kernel->op->KernelDestroy(kernel->made);
  delete kernel;
}

// An output of any type has the type of the first input of any type.
int open_element(const OrtCustomOp& op, treadle_call* call) {
  for (size_t i = 0; i < op.GetInputTypeCount(&op); ++i) {
    if (op.GetInputType(&op, i) != ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED) continue;
    if (const treadle_value* value = treadle_call_input(call, i)) return treadle_tensor_element(value);
  }
  return 0;
}

treadle_status* compute(void* context, treadle_call* call) {
  return guarded([&]() -> OrtStatus* {
    const auto* kernel = static_cast<const Kernel*>(context);
    const OrtCustomOp& op = *kernel->op;
    OrtKernelContext run{call, {}, {}, {}, {}};
    const size_t declared = op.GetOutputTypeCount(&op);
    const size_t count = treadle_node_output_count(treadle_call_node(call));
    for (size_t i = 0; i < count; ++i) {
      const int element = op.GetOutputType(&op, std::min(i, declared - 1));
      run.output_elements.push_back(element != 0 ? element : open_element(op, call));
    }
    run.inputs.resize(treadle_node_input_count(treadle_call_node(call)));
    run.outputs.resize(count);
    if (op.version >= kStatusSince && op.KernelComputeV2) {
      if (OrtStatus* status = op.KernelComputeV2(kernel->made, &run)) return status;
    } else {
      op.KernelCompute(kernel->made, &run);
    }
    run.finish();
    return nullptr;
  });
}

treadle_status* infer(void* context, treadle_inference* inference) {
  const auto* kernel = static_cast<const Kernel*>(context);
  if (kernel->op->version < kInferenceSince || !kernel->op->InferOutputShapeFn) return nullptr;
  return guarded([&] {
    OrtShapeInferContext asked{inference, kernel->info, {}};
    return kernel->op->InferOutputShapeFn(kernel->op, &asked);
  });
}

// The name of a type that the operator's function `asked` returned. Empty: any type.
std::string type_name(const char* asked, size_t index, int element) {
  if (element == ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED) return {};
  const char* const name = treadle_element_name(element);
  if (name) return std::string("tensor(") + name + ")";
  refuse_argument(std::string(asked) + " gives " + std::to_string(element) + " for index " + std::to_string(index) +
                  ", which is no element type");
}

treadle_arity arity_of(OrtCustomOpInputOutputCharacteristic characteristic) {
  if (characteristic == INPUT_OUTPUT_VARIADIC) return TREADLE_VARIADIC;
  return characteristic == INPUT_OUTPUT_OPTIONAL ? TREADLE_OPTIONAL_ARGUMENT : TREADLE_SINGLE;
}

// Checks the functions that treadle calls. GetExecutionProviderType, KernelDestroy and functions of later versions may
// be NULL.
void require_members(const OrtCustomOp& op) {
#define TREADLE_NEED(member) needed_member("OrtCustomOp::" #member, op.member)
  TREADLE_NEED(GetInputTypeCount);
  TREADLE_NEED(GetInputType);
  TREADLE_NEED(GetInputCharacteristic);
  TREADLE_NEED(GetOutputTypeCount);
  TREADLE_NEED(GetOutputType);
  TREADLE_NEED(GetOutputCharacteristic);
  if (op.version < kStatusSince || !op.CreateKernelV2) TREADLE_NEED(CreateKernel);
  if (op.version < kStatusSince || !op.KernelComputeV2) TREADLE_NEED(KernelCompute);
  if (op.version < kVariadicSince) return;
  const size_t inputs = op.GetInputTypeCount(&op), outputs = op.GetOutputTypeCount(&op);
  if (inputs > 0 && op.GetInputCharacteristic(&op, inputs - 1) == INPUT_OUTPUT_VARIADIC) {
    TREADLE_NEED(GetVariadicInputMinArity);
  }
  if (outputs > 0 && op.GetOutputCharacteristic(&op, outputs - 1) == INPUT_OUTPUT_VARIADIC) {
    TREADLE_NEED(GetVariadicOutputMinArity);
  }
#undef TREADLE_NEED
}

void add_named_operator(treadle_options* options, const std::string& domain, const char* name, const OrtCustomOp& op) {
  require_members(op);
  const char* const provider = op.GetExecutionProviderType ? op.GetExecutionProviderType(&op) : nullptr;
  if (provider && std::string_view(provider) != "CPUExecutionProvider") {
    throw Failure(ORT_NOT_IMPLEMENTED, std::string("it is for ") + provider + "; treadle runs operators of the CPU");
  }
  treadle_operator* created = nullptr;
  check(treadle_operator_create(domain.c_str(), name, since_of(op), &created));
  const std::unique_ptr<treadle_operator, void (*)(treadle_operator*)> owned(created, treadle_operator_free);
  const auto add = [&](size_t count, const char* asked, auto type_of, auto characteristic, auto add_formal) {
    for (size_t i = 0; i < count; ++i) {
      const std::string type = type_name(asked, i, type_of(&op, i));
      check(add_formal(created, nullptr, type.empty() ? nullptr : type.c_str(), arity_of(characteristic(&op, i))));
    }
  };
  add(op.GetInputTypeCount(&op), "GetInputType", op.GetInputType, op.GetInputCharacteristic, treadle_operator_input);
  add(op.GetOutputTypeCount(&op), "GetOutputType", op.GetOutputType, op.GetOutputCharacteristic,
      treadle_operator_output);
  const treadle_operator_functions functions = {
      sizeof functions, const_cast<OrtCustomOp*>(&op), make_kernel, free_kernel, compute, infer, nullptr};
  check(treadle_operator_set_functions(created, &functions));
  check(treadle_options_add_operator(options, created));
}

// Errors name the operator.
void add_operator(treadle_options* options, const std::string& domain, const OrtCustomOp& op) {
  const std::string of_domain = "an operator of domain \"" + domain + "\"";
  if (!op.GetName) refuse_argument(of_domain + ": OrtCustomOp::GetName is NULL");
  const char* const name = op.GetName(&op);
  if (!name) refuse_argument(of_domain + ": OrtCustomOp::GetName gives NULL");
  try {
    add_named_operator(options, domain, name, op);
  } catch (const Failure& failure) {
    throw Failure(failure.code, std::string("operator ") + name + " of domain \"" + domain + "\": " + failure.what());
  }
}

}  // namespace

void add_operators(treadle_options* options, const OrtCustomOpDomain& domain) {
  for (const OrtCustomOp* op : domain.operators) add_operator(options, domain.name, *op);
}

treadle_status* add_operator_library(treadle_options* options, const char* path) noexcept {
  return guarded([&]() -> OrtStatus* {
    OrtSessionOptions registered;
    api::RegisterCustomOpsLibrary_V2(&registered, path);
    for (const OrtCustomOpDomain* domain : registered.domains) add_operators(options, *domain);
    return nullptr;
  });
}

}  // namespace treadle::dropin

using treadle::dropin::check;

OrtKernelInfo::OrtKernelInfo(const treadle_node* node, int since_version)
    : op(treadle_node_operator(node)),
      domain(treadle_node_domain(node)),
      since(since_version),
      inputs(treadle_node_input_count(node)),
      outputs(treadle_node_output_count(node)) {
  const treadle_text text = treadle_node_path(node);
  path.assign(text.data, text.size);
  for (size_t i = 0; i < treadle_node_attribute_count(node); ++i) {
    OrtOpAttr attribute = treadle::dropin::read_attribute(treadle_node_attribute_at(node, i));
    const std::string name = attribute.name;
    attributes.emplace(name, std::move(attribute));
  }
}

const OrtOpAttr* OrtKernelInfo::find(const char* name) const {
  const auto it = name ? attributes.find(name) : attributes.end();
  return it == attributes.end() ? nullptr : &it->second;
}

const OrtValue* OrtKernelContext::input(size_t index) {
  treadle::dropin::require(index < inputs.size(), "the node has no such input");
  const treadle_value* value = treadle_call_input(call, index);
  if (value && !inputs[index]) inputs[index] = std::make_unique<OrtValue>(treadle::dropin::borrowed(value));
  return inputs[index].get();
}

OrtValue* OrtKernelContext::output(size_t index, const int64_t* dims, size_t rank) {
  using treadle::dropin::Staged;
  treadle::dropin::require(index < outputs.size(), "the node has no such output");
  if (outputs[index]) return outputs[index].get();
  const int element = output_elements[index];
  if (Staged::stages(element)) {
    outputs[index] = std::make_unique<OrtValue>(std::make_shared<Staged>(element, dims, rank));
  } else {
    treadle_value* made = nullptr;
    check(treadle_call_allocate(call, index, element, dims, rank, &made));
    outputs[index] = std::make_unique<OrtValue>(treadle::dropin::borrowed(made));
  }
  return outputs[index].get();
}

void OrtKernelContext::finish() {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i] || !outputs[i]->staged) continue;
    const treadle::dropin::Handle read = outputs[i]->staged->read();
    check(treadle_call_set(call, i, read.get()));
  }
}

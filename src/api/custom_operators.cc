// Operators that a program registers: the functions of treadle.h, over op/custom_operator.h.

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "api/handles.h"
#include "op/custom_operator.h"

using namespace treadle;       // NOLINT(google-build-using-namespace)
using namespace treadle::api;  // NOLINT(google-build-using-namespace)

namespace {

Code code_of(treadle_code code) {
  return code == TREADLE_OK || code > TREADLE_INTERNAL ? Code::kInternal : static_cast<Code>(code);
}

// Converts and frees a status that a function of the program returned.
Status from_c(treadle_status* status) {
  if (!status) return {};
  const std::unique_ptr<treadle_status, void (*)(treadle_status*)> owned(status, treadle_status_free);
  return Status(owned->status.code(), owned->status.message());
}

// The functions of a program, with the context that it gave for them.
class Functions {
 public:
  explicit Functions(const treadle_operator_functions& functions) : of_(functions) {}
  ~Functions() {
    if (of_.release) of_.release(of_.context);
  }
  Functions(const Functions&) = delete;
  Functions& operator=(const Functions&) = delete;

  const treadle_operator_functions& operator*() const { return of_; }
  const treadle_operator_functions* operator->() const { return &of_; }

 private:
  treadle_operator_functions of_;
};

const treadle_node* wrap(const ir::NodeInfo* node) {
  return reinterpret_cast<const treadle_node*>(node);
}
const ir::NodeInfo& unwrap(const treadle_node* node) {
  return *reinterpret_cast<const ir::NodeInfo*>(node);
}
const treadle_attribute* wrap(const ir::Attribute* attribute) {
  return reinterpret_cast<const treadle_attribute*>(attribute);
}
const ir::Attribute& unwrap(const treadle_attribute* attribute) {
  return *reinterpret_cast<const ir::Attribute*>(attribute);
}

}  // namespace

// Inputs and outputs of a call are values in the engine's lists. The layout of a treadle_value is that of its only
// member, so a pointer to such a value is a handle.
struct treadle_call {
  ComputeContext& context;
};
static_assert(sizeof(treadle_value) == sizeof(AnyValue));

struct treadle_inference {
  InferContext& context;
  std::vector<std::unique_ptr<treadle_value>> contents;  // made on request
};

namespace {

class Kernel : public CustomKernel {
 public:
  Kernel(std::shared_ptr<const Functions> functions, void* kernel)
      : functions_(std::move(functions)), kernel_(kernel) {}
  ~Kernel() override {
    if ((*functions_)->make_kernel && (*functions_)->free_kernel) (*functions_)->free_kernel(kernel_);
  }
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  Status compute(ComputeContext& context) const override {
    treadle_call call{context};
    return from_c((*functions_)->compute(kernel_, &call));
  }
  Status infer(InferContext& context) const {
    if (!(*functions_)->infer) return {};
    treadle_inference inference{context, {}};
    return from_c((*functions_)->infer(kernel_, &inference));
  }

 private:
  std::shared_ptr<const Functions> functions_;
  void* kernel_;
};

class Operator : public CustomOperator {
 public:
  explicit Operator(std::shared_ptr<const Functions> functions) : functions_(std::move(functions)) {}

  Result<std::shared_ptr<const CustomKernel>> make_kernel(const ir::NodeInfo& node) const override {
    void* kernel = (*functions_)->context;
    if ((*functions_)->make_kernel) {
      TREADLE_TRY(from_c((*functions_)->make_kernel((*functions_)->context, wrap(&node), &kernel)));
    }
    return std::shared_ptr<const CustomKernel>(std::make_shared<Kernel>(functions_, kernel));
  }
  Status infer(const CustomKernel& kernel, InferContext& context) const override {
    return static_cast<const Kernel&>(kernel).infer(context);
  }

 private:
  std::shared_ptr<const Functions> functions_;
};

}  // namespace

struct treadle_operator {
  CustomRecord record;
  std::shared_ptr<const Functions> functions;
};

namespace {

Result<std::unique_ptr<OpDef>> make_op(const treadle_operator* op) {
  TREADLE_TRY(need({{"op", op}}));
  if (!op->functions) {
    return error(Code::kInvalidArgument, "operator {} has no functions: treadle_operator_set_functions gives them",
                 op->record.name);
  }
  CustomRecord record = op->record;
  record.implementation = std::make_shared<Operator>(op->functions);
  return make_custom_op(std::move(record));
}

treadle_status* add_formal(std::vector<CustomFormal> CustomRecord::* list, treadle_operator* op, const char* name,
                           const char* type, treadle_arity arity) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"op", op}}));
    constexpr Arity kArities[] = {Arity::kSingle, Arity::kOptional, Arity::kVariadic};
    TREADLE_TRY(require(static_cast<size_t>(arity) < std::size(kArities), "there is no such arity"));
    (op->record.*list).push_back({name ? name : "", type ? type : "", kArities[arity]});
    return {};
  });
}

template <class T>
T element_of(std::span<const T> list, size_t index) {
  return index < list.size() ? list[index] : T();
}

}  // namespace

extern "C" {

treadle_status* treadle_status_create(treadle_code code, const char* message) {
  return to_c(Status(code_of(code), message ? message : ""));
}

treadle_status* treadle_operator_create(const char* domain, const char* name, int since, treadle_operator** out) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"name", name}, {"out", out}}));
    auto made = std::make_unique<treadle_operator>();
    made->record.domain = domain ? domain : "";
    made->record.name = name;
    made->record.since = since;
    *out = made.release();
    return {};
  });
}

void treadle_operator_free(treadle_operator* op) {
  delete op;
}

treadle_status* treadle_operator_input(treadle_operator* op, const char* name, const char* type, treadle_arity arity) {
  return add_formal(&CustomRecord::inputs, op, name, type, arity);
}

treadle_status* treadle_operator_output(treadle_operator* op, const char* name, const char* type, treadle_arity arity) {
  return add_formal(&CustomRecord::outputs, op, name, type, arity);
}

treadle_status* treadle_operator_attribute(treadle_operator* op, const char* name, bool required) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"op", op}, {"name", name}}));
    op->record.attributes.emplace_back(name, required);
    return {};
  });
}

void treadle_operator_any_attributes(treadle_operator* op, bool any) {
  if (op) op->record.any_attributes = any;
}

void treadle_operator_pure(treadle_operator* op, bool pure) {
  if (op) op->record.pure = pure;
}

treadle_status* treadle_operator_set_functions(treadle_operator* op, const treadle_operator_functions* functions) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"op", op}, {"functions", functions}}));
    if (functions->size != sizeof *functions) {
      return error(Code::kInvalidArgument,
                   "functions->size is {}, expected {}: sizeof(treadle_operator_functions) of the library's treadle.h",
                   functions->size, sizeof *functions);
    }
    TREADLE_TRY(need({{"functions->compute", functions->compute}}));
    op->functions = std::make_shared<Functions>(*functions);
    return {};
  });
}

treadle_status* treadle_operator_register(const treadle_operator* op) {
  return guarded([&]() -> Status {
    TREADLE_ASSIGN(std::unique_ptr<OpDef> made, make_op(op));
    return add_op(std::move(made));
  });
}

treadle_status* treadle_options_add_operator(treadle_options* options, const treadle_operator* op) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"options", options}, {"op", op}}));
    TREADLE_ASSIGN(std::unique_ptr<OpDef> made, make_op(op));
    options->options.operators.push_back(std::move(made));
    return {};
  });
}

// ---- Nodes and attributes

treadle_text treadle_node_path(const treadle_node* node) {
  if (!node) return {"", 0};
  const std::string_view path = unwrap(node).name.view();
  return {path.data(), path.size()};
}
const char* treadle_node_operator(const treadle_node* node) {
  return node ? unwrap(node).op->name.c_str() : nullptr;
}
const char* treadle_node_domain(const treadle_node* node) {
  return node ? unwrap(node).op->domain.c_str() : nullptr;
}
size_t treadle_node_input_count(const treadle_node* node) {
  return node ? unwrap(node).input_count : 0;
}
size_t treadle_node_output_count(const treadle_node* node) {
  return node ? unwrap(node).output_count : 0;
}
size_t treadle_node_attribute_count(const treadle_node* node) {
  return node ? unwrap(node).attributes.all().size() : 0;
}
const treadle_attribute* treadle_node_attribute_at(const treadle_node* node, size_t index) {
  if (!node) return nullptr;
  const auto& all = unwrap(node).attributes.all();
  return index < all.size() ? wrap(&all[index]) : nullptr;
}
const treadle_attribute* treadle_node_attribute(const treadle_node* node, const char* name) {
  return node && name ? wrap(unwrap(node).attributes.find(name)) : nullptr;
}

const char* treadle_attribute_name(const treadle_attribute* attribute) {
  return attribute ? unwrap(attribute).name.c_str() : nullptr;
}
int treadle_attribute_kind(const treadle_attribute* attribute) {
  return attribute ? static_cast<int>(unwrap(attribute).kind) : 0;
}

size_t treadle_attribute_size(const treadle_attribute* attribute) {
  if (!attribute) return 0;
  const ir::Attribute& a = unwrap(attribute);
  switch (a.kind) {
    case ir::AttributeKind::kFloats:
      return a.as_floats().size();
    case ir::AttributeKind::kInts:
      return a.as_ints().size();
    case ir::AttributeKind::kStrings:
      return a.as_strings().size();
    case ir::AttributeKind::kTensors:
      return a.as_tensors().size();
    default:
      return 1;
  }
}

int64_t treadle_attribute_int(const treadle_attribute* attribute, size_t index) {
  if (!attribute) return 0;
  const ir::Attribute& a = unwrap(attribute);
  if (a.kind == ir::AttributeKind::kInts) return element_of(a.as_ints(), index);
  return a.kind == ir::AttributeKind::kInt && index == 0 ? a.as_int() : 0;
}

float treadle_attribute_float(const treadle_attribute* attribute, size_t index) {
  if (!attribute) return 0;
  const ir::Attribute& a = unwrap(attribute);
  if (a.kind == ir::AttributeKind::kFloats) return element_of(a.as_floats(), index);
  return a.kind == ir::AttributeKind::kFloat && index == 0 ? a.as_float() : 0;
}

treadle_text treadle_attribute_text(const treadle_attribute* attribute, size_t index) {
  if (!attribute) return {"", 0};
  const ir::Attribute& a = unwrap(attribute);
  const std::string* text = nullptr;
  if (a.kind == ir::AttributeKind::kStrings && index < a.as_strings().size()) text = &a.as_strings()[index];
  if (a.kind == ir::AttributeKind::kString && index == 0) text = &a.as_string();
  return text ? treadle_text{text->data(), text->size()} : treadle_text{"", 0};
}

treadle_status* treadle_attribute_tensor(const treadle_attribute* attribute, size_t index, treadle_value** out) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"attribute", attribute}, {"out", out}}));
    const ir::Attribute& a = unwrap(attribute);
    const Tensor* tensor = nullptr;
    if (a.kind == ir::AttributeKind::kTensors && index < a.as_tensors().size()) tensor = &a.as_tensors()[index];
    if (a.kind == ir::AttributeKind::kTensor && index == 0) tensor = &a.as_tensor();
    if (!tensor) return error(Code::kInvalidArgument, "attribute \"{}\" has no tensor {}", a.name, index);
    *out = new_value(AnyValue(*tensor));
    return {};
  });
}

// ---- Inference

const treadle_node* treadle_inference_node(const treadle_inference* inference) {
  return inference ? wrap(&inference->context.node) : nullptr;
}

const treadle_type* treadle_inference_input(const treadle_inference* inference, size_t index) {
  return inference && inference->context.has_input(index) ? wrap(&inference->context.input(index)) : nullptr;
}

const treadle_value* treadle_inference_contents(const treadle_inference* inference, size_t index) {
  const Tensor* const known = inference ? inference->context.value(index) : nullptr;
  if (!known) return nullptr;
  try {
    auto& made = const_cast<treadle_inference*>(inference)->contents;
    made.resize(std::max(made.size(), index + 1));
    if (!made[index]) made[index].reset(new_value(AnyValue(*known)));
    return made[index].get();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

treadle_status* treadle_inference_set_output(treadle_inference* inference, size_t index, int element,
                                             const int64_t* dims, const char* const* symbols, size_t rank) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"inference", inference}, {"dims", dims || rank == 0}}));
    InferContext& context = inference->context;
    if (index >= context.outputs.size()) return error(Code::kInvalidArgument, "the node has no output {}", index);
    ElementType type = element == 0 ? context.outputs[index].element : element_type_from_number(element);
    if (type == ElementType::kUndefined) {
      return error(Code::kInvalidArgument, "expected the element type of output {}, found {}", index, element);
    }
    Shape shape;
    for (size_t i = 0; i < rank; ++i) {
      if (dims[i] >= 0) {
        shape.push_back(dims[i]);
      } else {
        shape.push_back(symbols && symbols[i] ? Dim::symbol(symbols[i]) : Dim::unknown());
      }
    }
    context.set_output(index, type, std::move(shape));
    return {};
  });
}

treadle_status* treadle_inference_set_like(treadle_inference* inference, size_t output, size_t input) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"inference", inference}}));
    InferContext& context = inference->context;
    if (output >= context.outputs.size()) return error(Code::kInvalidArgument, "the node has no output {}", output);
    if (context.has_input(input)) context.set_output(output, context.input(input));
    return {};
  });
}

// ---- Calls

const treadle_node* treadle_call_node(const treadle_call* call) {
  return call ? wrap(&call->context.node) : nullptr;
}

const treadle_value* treadle_call_input(const treadle_call* call, size_t index) {
  if (!call || !call->context.has_input(index)) return nullptr;
  return reinterpret_cast<const treadle_value*>(&call->context.inputs[index]);
}

treadle_status* treadle_call_allocate(treadle_call* call, size_t index, int element, const int64_t* dims, size_t rank,
                                      treadle_value** tensor) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"call", call}, {"dims", dims || rank == 0}}));
    ComputeContext& context = call->context;
    if (index >= context.outputs.size()) return error(Code::kInvalidArgument, "the node has no output {}", index);
    const ElementType type = element_type_from_number(element);
    if (type == ElementType::kUndefined) return error(Code::kInvalidArgument, "there is no element type {}", element);
    for (size_t i = 0; i < rank; ++i) {
      if (dims[i] < 0)
        return error(Code::kInvalidArgument, "output {} has the size {} along axis {}", index, dims[i], i);
    }
    TREADLE_ASSIGN(Tensor * made, context.allocate(index, type, Dims(dims, dims + rank)));
    // Output memory starts as zeros, so that an operator that leaves elements unset does not expose what another run
    // left in memory.
    if (!is_string(type)) std::memset(made->mutable_raw(), 0, made->byte_size());
    if (tensor) *tensor = reinterpret_cast<treadle_value*>(&context.outputs[index]);
    return {};
  });
}

treadle_status* treadle_call_set(treadle_call* call, size_t index, const treadle_value* value) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"call", call}, {"value", value}}));
    if (index >= call->context.outputs.size()) return error(Code::kInvalidArgument, "the node has no output {}", index);
    call->context.outputs[index] = value->value;
    return {};
  });
}

}  // extern "C"

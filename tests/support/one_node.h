#pragma once
// One node of an operator for tests: its inference with types and symbolic contents, its kernel on raw operands.

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "op/registry.h"

namespace treadle::testing_support {

// The node's record, version and attributes; the version's defaults are filled in.
inline ir::NodeInfo make_node(const char* op, int version, size_t inputs, size_t outputs,
                              std::vector<ir::Attribute> attributes = {}) {
  ir::NodeInfo node;
  node.op = &require_op(op);
  node.version = node.op->version_for(version);
  node.input_count = static_cast<uint32_t>(inputs);
  node.output_count = static_cast<uint32_t>(outputs);
  for (const AttributeDef& a : node.version->attributes) {
    if (a.has_default()) node.attributes.set(a.default_value);
  }
  for (ir::Attribute& a : attributes) node.attributes.set(std::move(a));
  EXPECT_TRUE(parse_attributes(node).ok());
  return node;
}

struct Inferred {
  Status status;
  Type type;  // of output 0
  bool has_symbols = false;
  Shape symbols;  // contents of output 0

  std::string to_string() const { return status.ok() ? type.to_string() : status.message(); }
};

// An input: its type (kUnknown: left out), and its contents as a tensor or as Dims, where known.
struct Input {
  Type type;
  const Tensor* value = nullptr;
  const Shape* symbols = nullptr;

  Input(Type t, const Tensor* v = nullptr, const Shape* s = nullptr) : type(std::move(t)), value(v), symbols(s) {}
};

inline Inferred infer(const char* op, int version, std::vector<Input> inputs,
                      std::vector<ir::Attribute> attributes = {}) {
  const ir::NodeInfo node = make_node(op, version, inputs.size(), 1, std::move(attributes));
  std::vector<const Type*> types;
  std::vector<const Tensor*> values;
  std::vector<const Shape*> symbols;
  for (const Input& in : inputs) {
    types.push_back(in.type.is_known() ? &in.type : nullptr);
    values.push_back(in.value);
    symbols.push_back(in.symbols);
  }
  Inferred result;
  InferContext context{node,
                       types,
                       values,
                       symbols,
                       std::span(&result.type, 1),
                       std::span(&result.symbols, 1),
                       std::span(&result.has_symbols, 1)};
  result.status = node.op->infer(context);
  return result;
}

// Operands of a kernel that is prepared and run once.
struct KernelRun {
  std::vector<Operand> inputs, outputs;
  std::vector<void*> slots;

  template <class T>
  void input(ElementType type, Dims dims, Dims strides, const T* data, bool constant = false) {
    inputs.push_back({type, std::move(dims), std::move(strides), constant ? data : nullptr});
    slots.push_back(const_cast<T*>(data));
  }
  template <class T>
  void output(ElementType type, Dims dims, T* data) {
    const Dims strides = contiguous_strides(dims);
    outputs.push_back({type, std::move(dims), strides, nullptr});
    slots.push_back(data);
  }

  // The kernel's code; a preparation that fails is a Status.
  Result<uint32_t> run(const char* op, int version, std::vector<ir::Attribute> attributes = {}) {
    const ir::NodeInfo node = make_node(op, version, inputs.size(), outputs.size(), std::move(attributes));
    StateArena arena;
    PackCache packs;
    PrepareContext context{node, inputs, outputs, arena, packs, {}, 0};
    TREADLE_TRY(node.op->prepare(context));
    const BufferRef scratch = BufferRef::allocate(context.scratch_bytes + 64);
    slots.push_back(scratch->data());
    slots.push_back(nullptr);  // kept memory for a later run
    std::vector<uint32_t> operands(slots.size());
    for (uint32_t i = 0; i < operands.size(); ++i) operands[i] = i;
    return context.kernel.run(context.kernel.state, slots.data(), operands.data());
  }
};

}  // namespace treadle::testing_support

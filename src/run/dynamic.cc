// Nodes whose shapes are known only at run time. A guarded node looks up the shapes at hand in its inline cache. When
// the cache has a kernel for the shapes, the kernel runs at once, and writes to the memory of the node's last result
// where nobody else holds that result.
#include "run/dynamic.h"

#include <algorithm>
#include <cstring>

#include "op/op_def.h"

namespace treadle::run {

using plan::DynamicNode;
using plan::OpCode;

Status DynamicNodes::run(const plan::Instruction& in) {
  if (in.code == OpCode::kMove) {
    const auto [from, to] = program_.moves[in.index];
    if (frame_.is_plain_handle(from)) return frame_.set_handle(to, frame_.handle(from));
    TREADLE_ASSIGN(AnyValue value, frame_.value_of(from, program_.slots[from].type));
    return frame_.set_handle(to, std::move(value));
  }
  const DynamicNode& node = program_.dynamic[in.index];
  TREADLE_ASSIGN(const bool done, run_kernel(node, in.index));
  if (!done) TREADLE_TRY(in.code == OpCode::kGuarded ? run_guarded(node, in.index) : run_compute(node));
  frame_.release(node.releases, node.in_loop);
  return {};
}

// --- dynamic kernels -------------------------------------------------------------------------------------------------

// Operands of this many bytes are better off with a prepared kernel, which may run on several threads and be stopped.
constexpr size_t kMostBytes = 1 << 16;

class DynamicNodes::Call final : public DynamicCall {
 public:
  Call(DynamicNodes& nodes, const Operands& operands)
      : DynamicCall(operands.at), nodes_(nodes), sources_(operands.sources), results_(operands.results) {}

  void* make(size_t i, std::span<const int64_t> dims) override {
    const Operands::Source& result = results_[i];
    int64_t count = 1;
    for (const int64_t size : dims) {
      if (size < 0 || __builtin_mul_overflow(count, size, &count)) return nullptr;
    }
    if (static_cast<size_t>(count) > kMostBytes / result.width) return nullptr;
    const size_t bytes = static_cast<size_t>(count) * result.width;
    bytes_ += bytes;
    return nodes_.frame_.renew_for(result.slot, result.type, dims, count, bytes);
  }

  bool share(size_t i, size_t from, std::span<const int64_t> dims) override {
    // Short values are copied: whoever shares memory keeps the next trip from writing to it.
    constexpr size_t kMostCopied = 4096;
    const size_t bytes = static_cast<size_t>(inputs[from].count) * results_[i].width;
    if (bytes <= kMostCopied) {
      void* to = make(i, dims);
      if (to && bytes > 0) std::memcpy(to, inputs[from].data, bytes);
      return to != nullptr;
    }
    Frame& frame = nodes_.frame_;
    const uint32_t base = sources_[from].slot;
    return sources_[from].is_handle &&
           frame.set_handle(results_[i].slot, AnyValue(frame.handle(base).tensor().reshaped(Dims(dims)))).ok();
  }

  size_t bytes() const { return bytes_; }

 private:
  DynamicNodes& nodes_;
  std::span<const Operands::Source> sources_, results_;
  size_t bytes_ = 0;  // of all that was made
};

DynamicNodes::Operands DynamicNodes::first_operands(const DynamicNode& node) const {
  Operands made;
  made.at.resize(node.inputs.size());
  made.planned.resize(node.inputs.size());
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const uint32_t s = node.inputs[i];
    if (s == plan::kNoSlot) {
      made.sources.emplace_back();
      continue;
    }
    const Type& type = node.node->inputs[i]->type;
    made.sources.push_back({s, type.element, byte_width(type.element), frame_.is_handle(s)});
    if (frame_.is_handle(s)) {
      made.handles.push_back(static_cast<uint32_t>(i));
      continue;
    }
    made.planned[i] = known_dims(type.shape);
    made.at[i].dims = &made.planned[i];
    made.at[i].count = element_count_unchecked(made.planned[i]);
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const ElementType type = node.node->outputs[i]->type.element;
    made.results.push_back({node.outputs[i], type, byte_width(type), true});
  }
  return made;
}

// False where one is no row-major tensor of the type that the kernel was made for. `bytes`: of those of run-time size.
bool DynamicNodes::find_operands(Operands& operands, size_t& bytes) const {
  const size_t count = operands.at.size();
  for (size_t i = 0; i < count; ++i) operands.at[i].data = frame_.address(operands.sources[i].slot);
  for (const uint32_t i : operands.handles) {
    const Operands::Source& source = operands.sources[i];
    const AnyValue& value = frame_.handle(source.slot);
    if (!value.is_tensor() || value.tensor().type() != source.type || frame_.strides_of(source.slot)) return false;
    DynamicOperand& operand = operands.at[i];
    operand.dims = &value.tensor().dims();
    operand.count = value.tensor().element_count();
    bytes += static_cast<size_t>(operand.count) * source.width;
  }
  return true;
}

Result<bool> DynamicNodes::run_kernel(const DynamicNode& node, uint32_t index) {
  if (!node.kernel.run || node.growth != plan::Growth::kNone) return false;
  Operands& operands = operands_[index];
  if (operands.results.empty()) operands = first_operands(node);
  size_t bytes = 0;
  if (!find_operands(operands, bytes) || bytes > kMostBytes) return false;
  Call call(*this, operands);
  const uint32_t failed = node.kernel.run(node.kernel.state, call);
  if (failed == kNotDynamic) return false;
  if (failed != 0) return kernel_status(failed);
  TREADLE_TRY(polls_.charge(bytes + call.bytes()));
  return true;
}

bool DynamicNodes::all_numeric_tensors(const DynamicNode& node) const {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const uint32_t s = node.inputs[i];
    if (s == plan::kNoSlot) continue;
    if (frame_.is_handle(s)) {
      if (!frame_.handle(s).is_tensor() || is_string(frame_.handle(s).tensor().type())) return false;
    } else if (!node.node->inputs[i]->type.is_tensor() || is_string(node.node->inputs[i]->type.element)) {
      return false;
    }
  }
  for (const ir::Value* v : node.node->outputs) {
    if (v && is_string(v->type.element)) return false;  // Cast to strings
  }
  return true;
}

Status DynamicNodes::charge_operands(const DynamicNode& node) {
  size_t bytes = 0;
  const auto add = [&](uint32_t s) {
    if (s != plan::kNoSlot && frame_.handle(s).is_tensor()) bytes += frame_.handle(s).tensor().byte_size();
  };
  for (const uint32_t s : node.inputs) add(s);
  for (const uint32_t s : node.outputs) add(s);
  return polls_.charge(bytes);
}

Status DynamicNodes::run_guarded(const DynamicNode& node, uint32_t index) {
  if (!all_numeric_tensors(node)) {
    if (!node.node->op->compute) {
      return error(Code::kNotImplemented, "operator {}-{} cannot be run on these types", node.node->op->name,
                   node.node->version->since);
    }
    return run_compute(node);
  }
  if (node.node->op->appends) {
    TREADLE_ASSIGN(const bool done, appends_.append(node));
    if (done) return {};
  }
  TREADLE_ASSIGN(Prepared* const prepared, sizes_.prepared_for(index));
  TREADLE_TRY(run_prepared(node, *prepared));
  return charge_operands(node);
}

Status DynamicNodes::run_prepared(const DynamicNode& node, Prepared& prepared) {
  const OpDef& op = *node.node->op;
  if (op.alias_input >= 0) {
    const uint32_t from = node.inputs[static_cast<size_t>(op.alias_input)];
    if (frame_.is_handle(from)) {
      return frame_.set_handle(node.outputs[0], AnyValue(frame_.handle(from).tensor().reshaped(prepared.out[0].dims)));
    }
  }
  TREADLE_ASSIGN(std::byte* const scratch, memory_.scratch(prepared.scratch_bytes));
  InlineVector<void*, 16> slots;
  InlineVector<uint32_t, 16> operands;
  for (uint32_t s : node.inputs) slots.push_back(frame_.address(s));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const uint32_t s = node.outputs[i];
    if (s == plan::kNoSlot) {
      slots.push_back(nullptr);
      continue;
    }
    TREADLE_TRY(frame_.renew(s, prepared.out[i].type, prepared.out[i].dims));
    slots.push_back(frame_.address(s));
  }
  slots.push_back(scratch);
  slots.push_back(prepared.kept.data());
  for (uint32_t i = 0; i < slots.size(); ++i) operands.push_back(i);
  if (const uint32_t failed = prepared.kernel.run(prepared.kernel.state, slots.data(), operands.data())) {
    return kernel_status(failed);
  }
  return {};
}

// What is read where it lies: `compute` reads nothing behind its end, and what it gives is kept apart below.
Result<AnyValue> DynamicNodes::input_of(const DynamicNode& node, size_t i, bool borrows) {
  const uint32_t s = node.inputs[i];
  const Type& type = node.node->inputs[i]->type;
  if (!borrows || frame_.is_handle(s) || program_.slots[s].storage == plan::Storage::kConstant) {
    return frame_.value_of(s, type);
  }
  return AnyValue(Tensor::from_buffer(type.element, known_dims(type.shape), BufferRef(), frame_.address(s)));
}

Status DynamicNodes::run_compute(const DynamicNode& node) {
  const ir::Node& info = *node.node;
  InlineVector<AnyValue, 8> inputs(node.inputs.size());
  InlineVector<AnyValue, 4> outputs(node.outputs.size());  // at first what they were before
  const bool borrows = std::all_of(info.outputs.begin(), info.outputs.end(),
                                   [](const ir::Value* v) { return !v || v->type.is_tensor(); });
  for (size_t i = 0; i < inputs.size(); ++i) {
    const uint32_t s = node.inputs[i];
    if (s == plan::kNoSlot) continue;
    if (frame_.is_plain_handle(s)) {
      inputs[i] = frame_.handle(s);
    } else {
      TREADLE_ASSIGN(inputs[i], input_of(node, i, borrows));
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const uint32_t s = node.outputs[i];
    if (s == plan::kNoSlot || !frame_.is_handle(s)) continue;
    AnyValue& old = frame_.handle(s);
    if (old.is_tensor() && old.tensor().byte_size() < RunMemory::kLargeBytes) outputs[i] = std::move(old);
  }
  ComputeContext context{info, inputs, {outputs.data(), outputs.size()}};
  {
    if (memory_.is_limited()) memory_.drop_spare();
    const MemoryScope counted(memory_.account());
    TREADLE_TRY(within_memory([&] { return info.op->compute(context); }));
    for (AnyValue& value : outputs) {
      if (!value.is_tensor() || value.tensor().buffer() || value.tensor().element_count() == 0) continue;
      TREADLE_ASSIGN(Tensor own, value.tensor().clone());  // it was passed on
      value = AnyValue(std::move(own));
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    TREADLE_TRY(frame_.set_handle(node.outputs[i], std::move(outputs[i])));
  }
  return charge_operands(node);
}

}  // namespace treadle::run

// Nodes whose shapes are known only at run time. A guarded node looks up the shapes at hand in its inline cache. When
// the cache has a kernel for the shapes, the kernel runs at once, and writes to the memory of the node's last result
// when no other reference to that result exists.
#include "run/dynamic.h"

#include <algorithm>

#include "op/lower.h"
#include "op/op_def.h"
#include "reference/interpreter.h"

namespace treadle::run {

using plan::DynamicNode;
using plan::OpCode;

Status DynamicNodes::run(const plan::Instruction*& in, const plan::Instruction* end) {
  size_t charged = 0;
  for (; in != end; ++in) {
    if (in->code == OpCode::kMove) {
      TREADLE_TRY(move(program_.moves[in->index]));
      continue;
    }
    const DynamicNode& node = program_.dynamic[in->index];
    if (node.checks) {
      TREADLE_TRY(sizes_.prepared_for(in->index).status());
      frame_.release(node.releases, node.in_loop);
      continue;
    }
    Bytes bytes;
    const uint32_t failed = run_kernel(node, in->index, bytes);
    if (failed == 0) {
      const size_t all = bytes.read + bytes.made;
      charged += node.kernel.takes_texts ? bytes.made : all;  // a text kernel reads only parts of its tables, so its
                                                              // inputs do not count
      // Small inputs stay for the next iteration, which writes into their memory.
      if (!node.in_loop || all >= RunMemory::kLargeBytes) frame_.release(node.releases, node.in_loop);
      continue;
    }
    if (failed != kNotDynamic) return kernel_status(failed);
    TREADLE_TRY(run_node(node, in->code, in->index));
    frame_.release(node.releases, node.in_loop);
  }
  return polls_.charge(charged);
}

Status DynamicNodes::run_node(const DynamicNode& node, OpCode code, uint32_t index) {
  if (code == OpCode::kGuarded) return run_guarded(node, index);
  return node.node->op->custom ? run_custom(node, index) : run_compute(node, index);
}

Status DynamicNodes::move(const plan::Move& move) {
  if (move.takes && !frame_.has_layouts()) {
    frame_.exchange(move.to, move.from);
    return {};
  }
  if (frame_.is_plain_handle(move.from)) return frame_.set_handle(move.to, frame_.handle(move.from));
  TREADLE_ASSIGN(AnyValue value, frame_.value_of(move.from, program_.slots[move.from].type));
  return frame_.set_handle(move.to, std::move(value));
}

// --- dynamic kernels -------------------------------------------------------------------------------------------------

class DynamicNodes::Call final : public DynamicCall {
 public:
  Call(Frame& frame, const DynamicNode& node, const Operands& operands)
      : DynamicCall(operands.at, operands.results), frame_(frame), node_(node), operands_(operands) {}

 private:
  void* make_elsewhere(size_t i, std::span<const int64_t> dims) override {
    return frame_.renew_for(node_.outputs[i], operands_.results[i].type, dims);
  }
  bool share_memory(size_t i, size_t from, std::span<const int64_t> dims) override {
    const Operands::Source& source = operands_.sources[from];
    return source.value &&
           frame_.set_handle(node_.outputs[i], AnyValue(source.value->tensor().reshaped(Dims(dims)))).ok();
  }

  Frame& frame_;
  const DynamicNode& node_;
  const Operands& operands_;
};

DynamicNodes::Operands DynamicNodes::first_operands(const DynamicNode& node) {
  Operands made;
  made.at.resize(node.inputs.size());
  made.planned.resize(node.inputs.size());
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    Operands::Source& source = made.sources.emplace_back();
    const uint32_t s = node.inputs[i];
    if (s == plan::kNoSlot) continue;
    const Type& type = node.node->inputs[i]->type;
    const bool is_handle = frame_.is_handle(s);
    source = {s, frame_.slots() + s, is_handle ? &frame_.handle(s) : nullptr, type.element, byte_width(type.element)};
    if (is_handle) continue;
    made.planned[i] = known_dims(type.shape);
    made.at[i].dims = &made.planned[i];
    made.at[i].count = element_count_unchecked(made.planned[i]);
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const uint32_t s = node.outputs[i];
    const ElementType type = node.node->outputs[i]->type.element;
    made.results.push_back(
        {&frame_.handle(s).tensor(), frame_.slots() + s, type, byte_width(type), frame_.is_fixed(s)});
  }
  return made;
}

// False if an operand is not a row-major tensor of the type that the kernel was made for. Adds the sizes of operands of
// run-time size to `bytes`.
bool DynamicNodes::find_operands(Operands& operands, size_t& bytes) const {
  DynamicOperand* operand = operands.at.data();
  for (const Operands::Source& source : operands.sources) {
    if (source.address) operand->data = *source.address;
    if (const AnyValue* value = source.value) {
      const Tensor& tensor = value->tensor();
      if (!value->is_tensor() || tensor.type() != source.type || frame_.strides_of(source.slot)) return false;
      operand->dims = &tensor.dims();
      operand->count = tensor.element_count();
      bytes += static_cast<size_t>(operand->count) * source.width;
    }
    ++operand;
  }
  return true;
}

uint32_t DynamicNodes::run_kernel(const DynamicNode& node, uint32_t index, Bytes& bytes) {
  if (!node.kernel.run || node.growth != plan::Growth::kNone) return kNotDynamic;
  Operands& operands = operands_[index];
  if (operands.results.empty()) operands = first_operands(node);
  if (!find_operands(operands, bytes.read)) return kNotDynamic;
  const bool texts = node.kernel.takes_texts;
  if (!texts && bytes.read > DynamicCall::kMostBytes) return kNotDynamic;
  Call call(frame_, node, operands);
  const uint32_t failed = texts ? run_text_kernel(node.kernel, call) : node.kernel.run(node.kernel.state, call);
  bytes.made = call.bytes_made();
  return failed;
}

// A text kernel allocates its texts itself. If the account refuses memory, `compute` runs instead, is refused as well,
// and reports the error.
uint32_t DynamicNodes::run_text_kernel(const DynamicKernel& kernel, DynamicCall& call) {
  const MemoryScope counted(memory_.account());
  try {
    return kernel.run(kernel.state, call);
  } catch (const MemoryRefused&) {
    return kNotDynamic;
  }
}

// --- for native code -------------------------------------------------------------------------------------------------

bool DynamicNodes::find_sizes(std::span<const plan::NativeValue> values, int64_t* sizes) const {
  for (const plan::NativeValue& wanted : values) {
    const DynamicNode& node = node_at(wanted.pc);
    const uint32_t s = node.inputs[wanted.operand];
    if (!frame_.handle(s).is_tensor()) return false;
    const Tensor& tensor = frame_.handle(s).tensor();
    if (tensor.type() != program_.slots[s].type.element || tensor.dims().size() != wanted.rank) return false;
    if (!wanted.append && tensor.byte_size() > DynamicCall::kMostBytes) return false;
    if (frame_.strides_of(s)) return false;
    for (const int64_t size : tensor.dims()) *sizes++ = size;
  }
  return true;
}

bool DynamicNodes::make_result(const plan::NativeValue& result, std::span<const int64_t> sizes, void*& place) {
  const DynamicNode& node = node_at(result.pc);
  const uint32_t s = node.outputs[result.operand];
  const ElementType type = program_.slots[s].type.element;
  int64_t count = 1;
  for (const int64_t size : sizes) {
    if (size < 0 || __builtin_mul_overflow(count, size, &count)) return false;
  }
  const size_t width = byte_width(type);
  const auto most = static_cast<int64_t>(DynamicCall::kMostBytes);
  if (count > most || static_cast<size_t>(count) * width > DynamicCall::kMostBytes) return false;
  Tensor& old = frame_.handle(s).tensor();
  const bool fits = old.type() == type && (!frame_.is_fixed(s) || std::ranges::equal(sizes, old.dims()));
  if (fits && old.rewrite(sizes, count, static_cast<size_t>(count) * width)) {
    place = old.mutable_raw();
    frame_.point(s, place);
    return true;
  }
  place = frame_.renew_for(s, type, sizes);
  return place != nullptr;
}

Result<bool> DynamicNodes::make_results(std::span<const plan::NativeValue> results, const int64_t* sizes, int64_t bytes,
                                        void** places) {
  // Appending comes last: when native code gives up after an append, the interpreter has to copy the value before it
  // can append again.
  for (const bool appends : {false, true}) {
    const int64_t* next = sizes;
    for (size_t i = 0; i < results.size(); ++i) {
      const plan::NativeValue& result = results[i];
      const std::span<const int64_t> own{next, result.rank};
      next += result.rank;
      if ((result.append != 0) != appends) continue;
      if (appends) {
        TREADLE_ASSIGN(places[i], appends_.make_room(node_at(result.pc), Dims(own)));
      } else if (!make_result(result, own, places[i])) {
        return false;
      }
    }
  }
  TREADLE_TRY(polls_.charge(static_cast<size_t>(bytes)));
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
    return run_compute(node, index);
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

// `borrows`: an operand in planned memory is read where it lies, without a copy. That is safe because `compute` reads
// nothing past the operand's end, and because compute() below copies results that share the operand's memory.
Result<AnyValue> DynamicNodes::input_of(const DynamicNode& node, size_t i, bool borrows) {
  const uint32_t s = node.inputs[i];
  const Type& type = node.node->inputs[i]->type;
  if (!borrows || frame_.is_handle(s) || program_.slots[s].storage == plan::Storage::kConstant) {
    return frame_.value_of(s, type);
  }
  return AnyValue(Tensor::from_buffer(type.element, known_dims(type.shape), BufferRef(), frame_.address(s)));
}

// Sets the values that `compute` reads. Constants stay set from the first call on.
Status DynamicNodes::set_arguments(const DynamicNode& node, Arguments& values) {
  const auto& made = node.node->outputs;
  values.inputs.resize(node.inputs.size());
  values.outputs.resize(node.outputs.size());
  const bool borrows = std::ranges::all_of(made, [](const ir::Value* v) { return !v || v->type.is_tensor(); });
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const uint32_t s = node.inputs[i];
    if (s == plan::kNoSlot || !values.inputs[i].is_none()) continue;
    if (frame_.is_plain_handle(s)) {
      values.inputs[i] = frame_.handle(s);
    } else {
      TREADLE_ASSIGN(values.inputs[i], input_of(node, i, borrows));
    }
  }
  return {};
}

// Drops every value that the run changes, so that the node that makes the value next holds the only reference and can
// write in place.
void DynamicNodes::drop_arguments(const DynamicNode& node, Arguments& values) {
  for (size_t i = 0; i < values.inputs.size(); ++i) {
    const uint32_t s = node.inputs[i];
    if (s != plan::kNoSlot && program_.slots[s].storage != plan::Storage::kConstant) values.inputs[i] = {};
  }
  for (AnyValue& value : values.outputs) value = {};
}

Status DynamicNodes::run_compute(const DynamicNode& node, uint32_t index) {
  Arguments& values = arguments_[index];
  Status status = set_arguments(node, values);
  if (status.ok()) status = check_arguments(node, values.inputs);
  if (status.ok()) status = compute(node, values.inputs, values.outputs);
  drop_arguments(node, values);
  return status.ok() ? charge_operands(node) : std::move(status);
}

// No estimate covers an operator of the program's own, so limits are looked at before and after it.
Status DynamicNodes::run_custom(const DynamicNode& node, uint32_t index) {
  TREADLE_TRY(polls_.look());
  TREADLE_TRY(run_compute(node, index));
  return polls_.look();
}

namespace {

// Looks at limits between the nodes of a lowering.
class LimitsGuard final : public reference::Guard {
 public:
  explicit LimitsGuard(Polls& polls) : polls_(polls) {}
  Status iteration() override { return polls_.look(); }
  Status step() override { return polls_.look(); }

 private:
  Polls& polls_;
};

}  // namespace

// Lowers and runs a node whose lowering needs sizes that planning did not know.
Status DynamicNodes::lower_and_run(const ir::Node& node, std::span<const AnyValue> inputs,
                                   std::span<AnyValue> outputs) {
  bool wanted[64] = {};
  TREADLE_ASSERT(outputs.size() <= std::size(wanted));
  for (size_t i = 0; i < outputs.size(); ++i) wanted[i] = node.outputs[i] != nullptr;
  LimitsGuard guard(polls_);
  auto made = reference::run_node(node, inputs, std::span(wanted, outputs.size()), &guard);
  if (made.ok()) {
    std::ranges::move(std::move(made).value(), outputs.begin());
    return {};
  }
  // The caller names the node, so the name of the lowered part is dropped.
  const Status failed = std::move(made).status();
  return error(failed.code(), "{}", failed.message());
}

// Planning has run the node's inference on sizes that it knew. Inference of a node with other sizes runs here, since
// `compute` relies on checked sizes.
Status DynamicNodes::check_arguments(const DynamicNode& node, std::span<const AnyValue> inputs) {
  const ir::Node& info = *node.node;
  if (info.op->custom || !info.op->compute || !info.regions.empty()) return {};
  const auto is_known = [](const ir::Value* v) { return !v || v->type.is_concrete(); };
  if (std::ranges::all_of(info.inputs, is_known)) return {};
  return reference::infer_outputs(info, inputs).status();
}

Status DynamicNodes::compute(const DynamicNode& node, std::span<const AnyValue> inputs, std::span<AnyValue> outputs) {
  const ir::Node& info = *node.node;
  for (size_t i = 0; i < outputs.size(); ++i) {  // the memory of the last results, to be reused
    const uint32_t s = node.outputs[i];
    if (s == plan::kNoSlot || !frame_.is_handle(s)) continue;
    AnyValue& old = frame_.handle(s);
    if (old.is_tensor() && old.tensor().byte_size() < RunMemory::kLargeBytes) outputs[i] = std::move(old);
  }
  ComputeContext context{info, inputs, outputs};
  {
    if (memory_.is_limited()) memory_.drop_spare();
    const MemoryScope counted(memory_.account());
    TREADLE_TRY(within_memory(
        [&] { return info.op->compute ? info.op->compute(context) : lower_and_run(info, inputs, outputs); }));
    for (AnyValue& value : outputs) {
      if (!value.is_tensor() || value.tensor().buffer() || value.tensor().element_count() == 0) continue;
      TREADLE_ASSIGN(Tensor own, value.tensor().clone());  // the result shares the memory of an operand
      value = AnyValue(std::move(own));
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (info.outputs[i] && outputs[i].is_none()) return not_made(info, i);
    TREADLE_TRY(frame_.set_handle(node.outputs[i], std::move(outputs[i])));
  }
  return {};
}

}  // namespace treadle::run

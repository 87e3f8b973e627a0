// Nodes whose shapes are known only at run time. A guarded node looks up the shapes at hand in its inline cache. When
// the cache has a kernel for the shapes, the kernel runs at once, and writes to the memory of the node's last result
// where nobody else holds that result.
#include <algorithm>
#include <cstring>

#include "base/in_pieces.h"
#include "base/no_fork.h"
#include "base/uninterrupted.h"
#include "op/op_def.h"
#include "op/type_rules.h"
#include "run/context.h"

namespace treadle::run {

using plan::DynamicNode;
using plan::Storage;

namespace {

// A handle keeps smaller memory from trip to trip; larger buffers are shared through a free list (spare_).
constexpr size_t kLargeBytes = size_t{1} << 16;
constexpr size_t kMaxSpare = 8;

}  // namespace

Status Context::check_memory(size_t more, const Dims& dims) {
  if (account_->fits(more)) return {};
  spare_.clear();
  return account_->fits(more) ? Status() : account_->refusal(more, "a tensor of shape " + to_string(dims));
}

BufferRef Context::recycled(size_t bytes) {
  if (bytes < kLargeBytes) return {};
  for (BufferRef& spare : spare_) {
    if (spare->size() < bytes || spare->size() / 2 > bytes) continue;
    BufferRef memory = std::move(spare);
    spare = std::move(spare_.back());
    spare_.pop_back();
    return memory;
  }
  return {};
}

Result<BufferRef> Context::allocate_bytes(size_t bytes, const Dims& dims) {
  if (BufferRef memory = recycled(bytes)) return memory;
  TREADLE_TRY(check_memory(bytes, dims));
  ++allocations_;
  BufferRef memory = MemoryAccount::allocate(account_, bytes);
  if (!memory) return error(Code::kLimit, "no memory for a tensor of shape {} ({} bytes)", to_string(dims), bytes);
  return memory;
}

Result<Tensor> Context::allocate(ElementType type, const Dims& dims) {
  TREADLE_ASSIGN(const int64_t count, element_count(dims));
  size_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<size_t>(count), byte_width(type), &bytes) || bytes > (size_t{1} << 62)) {
    return error(Code::kLimit, "a tensor of shape {} does not fit into memory", to_string(dims));
  }
  if (is_string(type)) {
    ++allocations_;
    const MemoryScope counted(account_);
    return Tensor::allocate(type, dims);
  }
  TREADLE_ASSIGN(BufferRef memory, allocate_bytes(bytes, dims));
  return Tensor::from_buffer(type, dims, std::move(memory));
}

void Context::release_handles(const std::vector<uint32_t>& slots, bool in_loop) {
  for (const uint32_t s : slots) {
    AnyValue& value = handles_[s];
    if (in_loop && value.is_tensor()) {
      Tensor& tensor = value.tensor();
      if (tensor.byte_size() < kLargeBytes) continue;
      const bool whole = tensor.exclusive() && !is_string(tensor.type()) && tensor.raw() == tensor.buffer()->data();
      if (whole && spare_.size() < kMaxSpare) {
        tensor.buffer()->seal();
        spare_.push_back(tensor.buffer());
      }
    }
    value = {};
  }
}

Result<AnyValue> Context::value_of(uint32_t s, const Type& type) {
  const plan::Slot& slot = program_->slots[s];
  switch (slot.storage) {
    case Storage::kNull:
      return AnyValue();
    case Storage::kHandle:
      if (const Dims* strides = strides_of(s)) return gathered(handles_[s].tensor(), *strides);
      return handles_[s];
    case Storage::kConstant:
      return AnyValue(slot.constant);
    default:
      break;
  }
  TREADLE_ASSIGN(Tensor copy, allocate(type.element, known_dims(type.shape)));
  if (!copy_in_pieces(copy.mutable_raw(), slots_[s], copy.byte_size())) return stopped();
  return AnyValue(std::move(copy));
}

Status Context::set_handle(uint32_t s, AnyValue value) {
  if (s == plan::kNoSlot) return {};
  const Type& expected = program_->slots[s].type;
  if (value.is_tensor()) {
    const Tensor& t = value.tensor();
    // Kernels that were planned with known sizes read this memory.
    if (expected.is_concrete() && !(known_dims(expected.shape) == t.dims() && expected.element == t.type())) {
      return error(Code::kInternal, "planned for {}, found {}", expected.to_string(), value.type().to_string());
    }
    slots_[s] = const_cast<void*>(t.raw());
  } else {
    slots_[s] = nullptr;
  }
  if (!layouts_.empty()) layouts_[s].strides.clear();
  handles_[s] = std::move(value);
  return {};
}

const Dims& Context::dims_of(uint32_t s, const ir::Value& value, Dims& storage) const {
  if (program_->slots[s].storage == Storage::kHandle) return handles_[s].tensor().dims();
  storage = known_dims(value.type.shape);
  return storage;
}

bool Context::all_numeric_tensors(const DynamicNode& node) const {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const uint32_t s = node.inputs[i];
    if (s == plan::kNoSlot) continue;
    if (program_->slots[s].storage == Storage::kHandle) {
      if (!handles_[s].is_tensor() || is_string(handles_[s].tensor().type())) return false;
    } else if (!node.node->inputs[i]->type.is_tensor() || is_string(node.node->inputs[i]->type.element)) {
      return false;
    }
  }
  for (const ir::Value* v : node.node->outputs) {
    if (v && is_string(v->type.element)) return false;  // Cast to strings
  }
  return true;
}

uint64_t Context::digest_of_sizes(const DynamicNode& node) const {
  uint64_t digest = 0;
  auto add = [&](uint64_t word) {
    digest = (digest ^ word) * 0x9E37'79B9'7F4A'7C15u;
    digest ^= digest >> 32;
  };
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const uint32_t s = node.inputs[i];
    if (s == plan::kNoSlot || program_->slots[s].storage == Storage::kConstant) continue;
    const bool handle = program_->slots[s].storage == Storage::kHandle;
    if (handle) {
      const Dims& dims = handles_[s].tensor().dims();
      add(dims.size());
      for (const int64_t size : dims) add(static_cast<uint64_t>(size));
      if (const Dims* strides = strides_of(s)) {
        for (const int64_t stride : *strides) add(static_cast<uint64_t>(stride));
      }
    }
    if (i >= 64 || !(node.node->op->shape_inputs >> i & 1)) continue;
    const Type& planned = node.node->inputs[i]->type;
    const size_t bytes =
        handle ? handles_[s].tensor().byte_size()
               : static_cast<size_t>(element_count_unchecked(known_dims(planned.shape))) * byte_width(planned.element);
    const auto* contents = static_cast<const std::byte*>(slots_[s]);
    for (size_t at = 0; at < bytes; at += sizeof digest) {
      uint64_t word = 0;
      std::memcpy(&word, contents + at, std::min(bytes - at, sizeof word));
      add(word);
    }
  }
  return digest;
}

bool Context::lies_as(uint32_t s, const Operand& operand) const {
  if (!(handles_[s].tensor().dims() == operand.dims)) return false;
  const Dims* strides = strides_of(s);
  return strides ? *strides == operand.strides : layouts_.empty() || is_contiguous(operand.dims, operand.strides);
}

bool Context::has_contents(const DynamicNode& node, const Prepared& prepared) const {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Tensor& contents = prepared.contents[i];
    if (contents.defined() && contents.byte_size() > 0 &&
        std::memcmp(contents.raw(), slots_[node.inputs[i]], contents.byte_size()) != 0) {
      return false;
    }
  }
  return true;
}

bool Context::matches(const DynamicNode& node, const Prepared& prepared) const {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const uint32_t s = node.inputs[i];
    if (program_->slots[s].storage == Storage::kHandle && !lies_as(s, prepared.in[i])) return false;
  }
  return has_contents(node, prepared);
}

// Whether `prepared` could be made to serve the sizes at hand. If not, it is of no use any more.
bool Context::resize(const DynamicNode& node, Prepared& prepared) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const uint32_t s = node.inputs[i];
    if (program_->slots[s].storage != Storage::kHandle) continue;
    const Tensor& tensor = handles_[s].tensor();
    Operand& in = prepared.in[i];
    if (tensor.rank() != in.rank() || tensor.type() != in.type || prepared.contents[i].defined()) return false;
    if (lies_as(s, in)) continue;
    const Dims* strides = strides_of(s);
    in.dims = tensor.dims();
    in.strides = strides ? *strides : contiguous_strides(in.dims);
  }
  ResizeContext ctx{prepared.in, prepared.out, program_->threads, prepared.scratch_bytes};
  if (!has_contents(node, prepared) || !prepared.kernel.resize(const_cast<void*>(prepared.kernel.state), ctx))
    return false;
  prepared.scratch_bytes = ctx.scratch_bytes;
  return std::all_of(prepared.out.begin(), prepared.out.end(),
                     [](const Operand& out) { return element_count(out.dims).ok(); });
}

// An entry to be filled: a new one, or the oldest of the newest few. What was there before them stays: sizes that come
// again come in the same order, so the oldest would be gone just before it is needed.
std::unique_ptr<Prepared> Context::room_in(InlineCache& cache) {
  cache.last = nullptr;
  if (cache.order.size() < InlineCache::kLeast || prepared_ < kMostPrepared) {
    ++allocations_;
    return std::make_unique<Prepared>();
  }
  const auto given_up = cache.order.end() - InlineCache::kLeast;
  auto entry = cache.entries.extract(*given_up);
  cache.order.erase(given_up);
  --prepared_;
  return std::move(entry.mapped());
}

Result<Prepared*> Context::prepared_for(const DynamicNode& node, InlineCache& cache) {
  if (cache.last && matches(node, *cache.last)) return cache.last;
  if (cache.elastic) {
    if (resize(node, *cache.elastic)) {
      return cache.last = cache.elastic.get();
    }
    if (cache.last == cache.elastic.get()) cache.last = nullptr;
    cache.elastic.reset();
  }
  uint64_t digest = digest_of_sizes(node);
  auto found = cache.entries.find(digest);
  while (found != cache.entries.end() && !matches(node, *found->second)) found = cache.entries.find(++digest);
  if (found == cache.entries.end()) {
    std::unique_ptr<Prepared> entry = room_in(cache);
    TREADLE_TRY(prepare(node, *entry));
    if (entry->kernel.resize) {
      cache.elastic = std::move(entry);
      return cache.last = cache.elastic.get();
    }
    ++prepared_;
    found = cache.entries.emplace(digest, std::move(entry)).first;
    cache.order.push_back(digest);
  }
  return cache.last = found->second.get();
}

Status Context::prepare(const DynamicNode& node, Prepared& made) {
  const ir::Node& info = *node.node;
  const size_t inputs = node.inputs.size(), outputs = node.outputs.size();
  PrepareScratch& work = prepare_;
  made.states.clear();
  made.contents.assign(inputs, Tensor());
  made.in.assign(inputs, Operand());
  made.out.assign(outputs, Operand());
  work.types.resize(inputs);
  work.out_types.assign(outputs, Type());
  work.type_pointers.assign(inputs, nullptr);
  work.values.assign(inputs, nullptr);
  work.tensors.resize(inputs);
  for (size_t i = 0; i < inputs; ++i) {
    const uint32_t s = node.inputs[i];
    if (s == plan::kNoSlot) continue;
    const plan::Slot& slot = program_->slots[s];
    Dims storage;
    const Dims& dims = dims_of(s, *info.inputs[i], storage);
    const ElementType element =
        slot.storage == Storage::kHandle ? handles_[s].tensor().type() : info.inputs[i]->type.element;
    const Dims* strides = slot.storage == Storage::kHandle ? strides_of(s) : nullptr;
    made.in[i] = {element, dims, strides ? *strides : contiguous_strides(dims), nullptr};
    work.types[i] = Type::tensor(element, to_shape(dims));
    work.type_pointers[i] = &work.types[i];
    work.tensors[i] = Tensor::from_buffer(element, dims, {}, slots_[s]);
    const bool fixed = slot.storage == Storage::kConstant;
    if (!fixed && i < 64 && (info.op->shape_inputs >> i & 1)) {
      TREADLE_ASSIGN(made.contents[i], work.tensors[i].clone());
      work.tensors[i] = made.contents[i];
    }
    if (fixed || made.contents[i].defined()) made.in[i].constant = work.tensors[i].raw();
    work.values[i] = &work.tensors[i];
  }
  TREADLE_TRY(check_type_rules(info, work.type_pointers, {}));
  InferContext infer{info, work.type_pointers, work.values, {}, work.out_types, {}, {}};
  TREADLE_TRY(info.op->infer(infer));
  for (size_t i = 0; i < outputs; ++i) {
    if (node.outputs[i] == plan::kNoSlot) continue;
    const Type& type = work.out_types[i];
    if (!type.is_concrete()) {
      return error(Code::kInvalidModel, "output {} is {} for these inputs, which says no sizes", i, type.to_string());
    }
    const Dims dims = known_dims(type.shape);
    TREADLE_TRY(element_count(dims).status());
    made.out[i] = {type.element, dims, contiguous_strides(dims), nullptr};
  }
  PrepareContext context{info, made.in, made.out, made.states, *program_->packs, {}, 0, nullptr, program_->threads};
  {
    // Packed weights are shared with the threads of other runs.
    const NoFork whole;
    const Uninterrupted packing;
    TREADLE_TRY(info.op->prepare(context));
  }
  made.kernel = context.kernel;
  made.scratch_bytes = context.scratch_bytes;
  return {};
}

Status Context::need_scratch(size_t bytes) {
  if (scratch_ && scratch_->size() >= bytes) return {};
  ++allocations_;
  const size_t room = scratch_ && bytes < kLargeBytes ? bytes : 0;
  if (!account_->fits(bytes + room)) return account_->refusal(bytes + room, "what the kernel works in");
  BufferRef larger = BufferRef::allocate(bytes + room);
  if (!larger) return error(Code::kLimit, "no memory for {} bytes of scratch", bytes);
  account_->subtract(scratch_bytes());
  scratch_ = std::move(larger);
  account_->add(scratch_bytes());
  return {};
}

Status Context::charge_operands(const DynamicNode& node) {
  size_t bytes = 0;
  const auto add = [&](uint32_t s) {
    if (s != plan::kNoSlot && handles_[s].is_tensor()) bytes += handles_[s].tensor().byte_size();
  };
  for (const uint32_t s : node.inputs) add(s);
  for (const uint32_t s : node.outputs) add(s);
  return charge(bytes);
}

Status Context::run_guarded(const DynamicNode& node, uint32_t index) {
  if (!all_numeric_tensors(node)) {
    if (!node.node->op->compute) {
      return error(Code::kNotImplemented, "operator {}-{} cannot be run on these types", node.node->op->name,
                   node.node->version->since);
    }
    return run_compute(node);
  }
  if (node.node->op->appends) {
    TREADLE_ASSIGN(const bool done, append(node));
    if (done) return {};
  }
  TREADLE_ASSIGN(Prepared* const prepared, prepared_for(node, caches_[index]));
  TREADLE_TRY(run_prepared(node, *prepared));
  return charge_operands(node);
}

// Makes the handle in slot `s` a tensor of these sizes to be written: in the memory of its last value where nobody else
// holds that and it is large enough. A small value that has grown is given twice the room, for it will grow again.
Status Context::renew(uint32_t s, ElementType type, const Dims& dims) {
  AnyValue& old = handles_[s];
  if (old.is_tensor() && !is_string(type) && old.tensor().exclusive()) {
    if (old.tensor().type() == type && old.tensor().dims() == dims) {
      slots_[s] = old.tensor().mutable_raw();
      return {};
    }
    const BufferRef& memory = old.tensor().buffer();
    const size_t bytes = static_cast<size_t>(element_count_unchecked(dims)) * byte_width(type);
    const bool whole = old.tensor().raw() == memory->data() && memory->size() >= bytes && memory->size() / 4 <= bytes;
    if (whole && !is_string(old.tensor().type())) {
      memory->seal();
      return set_handle(s, AnyValue(Tensor::from_buffer(type, dims, memory)));
    }
    if (bytes > memory->size() && bytes < kLargeBytes && options_->memory_limit == 0) {
      TREADLE_ASSIGN(BufferRef larger, allocate_bytes(2 * bytes, dims));
      return set_handle(s, AnyValue(Tensor::from_buffer(type, dims, std::move(larger))));
    }
  }
  TREADLE_ASSIGN(Tensor tensor, allocate(type, dims));
  return set_handle(s, AnyValue(std::move(tensor)));
}

Status Context::run_prepared(const DynamicNode& node, Prepared& prepared) {
  const OpDef& op = *node.node->op;
  if (op.alias_input >= 0) {
    const uint32_t from = node.inputs[static_cast<size_t>(op.alias_input)];
    if (program_->slots[from].storage == Storage::kHandle) {
      return set_handle(node.outputs[0], AnyValue(handles_[from].tensor().reshaped(prepared.out[0].dims)));
    }
  }
  TREADLE_TRY(need_scratch(prepared.scratch_bytes));
  InlineVector<void*, 16> slots;
  InlineVector<uint32_t, 16> operands;
  for (uint32_t s : node.inputs) slots.push_back(slots_[s]);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const uint32_t s = node.outputs[i];
    if (s == plan::kNoSlot) {
      slots.push_back(nullptr);
      continue;
    }
    TREADLE_TRY(renew(s, prepared.out[i].type, prepared.out[i].dims));
    slots.push_back(slots_[s]);
  }
  slots.push_back(scratch_->data());
  for (uint32_t i = 0; i < slots.size(); ++i) operands.push_back(i);
  if (const uint32_t failed = prepared.kernel.run(prepared.kernel.state, slots.data(), operands.data())) {
    return kernel_status(failed);
  }
  return {};
}

Status Context::run_compute(const DynamicNode& node) {
  const ir::Node& info = *node.node;
  std::vector<AnyValue> inputs(node.inputs.size()), outputs(node.outputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (node.inputs[i] == plan::kNoSlot) continue;
    TREADLE_ASSIGN(inputs[i], value_of(node.inputs[i], info.inputs[i]->type));
  }
  ComputeContext context{info, inputs, outputs};
  {
    if (options_->memory_limit > 0) spare_.clear();
    const MemoryScope counted(account_);
    TREADLE_TRY(within_memory([&] { return info.op->compute(context); }));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    TREADLE_TRY(set_handle(node.outputs[i], std::move(outputs[i])));
  }
  return charge_operands(node);
}

}  // namespace treadle::run

#include "run/size_cache.h"

#include <algorithm>
#include <cstring>

#include "base/stop.h"
#include "op/op_def.h"
#include "op/resize.h"
#include "op/type_rules.h"

namespace treadle::run {

using plan::DynamicNode;
using plan::Storage;

namespace {

// Whether sizes of results depend on the contents of input `i`.
bool is_shape_input(const OpDef& op, size_t i) {
  return i < 64 && (op.shape_inputs >> i & 1);
}

class SizeDigest {
 public:
  uint64_t value() const { return value_; }
  void add(uint64_t word) {
    value_ = (value_ ^ word) * 0x9E37'79B9'7F4A'7C15u;
    value_ ^= value_ >> 32;
  }
  void add_bytes(const void* from, size_t bytes) {
    const auto* contents = static_cast<const std::byte*>(from);
    for (size_t at = 0; at < bytes; at += sizeof value_) {
      uint64_t word = 0;
      std::memcpy(&word, contents + at, std::min(bytes - at, sizeof word));
      add(word);
    }
  }

 private:
  uint64_t value_ = 0;
};

}  // namespace

uint64_t SizeCache::digest_of_sizes(const DynamicNode& node) const {
  SizeDigest digest;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const uint32_t s = node.inputs[i];
    if (s == plan::kNoSlot || program_.slots[s].storage == Storage::kConstant) continue;
    const bool handle = frame_.is_handle(s);
    if (handle) {
      const Dims& dims = frame_.handle(s).tensor().dims();
      digest.add(dims.size());
      for (const int64_t size : dims) digest.add(static_cast<uint64_t>(size));
      if (const Dims* strides = frame_.strides_of(s)) {
        for (const int64_t stride : *strides) digest.add(static_cast<uint64_t>(stride));
      }
    }
    if (!is_shape_input(*node.node->op, i)) continue;
    const Type& planned = node.node->inputs[i]->type;
    digest.add_bytes(frame_.address(s),
                     handle ? frame_.handle(s).tensor().byte_size()
                            : static_cast<size_t>(known_element_count(planned.shape)) * byte_width(planned.element));
  }
  return digest.value();
}

bool SizeCache::has_layout_of(uint32_t s, const Operand& operand) const {
  if (!(frame_.handle(s).tensor().dims() == operand.dims)) return false;
  const Dims* strides = frame_.strides_of(s);
  return strides ? *strides == operand.strides : !frame_.has_layouts() || is_contiguous(operand.dims, operand.strides);
}

bool SizeCache::has_contents(const DynamicNode& node, const Prepared& prepared) const {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Tensor& contents = prepared.contents[i];
    if (contents.defined() && contents.byte_size() > 0 &&
        std::memcmp(contents.raw(), frame_.address(node.inputs[i]), contents.byte_size()) != 0) {
      return false;
    }
  }
  return true;
}

bool SizeCache::matches(const DynamicNode& node, const Prepared& prepared) const {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const uint32_t s = node.inputs[i];
    if (frame_.is_handle(s) && !has_layout_of(s, prepared.in[i])) return false;
  }
  return has_contents(node, prepared);
}

// Resizes `prepared` to the sizes at hand. If that fails, `prepared` is useless.
bool SizeCache::resize(const DynamicNode& node, Prepared& prepared) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const uint32_t s = node.inputs[i];
    if (!frame_.is_handle(s)) continue;
    const Tensor& tensor = frame_.handle(s).tensor();
    Operand& in = prepared.in[i];
    if (tensor.rank() != in.rank() || tensor.type() != in.type || prepared.contents[i].defined()) return false;
    if (has_layout_of(s, in)) continue;
    const Dims* strides = frame_.strides_of(s);
    in.dims = tensor.dims();
    in.strides = strides ? *strides : contiguous_strides(in.dims);
  }
  ResizeContext ctx{prepared.in, prepared.out, program_.threads, prepared.scratch_bytes};
  if (!has_contents(node, prepared) || !prepared.kernel.resize(const_cast<void*>(prepared.kernel.state), ctx))
    return false;
  prepared.scratch_bytes = ctx.scratch_bytes;
  return std::all_of(prepared.out.begin(), prepared.out.end(),
                     [](const Operand& out) { return element_count(out.dims).ok(); });
}

// An entry to fill: a new one, or if the cache is full the oldest of the newest few. Older entries stay: a run that
// repeats the sizes of the last run needs them in the same order, and would find the oldest entry just evicted.
std::unique_ptr<Prepared> SizeCache::room_in(InlineCache& cache) {
  cache.last = nullptr;
  if (cache.order.size() < kLeast || count_ < kMost) {
    memory_.count_allocation();
    return std::make_unique<Prepared>();
  }
  const auto given_up = cache.order.end() - kLeast;
  auto entry = cache.entries.extract(*given_up);
  cache.order.erase(given_up);
  --count_;
  return std::move(entry.mapped());
}

Result<Prepared*> SizeCache::prepared_for(uint32_t index) {
  const DynamicNode& node = program_.dynamic[index];
  InlineCache& cache = caches_[index];
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
    TREADLE_TRY(prepare_within_limits(node, *entry));
    if (entry->kernel.resize) {
      cache.elastic = std::move(entry);
      return cache.last = cache.elastic.get();
    }
    ++count_;
    found = cache.entries.emplace(digest, std::move(entry)).first;
    cache.order.push_back(digest);
  }
  return cache.last = found->second.get();
}

// A preparation may take the memory that the run has left, or the machine if the run has no limit.
Status SizeCache::prepare_within_limits(const DynamicNode& node, Prepared& made) {
  account_->begin(memory_.is_limited() ? std::max<size_t>(account_->live() + memory_.account()->room(), 1) : 0);
  const MemoryScope counted(account_);
  try {
    return prepare(node, made);
  } catch (const MemoryRefused& refused) {
    return memory_.account()->refusal(refused.bytes(), "what the operator works in");
  }
}

Status SizeCache::prepare_input(const DynamicNode& node, size_t i, Prepared& made) {
  const ir::Node& info = *node.node;
  const uint32_t s = node.inputs[i];
  if (s == plan::kNoSlot) return {};
  const plan::Slot& slot = program_.slots[s];
  const bool handle = frame_.is_handle(s);
  Dims storage;
  const Dims& dims = frame_.dims_of(s, *info.inputs[i], storage);
  const ElementType element = handle ? frame_.handle(s).tensor().type() : info.inputs[i]->type.element;
  const Dims* strides = handle ? frame_.strides_of(s) : nullptr;
  made.in[i] = {element, dims, strides ? *strides : contiguous_strides(dims), nullptr};
  work_.types[i] = Type::tensor(element, to_shape(dims));
  work_.type_pointers[i] = &work_.types[i];
  work_.tensors[i] = Tensor::from_buffer(element, dims, {}, frame_.address(s));
  const bool fixed = slot.storage == Storage::kConstant;
  if (!fixed && is_shape_input(*info.op, i)) {
    TREADLE_ASSIGN(made.contents[i], work_.tensors[i].clone());
    work_.tensors[i] = made.contents[i];
  }
  if (fixed || made.contents[i].defined()) made.in[i].constant = work_.tensors[i].raw();
  work_.values[i] = &work_.tensors[i];
  return {};
}

Status SizeCache::prepare_outputs(const DynamicNode& node, Prepared& made) {
  const ir::Node& info = *node.node;
  TREADLE_TRY(check_type_rules(info, work_.type_pointers, {}));
  InferContext infer{info, work_.type_pointers, work_.values, {}, work_.out_types, {}, {}};
  TREADLE_TRY(info.op->infer(infer));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == plan::kNoSlot) continue;
    const Type& type = work_.out_types[i];
    if (!type.is_concrete()) return sizes_not_told(info, work_.type_pointers, i, type);
    const Dims dims = known_dims(type.shape);
    TREADLE_TRY(element_count(dims).status());
    made.out[i] = {type.element, dims, contiguous_strides(dims), nullptr};
  }
  return {};
}

Status SizeCache::prepare(const DynamicNode& node, Prepared& made) {
  const size_t inputs = node.inputs.size(), outputs = node.outputs.size();
  made.states.clear();
  made.contents.assign(inputs, Tensor());
  made.in.assign(inputs, Operand());
  made.out.assign(outputs, Operand());
  work_.types.resize(inputs);
  work_.out_types.assign(outputs, Type());
  work_.type_pointers.assign(inputs, nullptr);
  work_.values.assign(inputs, nullptr);
  work_.tensors.resize(inputs);
  for (size_t i = 0; i < inputs; ++i) TREADLE_TRY(prepare_input(node, i, made));
  TREADLE_TRY(prepare_outputs(node, made));
  PrepareContext context{*node.node, made.in, made.out, made.states, *program_.packs, {}, 0, nullptr, program_.threads};
  TREADLE_TRY(node.node->op->prepare(context));
  if (was_stopped()) return stopped();  // a kernel that may be half made must not be kept for later runs
  made.kernel = context.kernel;
  made.scratch_bytes = context.scratch_bytes;
  made.kept.assign(context.kept_bytes, std::byte{0});
  return {};
}

}  // namespace treadle::run

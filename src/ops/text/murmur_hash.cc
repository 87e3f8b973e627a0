// MurmurHash3: a 32-bit hash of each number or text (MurmurHash3_x86_32 over its bytes).

#include <bit>
#include <cstring>

#include "kernels/costs.h"
#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/parallel.h"
#include "op/pieces.h"
#include "ops/costs.h"

namespace treadle::text {

namespace {

// The constants of the algorithm.
constexpr uint32_t kFirst = 0xcc9e2d51, kSecond = 0x1b873593, kAdded = 0xe6546b64;

uint32_t scrambled(uint32_t block) {
  return std::rotl(block * kFirst, 15) * kSecond;
}

uint32_t finished(uint32_t hash) {
  hash = (hash ^ (hash >> 16)) * 0x85ebca6b;
  hash = (hash ^ (hash >> 13)) * 0xc2b2ae35;
  return hash ^ (hash >> 16);
}

uint32_t murmur(const void* data, size_t bytes, uint32_t seed) {
  const auto* at = static_cast<const unsigned char*>(data);
  uint32_t hash = seed;
  size_t left = bytes;
  for (; left >= 4; at += 4, left -= 4) {
    uint32_t block;
    std::memcpy(&block, at, 4);
    hash = std::rotl(hash ^ scrambled(block), 13) * 5 + kAdded;
  }
  uint32_t rest = 0;
  for (size_t i = left; i-- > 0;) rest = rest << 8 | at[i];
  if (left > 0) hash ^= scrambled(rest);
  return finished(hash ^ static_cast<uint32_t>(bytes));
}

ElementType hash_type(const ir::Attributes& attributes) {
  return attributes.get_int("positive") == 1 ? ElementType::kUint32 : ElementType::kInt32;
}

uint32_t seed_of(const ir::Attributes& attributes) {
  return static_cast<uint32_t>(attributes.get_int("seed"));
}

Status infer_murmur(InferContext& ctx) {
  const int64_t seed = ctx.attributes().get_int("seed");
  if (seed < 0 || seed > UINT32_MAX) {
    return error(Code::kInvalidModel, "attribute seed is {}, expected 0 to {}", seed, UINT32_MAX);
  }
  if (const Shape* x = ctx.shape(0)) {
    ctx.set_output(0, hash_type(ctx.attributes()), *x);
  } else {
    ctx.set_output(0, hash_type(ctx.attributes()));
  }
  return {};
}

struct Hashes {
  int64_t count = 0;
  size_t width = 0;
  uint32_t seed = 0;
};

uint32_t run_murmur(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const Hashes*>(state);
  const auto* x = static_cast<const char*>(slots[operands[0]]);
  auto* y = static_cast<uint32_t*>(slots[operands[1]]);
  parallel_for(s.count, costs::kMurmurHashNs, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) y[i] = murmur(x + static_cast<size_t>(i) * s.width, s.width, s.seed);
  });
  return 0;
}

Status prepare_murmur(PrepareContext& ctx) {
  const Operand& x = ctx.inputs[0];
  auto* s = ctx.make_state<Hashes>(Hashes{x.element_count(), byte_width(x.type), seed_of(ctx.attributes())});
  ctx.set_kernel(run_murmur, s);
  return {};
}

// Only for texts.
Status compute_murmur(ComputeContext& ctx) {
  const Tensor& x = ctx.tensor(0);
  TREADLE_ASSIGN(Tensor * y, ctx.allocate(0, hash_type(ctx.attributes()), x.dims()));
  auto* to = static_cast<uint32_t*>(y->mutable_raw());
  StopPoll stop;
  for (const String& text : x.span<String>()) {
    *to++ = murmur(text.data(), text.size(), seed_of(ctx.attributes()));
    if (stop.after(costs::kTextNs + costs::kMurmurCharacterNs * static_cast<double>(text.size()))) return stopped();
  }
  return {};
}

}  // namespace

}  // namespace treadle::text

TREADLE_OP(MurmurHash3, "com.microsoft") {
  op.since(1)
      .in("X", "T1")
      .out("Y", "T2")
      .attr("positive", 1)
      .attr("seed", 0)
      .type("T1", tensors(ElementType::kUint32, ElementType::kInt32, ElementType::kUint64, ElementType::kInt64,
                          ElementType::kFloat, ElementType::kDouble, ElementType::kString))
      .type("T2", tensors(ElementType::kUint32, ElementType::kInt32));
  op.infer(text::infer_murmur)
      .prepare(text::prepare_murmur)
      .compute(text::compute_murmur)
      .axes(axes::element_by_element, axes::unchanged);
}

#include "ops/random/philox.h"

#include <atomic>
#include <bit>
#include <cmath>
#include <random>

namespace treadle::random {

Source Source::of(const ir::Attributes& attributes) {
  const ir::Attribute* seed = attributes.find("seed");
  if (!seed) return {};
  if (seed->kind == ir::AttributeKind::kInt) return {true, static_cast<uint64_t>(seed->as_int())};
  const float value = seed->as_float();
  return {!std::isnan(value), std::bit_cast<uint32_t>(value)};
}

namespace {

uint64_t entropy() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

}  // namespace

Philox Source::generator() const {
  if (seeded) return Philox(key);
  static const uint64_t process_key = entropy();
  static std::atomic<uint64_t> runs{1};
  return Philox(process_key, runs.fetch_add(1, std::memory_order_relaxed));
}

}  // namespace treadle::random

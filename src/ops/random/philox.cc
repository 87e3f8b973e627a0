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

// Of all nodes without a seed of their own.
struct Process {
  std::atomic<uint64_t> key{entropy()}, runs{1};

  static Process& get() {
    static Process process;
    return process;
  }
};

}  // namespace

void set_process_seed(uint64_t seed) {
  Process::get().key.store(seed, std::memory_order_relaxed);
  Process::get().runs.store(1, std::memory_order_relaxed);
}

Philox Source::generator() const {
  if (seeded) return Philox(key);
  Process& process = Process::get();
  return Philox(process.key.load(std::memory_order_relaxed), process.runs.fetch_add(1, std::memory_order_relaxed));
}

}  // namespace treadle::random

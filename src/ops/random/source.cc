#include "ops/random/source.h"

#include <unistd.h>

#include <atomic>
#include <bit>
#include <cmath>
#include <ctime>

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
  uint64_t key = 0;
  if (getentropy(&key, sizeof key) != 0) key = static_cast<uint64_t>(time(nullptr));  // before Linux 3.17
  return key;
}

// For all nodes without a seed attribute.
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

kernels::RandomKey Source::sequence() const {
  if (seeded) return {key, 0};
  Process& process = Process::get();
  return {process.key.load(std::memory_order_relaxed), process.runs.fetch_add(1, std::memory_order_relaxed)};
}

}  // namespace treadle::random

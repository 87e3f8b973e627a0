#include "reference/folding.h"

#include <new>

#include "base/stop.h"
#include "base/thread_pool.h"
#include "reference/interpreter.h"

namespace treadle::reference {

namespace {

// An evaluation reports its work when it asks whether to stop. Small work never asks, so these estimates stand for it.
constexpr double kByteNs = 0.25;  // per byte of operands
constexpr double kStepNs = 2000;  // per node of a lowering

std::shared_ptr<MemoryAccount> account_of(const FoldLimits& limits) {
  const MemoryScope* around = MemoryScope::current();
  auto account = MemoryAccount::make(around ? around->account() : nullptr);
  account->begin(limits.bytes);
  return account;
}

double bytes_of(std::span<const AnyValue> values) {
  double bytes = 0;
  for (const AnyValue& v : values) bytes += v.is_tensor() ? static_cast<double>(v.tensor().byte_size()) : 0;
  return bytes;
}

}  // namespace

FoldLimits FoldLimits::of_model(size_t constant_bytes) {
  constexpr size_t kTimes = 8;
  constexpr double kNsPerByte = 20;
  FoldLimits limits;
  size_t more = 0;
  if (__builtin_mul_overflow(constant_bytes, kTimes, &more) || __builtin_add_overflow(limits.bytes, more, &more)) {
    return none();
  }
  limits.bytes = more;
  limits.work_ns += kNsPerByte * static_cast<double>(constant_bytes);
  return limits;
}

Folding::Folding(const FoldLimits& limits) : limits_(limits), account_(account_of(limits)) {}

bool Folding::spend(double ns) {
  if (limits_.work_ns <= 0) return true;
  const auto more = static_cast<int64_t>(ns);
  return static_cast<double>(spent_ns_.fetch_add(more, std::memory_order_relaxed) + more) <= limits_.work_ns;
}

// Counts the work of a lowering's nodes.
class Folding::Steps final : public Guard {
 public:
  explicit Steps(Folding& folding) : folding_(folding) {}
  Status iteration() override { return step(); }
  Status step() override { return folding_.spend(kStepNs) && !stop_requested() ? Status() : stopped(); }

 private:
  Folding& folding_;
};

std::optional<std::vector<AnyValue>> Folding::evaluate(const ir::NodeInfo& node, std::span<const AnyValue> inputs) {
  if (stop_requested() || !spend(bytes_of(inputs) * kByteNs)) return std::nullopt;
  struct Asked {
    Folding* folding;
    StopSource* around;
  };
  const Asked asked{this, StopSource::current()};
  const auto should_stop = [](const void* context) {
    const auto& [folding, around] = *static_cast<const Asked*>(context);
    return (around && around->requested()) || !folding->spend(kStopCheckNs);
  };
  const MemoryScope counted(account_);
  const ThreadScope scope(thread_limit(), {should_stop, &asked});
  Steps steps(*this);
  try {
    auto results = run_node(node, inputs, {}, &steps);
    if (!results.ok() || scope.stopped() || !account_->fits(0)) return std::nullopt;
    return std::move(results).value();
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

}  // namespace treadle::reference

#pragma once
// The plans that a session has made so far, each with its pool of contexts.
//
// A plan serves a signature (session/signature.h). The first run is planned with its exact sizes. When a later one
// differs in a size, that size becomes a symbol and the plan with symbols serves every size from then on. An input
// whose contents decide something is planned for its contents until four different ones were seen; then it is data like
// any other.

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "opt/remarks.h"
#include "plan/planner.h"
#include "run/context.h"
#include "session/loaded.h"
#include "session/planning_lock.h"
#include "session/signature.h"

namespace treadle::session {

// What planning makes of a graph.
struct Planned {
  std::shared_ptr<const plan::Program> program;
  opt::Remarks remarks;                      // of what was done to its loops
  std::shared_ptr<run::NativeLoops> native;  // null: no native code
};

class Plan {
 public:
  Plan(Signature signature, Planned planned, int64_t native_trip);
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  const Signature& signature() const { return signature_; }
  const Planned& planned() const { return planned_; }
  // Whether a run is expected to take no more than some 10 us: what a caller's lock may be held for.
  bool is_brief() const { return is_brief_; }
  // The plan that was made before this one.
  const Plan* next() const { return next_; }

  // A context that no other run is using.
  std::unique_ptr<run::Context> take_context() const;
  void give_back(std::unique_ptr<run::Context> context) const;

 private:
  friend class PlanCache;
  static constexpr size_t kMaxIdleContexts = 32;

  Signature signature_;
  Planned planned_;
  int64_t native_trip_;
  bool is_brief_;
  const Plan* next_ = nullptr;
  // Contexts that no run is using: a place is emptied and filled by exchanging its pointer.
  mutable std::array<std::atomic<run::Context*>, kMaxIdleContexts> idle_{};
};

class PlanCache {
 public:
  explicit PlanCache(const Loaded& loaded);
  ~PlanCache();
  PlanCache(const PlanCache&) = delete;
  PlanCache& operator=(const PlanCache&) = delete;

  // A plan that serves these values; null: none yet. Takes no lock.
  const Plan* find(Values values) const;
  // The same, made where there is none, under the limits of planning. Errors: those of planning.
  Result<const Plan*> find_or_make(Values values);
  // A plan for what the model says of its inputs, which serves no run, with all native code made. Packed weights of
  // its own go with it.
  Result<Planned> plan_model() const;
  const Plan* newest() const { return plans_.load(std::memory_order_acquire); }
  int64_t size() const { return size_.load(); }

 private:
  // An input whose contents decide something.
  struct Deciding {
    bool decides = false;
    std::vector<std::vector<std::byte>> seen;  // contents that were planned for
    // Makes `in` ask for these contents, unless there were too many different ones.
    void fix(const Tensor& tensor, InputSignature& in);
  };

  Signature signature_for(Values values);
  Result<const Plan*> make(Values values);
  // `abandoned`: gets the constants of a graph that could not be planned.
  Result<Planned> plan(std::span<const plan::InputSpec> knowledge, std::shared_ptr<PackCache> packs,
                       std::vector<Tensor>* abandoned) const;

  const Loaded& loaded_;
  PlanningLock lock_;
  std::vector<Deciding> deciding_;                                    // parallel to the graph's inputs
  std::shared_ptr<PackCache> packs_ = std::make_shared<PackCache>();  // of plans to come; each keeps its own
  std::vector<Tensor> abandoned_;                                     // constants of graphs that could not be planned
  // A list that grows at its head and is never shortened, so that runs walk it without a lock.
  std::atomic<const Plan*> plans_{nullptr};
  std::atomic<int64_t> size_{0};
};

}  // namespace treadle::session

#pragma once
// The plans that a session has made so far, each with its pool of contexts.
//
// A plan serves a signature (session/signature.h). The first run is planned with its exact sizes. When a later run
// differs in a size, the size becomes a symbol, and the plan with symbols serves every size from then on. An input
// whose contents decide a branch or a shape is planned for its contents until four different ones were seen; then its
// contents are ordinary data.
//
// A plan with symbols serves sizes only after every node of the model was asked whether it accepts them, as planning
// for exactly these sizes would ask (CheckedSizes). For sizes that a node refuses, a run gets a plan apart, for these
// sizes only. If the run reaches the node, the error is that of a new session. There are at most kMostApart such plans;
// the reference interpreter runs further sizes of this kind.

#include <array>
#include <atomic>
#include <memory>
#include <unordered_map>
#include <vector>

#include "opt/remarks.h"
#include "plan/planner.h"
#include "run/context.h"
#include "session/checked_sizes.h"
#include "session/loaded.h"
#include "session/planning_lock.h"
#include "session/signature.h"

namespace treadle::session {

// The results of planning a graph.
struct Planned {
  std::shared_ptr<const plan::Program> program;
  opt::Remarks remarks;                      // of rewrites of its loops
  plan::SameOrigins same;                    // of values of the model
  std::shared_ptr<run::NativeLoops> native;  // null: no native code
};

class Plan {
 public:
  // `apart`: for sizes that a plan for any sizes may not serve.
  Plan(Signature signature, Planned planned, int64_t native_iteration, bool apart);
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  const Signature& signature() const { return signature_; }
  const Planned& planned() const { return planned_; }
  bool is_apart() const { return is_apart_; }
  // Lets the plan serve the sizes of these values.
  void admit(Values values) const {
    if (checked_) checked_->add(signature_.number_of_sizes(values));
  }
  // Whether the plan serves these values.
  bool serves(Values values) const {
    return signature_.accepts(values) && (!checked_ || checked_->contains(signature_.number_of_sizes(values)));
  }
  // Whether a run is expected to take at most some 10 us, so that the caller may hold a lock meanwhile.
  bool is_brief() const { return is_brief_; }
  // The plan that was made before this one.
  const Plan* next() const { return next_; }

  // Whether the plan serves values of these types and sizes whatever they hold, of inputs for which `varies`; parallel
  // to the inputs.
  bool serves_any_contents(std::span<const uint8_t> varies) const;
  // A context of the caller's own.
  std::unique_ptr<run::Context> new_context() const {
    return std::make_unique<run::Context>(planned_.program, planned_.native, native_iteration_);
  }
  // A context that no run is using.
  std::unique_ptr<run::Context> take_context() const;
  void give_back(std::unique_ptr<run::Context> context) const;

 private:
  friend class PlanCache;
  static constexpr size_t kMaxIdleContexts = 32;

  Signature signature_;
  Planned planned_;
  int64_t native_iteration_;
  bool is_apart_;
  bool is_brief_;
  std::unique_ptr<CheckedSizes> checked_;  // null: it serves its exact sizes only
  const Plan* next_ = nullptr;
  // Idle contexts. A thread takes or returns one by exchanging a pointer.
  mutable std::array<std::atomic<run::Context*>, kMaxIdleContexts> idle_{};
};

class PlanCache {
 public:
  explicit PlanCache(const Loaded& loaded);
  ~PlanCache();
  PlanCache(const PlanCache&) = delete;
  PlanCache& operator=(const PlanCache&) = delete;

  // A plan that serves these values; null if there is none yet. Takes no lock.
  const Plan* find(Values values) const;
  // A plan that serves these values, made under the limits of planning if there is none. Null: all plans apart are in
  // use. Errors: those of planning.
  Result<const Plan*> find_or_make(Values values);
  // A plan for the input types that the model declares, with native code of all loops. It serves no run, and has a
  // cache of packed weights of its own.
  Result<Planned> plan_model() const;
  const Plan* newest() const { return plans_.load(std::memory_order_acquire); }
  // The newest plan that is not apart, if there is one.
  const Plan* typical() const;
  int64_t size() const { return size_.load(); }

 private:
  // An input whose contents decide a branch or a shape.
  struct Deciding {
    bool decides = false;
    std::vector<std::vector<std::byte>> seen;  // contents for which there are plans
    // Makes `in` require these contents, unless there were too many different ones.
    void fix(const Tensor& tensor, InputSignature& in);
  };

  static constexpr int kMostApart = 8;

  Signature signature_for(Values values);
  // A plan for any sizes that would serve these values if their sizes were checked; null if there is none.
  const Plan* open_plan(Values values) const;
  // Such a plan after checking the sizes; null if there is none, or the sizes are refused.
  Result<const Plan*> admitting(Values values) const;
  Result<const Plan*> make(Values values);
  Result<const Plan*> make_for_any(const Signature& signature, Values values);
  Result<const Plan*> make_apart(const Signature& signature, Values values);
  struct Kind {
    bool apart = false;
    bool asks_in_run = true;  // for opt::PipelineOptions
  };
  Result<const Plan*> add(Signature signature, Values values, Kind kind);
  // Whether every node accepts the sizes of these values.
  Result<plan::SizesTaken> check_sizes(const Signature& signature, Values values) const;
  // `abandoned` gets the packed constants of a graph that could not be planned.
  Result<Planned> plan(std::span<const plan::InputSpec> knowledge, bool asks_in_run,
                       const std::shared_ptr<PackCache>& packs,
                       std::unordered_map<const void*, Tensor>* abandoned) const;

  const Loaded& loaded_;
  PlanningLock lock_;
  std::vector<Deciding> deciding_;                                    // parallel to the graph's inputs
  std::shared_ptr<PackCache> packs_ = std::make_shared<PackCache>();  // for future plans; each plan keeps its own
  std::unordered_map<const void*, Tensor> abandoned_;  // packed constants of graphs that could not be planned
  // A list that grows at its head and never shrinks, so that runs walk it without a lock.
  std::atomic<const Plan*> plans_{nullptr};
  std::atomic<int64_t> size_{0};
  int apart_ = 0;  // number of plans apart
};

}  // namespace treadle::session

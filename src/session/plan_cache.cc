#include "session/plan_cache.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/no_fork.h"
#include "base/stop.h"
#include "session/limited_work.h"
#include "session/optimize.h"
#include "session/shared_weights.h"

namespace treadle::session {

namespace {

constexpr int64_t kMaxDecidingElements = 8;
constexpr size_t kMaxDecidingContents = 4;

// Packed constants are found by their addresses. If planning throws, its graph is freed, and its addresses may be used
// again for other constants. So unless dismissed, this replaces the cache of packed constants by an empty one.
class FreshPacks {
 public:
  explicit FreshPacks(std::shared_ptr<PackCache>& packs) : packs_(packs) {}
  ~FreshPacks() {
    if (fresh_) packs_ = std::move(fresh_);
  }
  FreshPacks(const FreshPacks&) = delete;
  FreshPacks& operator=(const FreshPacks&) = delete;
  void dismiss() { fresh_.reset(); }

 private:
  std::shared_ptr<PackCache>& packs_;
  std::shared_ptr<PackCache> fresh_ = std::make_shared<PackCache>();
};

// Keeps packed constants of a graph that was not planned alive, so that their addresses are not used again.
void keep_packed(const ir::Graph& unplanned, PackCache& packs, std::unordered_map<const void*, Tensor>& kept) {
  const std::unordered_set<const void*> packed = packs.constants();
  const NoFork whole;
  ir::for_each_node(unplanned.top(), [&](const ir::Node& node) {
    for (const ir::Value* v : node.inputs) {
      if (v && v->is_constant() && packed.contains(v->constant.raw())) kept.emplace(v->constant.raw(), v->constant);
    }
  });
}

}  // namespace

Plan::Plan(Signature signature, Planned planned, int64_t native_iteration, bool apart)
    : signature_(std::move(signature)),
      planned_(std::move(planned)),
      native_iteration_(native_iteration),
      is_apart_(apart) {
  if (signature_.is_open()) checked_ = std::make_unique<CheckedSizes>();
  constexpr double kBriefNs = 10'000;
  const plan::Program& program = *planned_.program;
  is_brief_ = program.loops.empty() && program.dynamic.empty() && program.work_ns < kBriefNs;
}

Plan::~Plan() {
  for (auto& place : idle_) delete place.load(std::memory_order_acquire);
}

bool Plan::serves_any_contents(std::span<const uint8_t> varies) const {
  for (size_t i = 0; i < varies.size(); ++i) {
    const InputSignature& input = signature_.inputs[i];
    if (varies[i] && (input.contents_fixed || input.constant)) return false;
  }
  return true;
}

std::unique_ptr<run::Context> Plan::take_context() const {
  for (auto& place : idle_) {
    if (!place.load(std::memory_order_relaxed)) continue;
    if (run::Context* context = place.exchange(nullptr, std::memory_order_acquire)) {
      return std::unique_ptr<run::Context>(context);
    }
  }
  return new_context();
}

void Plan::give_back(std::unique_ptr<run::Context> context) const {
  for (auto& place : idle_) {
    run::Context* none = nullptr;
    if (place.load(std::memory_order_relaxed)) continue;
    if (!place.compare_exchange_strong(none, context.get(), std::memory_order_release)) continue;
    [[maybe_unused]] const run::Context* const kept = context.release();  // the place owns it
    return;
  }
}

PlanCache::PlanCache(const Loaded& loaded) : loaded_(loaded) {
  for (const bool decides : loaded.deciding) deciding_.push_back({decides, {}});
}

PlanCache::~PlanCache() {
  for (const Plan* plan = plans_.load(); plan;) {
    const std::unique_ptr<const Plan> last(plan);
    plan = plan->next_;
  }
}

const Plan* PlanCache::find(Values values) const {
  const Plan* plan = newest();
  while (plan && !plan->serves(values)) plan = plan->next_;
  return plan;
}

const Plan* PlanCache::open_plan(Values values) const {
  const Plan* plan = newest();
  while (plan && !plan->signature().accepts(values)) plan = plan->next_;
  return plan;
}

const Plan* PlanCache::typical() const {
  const Plan* plan = newest();
  while (plan && plan->is_apart()) plan = plan->next_;
  return plan ? plan : newest();
}

Result<const Plan*> PlanCache::find_or_make(Values values) {
  if (const Plan* plan = find(values)) return plan;
  const Plan* made = nullptr;
  LimitedWork work(loaded_.options.load, "planning");
  const auto plan = [&]() -> Status {
    TREADLE_ASSIGN(made, admitting(values));
    if (made) return {};
    PlanningLock::Held lock(lock_);
    TREADLE_TRY(lock.take());
    made = find(values);
    if (!made) {
      TREADLE_ASSIGN(made, make(values));
    }
    return {};
  };
  TREADLE_TRY(work.run(plan));
  return made;
}

Result<const Plan*> PlanCache::admitting(Values values) const {
  const Plan* const plan = open_plan(values);
  if (!plan) return nullptr;
  auto taken = check_sizes(plan->signature(), values);
  if (taken.ok()) {
    plan->admit(values);
    return plan;
  }
  Status refused = std::move(taken).status();
  if (refused.code() == Code::kCancelled) return refused;
  return nullptr;
}

void PlanCache::Deciding::fix(const Tensor& tensor, InputSignature& in) {
  if (!decides || tensor.element_count() > kMaxDecidingElements) return;
  const auto* data = static_cast<const std::byte*>(tensor.raw());
  std::vector<std::byte> contents(data, data + tensor.byte_size());
  if (std::find(seen.begin(), seen.end(), contents) == seen.end()) seen.push_back(contents);
  decides = seen.size() <= kMaxDecidingContents;
  in.contents_fixed = decides;
  if (decides) in.contents = std::move(contents);
}

// The exact sizes, except for those in which earlier plans differ, once there are enough plans.
Signature PlanCache::signature_for(Values values) {
  Signature signature;
  const Plan* const others = size() < loaded_.options.exact_plans ? nullptr : newest();
  for (size_t i = 0; i < values.size(); ++i) {
    InputSignature& in = signature.inputs.emplace_back();
    in.kind = values[i]->kind();
    if (loaded_.listed[i] && in.kind == AnyValue::Kind::kSequence) {
      in.list = SequenceSignature::of(values[i]->sequence(), loaded_.inputs[i].type.child->element);
    }
    if (values[i]->is_tensor()) {
      in.element = values[i]->tensor().type();
      in.dims = values[i]->tensor().dims();
    }
    for (const Plan* plan = others; plan; plan = plan->next_) {
      if (!plan->is_apart()) in.widen(plan->signature().inputs[i]);
    }
    if (values[i]->is_tensor()) deciding_[i].fix(values[i]->tensor(), in);
  }
  return signature;
}

Result<const Plan*> PlanCache::make(Values values) {
  // Another thread may have made a plan meanwhile.
  TREADLE_ASSIGN(const Plan* const admitted, admitting(values));
  if (admitted) return admitted;
  if (const Plan* open = open_plan(values)) return make_apart(open->signature(), values);
  Signature signature;
  {
    const NoFork whole;  // guards what the session remembers of plans
    signature = signature_for(values);
  }
  return signature.is_open() ? make_for_any(signature, values) : add(std::move(signature), values, {});
}

Result<const Plan*> PlanCache::make_for_any(const Signature& signature, Values values) {
  auto taken = check_sizes(signature, values);
  auto made = taken.ok() ? add(signature, values, {.apart = false, .asks_in_run = taken->unknown_in_part})
                         : Result<const Plan*>(std::move(taken).status());
  if (made.ok()) return made;
  Status failed = std::move(made).status();
  if (failed.code() == Code::kCancelled || failed.code() == Code::kLimit) return failed;
  return make_apart(signature, values);  // a node refuses the sizes, or a lowering has to know one
}

Result<plan::SizesTaken> PlanCache::check_sizes(const Signature& signature, Values values) const {
  Signature exact = signature.narrowed(values);
  TREADLE_ASSIGN(const auto knowledge, knowledge_of(exact, loaded_.inputs, values));
  return plan::check_sizes(*loaded_.graph, knowledge, loaded_.fold_limits);
}

Result<const Plan*> PlanCache::make_apart(const Signature& signature, Values values) {
  if (apart_ == kMostApart) return nullptr;
  TREADLE_ASSIGN(const Plan* const made, add(signature.narrowed(values), values, {.apart = true}));
  ++apart_;
  return made;
}

Result<const Plan*> PlanCache::add(Signature signature, Values values, Kind kind) {
  TREADLE_ASSIGN(const auto knowledge, knowledge_of(signature, loaded_.inputs, values));
  FreshPacks if_it_throws(packs_);
  auto planned = plan(knowledge, kind.asks_in_run, packs_, &abandoned_);
  if (!planned.ok()) {
    if_it_throws.dismiss();
    return std::move(planned).status();
  }
  if (was_stopped())
    return stopped();  // the plan and its constants are freed, so the weights packed from them must
                       // not be found either
  auto made = std::make_unique<Plan>(std::move(signature), std::move(planned).value(), loaded_.options.jit_iteration,
                                     kind.apart);
  made->admit(values);
  const NoFork whole;
  made->next_ = plans_.load();
  plans_.store(made.get(), std::memory_order_release);
  ++size_;
  if_it_throws.dismiss();
  return made.release();
}

Result<Planned> PlanCache::plan(std::span<const plan::InputSpec> knowledge, bool asks_in_run,
                                const std::shared_ptr<PackCache>& packs,
                                std::unordered_map<const void*, Tensor>* abandoned) const {
  const SessionOptions& options = loaded_.options;
  const DenormalScope mode(options.denormals);  // constants are computed as runs would
  opt::PipelineOptions pipeline = loaded_.pipeline();
  pipeline.asks_in_run = asks_in_run;
  TREADLE_ASSIGN(plan::Specialized specialized, optimize(*loaded_.graph, knowledge, pipeline));
  share_weights(*specialized.graph);
  auto program = plan::make_program(specialized.graph, packs,
                                    {.optimize = options.optimize,
                                     .threads = loaded_.threads,
                                     .denormals = options.denormals,
                                     .observed = options.observed});
  if (!program.ok()) {
    if (abandoned) keep_packed(*specialized.graph, *packs, *abandoned);
    return std::move(program).status();
  }
  Planned made{std::move(program).value(), std::move(specialized.remarks), std::move(specialized.same), nullptr};
  if (options.jit != Jit::kOff && !made.program->loops.empty()) {
    made.native = std::make_shared<run::NativeLoops>(made.program, options.jit, loaded_.native_cache);
  }
  return made;
}

Result<Planned> PlanCache::plan_model() const {
  Planned made;
  LimitedWork work(loaded_.options.load, "planning");
  TREADLE_TRY(work.run([&]() -> Status {
    TREADLE_ASSIGN(made, plan(knowledge_of_model(loaded_.inputs), false, std::make_shared<PackCache>(), nullptr));
    if (made.native) made.native->make_all();
    return {};
  }));
  return made;
}

}  // namespace treadle::session

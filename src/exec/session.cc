// Sessions: loading, the plans made so far, and the pool of contexts.
//
// A plan serves a signature: element types and presence of inputs, sizes, and the contents of small integer inputs that
// decide something (a branch, a shape). The first run is planned with its exact sizes. When a later one differs in a
// size, that size becomes a symbol and the plan with symbols serves every size from then on. An input whose contents
// decide something is planned for its contents until four different ones were seen; then it is data like any other.
#include "exec/session.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <unordered_set>

#include "base/cpu.h"
#include "base/cpu_count.h"
#include "base/memory_account.h"
#include "base/no_fork.h"
#include "base/stack.h"
#include "base/thread_pool.h"
#include "base/thread_scratch.h"
#include "check/inference.h"
#include "exec/context.h"
#include "exec/deciding_inputs.h"
#include "exec/explain.h"
#include "exec/limited_work.h"
#include "exec/list_signature.h"
#include "exec/native_library.h"
#include "exec/optimize.h"
#include "exec/planning_lock.h"
#include "exec/weight_files.h"
#include "ir/nesting.h"
#include "ir/text.h"
#include "judge/judge.h"
#include "model/export.h"
#include "model/import.h"
#include "model/text_file.h"
#include "op/print.h"

namespace treadle {

namespace {

constexpr size_t kMaxDecidingElements = 8;
constexpr size_t kMaxDecidingContents = 4;
constexpr size_t kMaxIdleContexts = 32;

// Parallel to the graph's inputs; none is null.
using Values = std::span<const AnyValue* const>;

// What a plan was made for.
struct Signature {
  struct Input {
    AnyValue::Kind kind = AnyValue::Kind::kNone;
    ElementType element = ElementType::kUndefined;
    Dims dims;  // -1: any size
    bool any_rank = false;
    bool contents_fixed = false;
    std::vector<std::byte> contents;
    const void* constant = nullptr;  // the default that the plan has taken in; no other value will do
    exec::ListSignature list;
  };
  std::vector<Input> inputs;

  bool accepts(Values values) const {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Input& in = inputs[i];
      if (values[i]->kind() != in.kind) return false;
      if (in.kind == AnyValue::Kind::kSequence && !in.list.accepts(values[i]->sequence())) return false;
      if (in.kind != AnyValue::Kind::kTensor) continue;
      const Tensor& t = values[i]->tensor();
      if (t.type() != in.element) return false;
      if (!in.any_rank) {
        if (t.dims().size() != in.dims.size()) return false;
        for (size_t d = 0; d < in.dims.size(); ++d) {
          if (in.dims[d] >= 0 && in.dims[d] != t.dims()[d]) return false;
        }
      }
      if (in.constant && t.raw() != in.constant) return false;
      if (in.contents_fixed &&
          (t.byte_size() != in.contents.size() || std::memcmp(t.raw(), in.contents.data(), in.contents.size()) != 0)) {
        return false;
      }
    }
    return true;
  }
};

struct Plan {
  Signature signature;
  std::shared_ptr<const plan::Program> program;
  opt::Journal journal;                       // of what was done to its loops
  std::shared_ptr<exec::NativeLoops> native;  // null: no native code
  int64_t native_trip = 0;
  // Plans of a session are a list that grows at its head and is never shortened, so that runs walk it without a lock.
  const Plan* next = nullptr;
  // Contexts that no run is using: a place is emptied and filled by exchanging its pointer.
  mutable std::array<std::atomic<exec::Context*>, kMaxIdleContexts> idle{};

  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() {
    for (auto& place : idle) delete place.load(std::memory_order_acquire);
  }

  std::unique_ptr<exec::Context> take_context() const {
    for (auto& place : idle) {
      if (!place.load(std::memory_order_relaxed)) continue;
      if (exec::Context* context = place.exchange(nullptr, std::memory_order_acquire)) {
        return std::unique_ptr<exec::Context>(context);
      }
    }
    return std::make_unique<exec::Context>(program, native, native_trip);
  }
  void give_back(std::unique_ptr<exec::Context> context) const {
    for (auto& place : idle) {
      exec::Context* none = nullptr;
      if (place.load(std::memory_order_relaxed)) continue;
      if (!place.compare_exchange_strong(none, context.get(), std::memory_order_release)) continue;
      [[maybe_unused]] const exec::Context* const kept = context.release();  // by the place
      return;
    }
  }
};

// Packed constants are known by their addresses. Where planning throws, those of its graph may belong to others soon,
// so what was packed must not be found again: unless dismissed, this puts a new cache in the place of the old one.
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

// What a run is given, by position.
struct Given {
  std::vector<const AnyValue*> values;  // parallel to the graph's inputs
  std::vector<AnyValue> own;            // those that are not the caller's

  void clear() {
    values.clear();
    own.clear();
  }
  void reserve(size_t feeds, size_t inputs) {
    values.assign(inputs, nullptr);
    own.reserve(feeds + inputs);  // `values` may point there
  }
  const AnyValue* keep(AnyValue value) { return &own.emplace_back(std::move(value)); }
};

// What a run works in before it has a context.
struct RunScratch {
  Given given;
  std::vector<AnyValue*> outputs;  // parallel to the graph's; null: not asked for

  void clear() {
    given.clear();
    outputs.clear();
  }
};

bool dims_fit(const Type& declared, const Tensor& t) {
  if (!declared.has_shape) return true;
  if (declared.shape.size() != t.dims().size()) return false;
  for (size_t i = 0; i < t.dims().size(); ++i) {
    if (declared.shape[i].is_known() && declared.shape[i].value() != t.dims()[i]) return false;
  }
  return true;
}

// Whether `value` may be given for an input that the model declares as `declared`.
Status check_feed(const IoInfo& input, const AnyValue& value) {
  const Type& declared = input.type;
  auto mismatch = [&] {
    return error(Code::kInvalidArgument, "input '{}': expected {}, found {}", input.name, declared.to_string(),
                 value.type().to_string());
  };
  switch (declared.kind) {
    case Type::Kind::kTensor:
    case Type::Kind::kSparseTensor:
      if (!value.is_tensor() || value.tensor().type() != declared.element || !dims_fit(declared, value.tensor())) {
        return mismatch();
      }
      return {};
    case Type::Kind::kSequence:
      if (value.kind() != AnyValue::Kind::kSequence) return mismatch();
      for (const AnyValue& element : value.sequence().elements()) {
        if (!same_structure(element.type(), *declared.child)) return mismatch();
      }
      return {};
    case Type::Kind::kOptional:
      if (value.kind() != AnyValue::Kind::kOptional) return mismatch();
      if (value.optional().value && !same_structure(value.optional().value->type(), *declared.child)) return mismatch();
      return {};
    case Type::Kind::kMap:
      return value.kind() == AnyValue::Kind::kMap ? Status() : mismatch();
    case Type::Kind::kUnknown:
      return {};
  }
  return {};
}

// Sequences of the caller's, however deep, may be used by several runs at once; in-place growth needs storage of one's
// own.
bool needs_own(const AnyValue& value) {
  return value.kind() == AnyValue::Kind::kSequence || value.kind() == AnyValue::Kind::kOptional;
}

AnyValue own(const AnyValue& value) {
  if (value.kind() == AnyValue::Kind::kSequence) {
    std::vector<AnyValue> elements;
    elements.reserve(value.sequence().size());
    for (const AnyValue& element : value.sequence().elements()) elements.push_back(own(element));
    return AnyValue(Sequence(value.sequence().element_type(), std::move(elements)));
  }
  if (value.kind() == AnyValue::Kind::kOptional && value.optional().value) {
    const Optional& optional = value.optional();
    return AnyValue(Optional{optional.element_type, std::make_shared<const AnyValue>(own(*optional.value))});
  }
  return value;
}

Type without_element_shapes(const Type& type) {
  if (type.kind == Type::Kind::kTensor) return Type::tensor(type.element);
  if (!type.child) return type;
  Type out = type;
  out.child = std::make_shared<const Type>(without_element_shapes(*type.child));
  return out;
}

// What the model alone says of what bodies hand out. None where that was all of it, and is no longer: the model is cut
// into blocks, whose sizes stand for those that it states.
void record_output_types(ir::Region& region) {
  std::vector<Type> stated = std::exchange(region.output_types, {});
  stated.resize(region.outputs.size());
  for (size_t i = 0; i < stated.size(); ++i) {
    const Type type = region.outputs[i] ? region.outputs[i]->type : Type();
    region.output_types.push_back(stated[i].is_concrete() && !type.is_concrete() ? Type() : type);
  }
  for (auto& node : region.nodes) {
    for (auto& body : node->regions) record_output_types(*body);
  }
}

class JudgeGuard final : public judge::Guard {
 public:
  JudgeGuard(const RunOptions& options, const Limits& limits, MemoryAccount& account)
      : options_(options), limits_(limits), account_(account) {}
  Status trip() override {
    if (options_.trip_limit > 0 && ++trips_ > options_.trip_limit) {
      return error(Code::kLimit, "the limit of {} trips was reached", options_.trip_limit);
    }
    return step();
  }
  Status step() override {
    if (!account_.fits(0)) return account_.refusal(0, "the values that are kept");
    return limits_.check();
  }

 private:
  const RunOptions& options_;
  const Limits& limits_;
  MemoryAccount& account_;
  int64_t trips_ = 0;
};

}  // namespace

struct Session::Impl {
  SessionOptions options;
  std::shared_ptr<wire::MappedFile> file;  // of a model that is text, for errors
  std::string path;                        // of the file; empty for bytes
  int threads = 1;
  std::unique_ptr<ir::Graph> graph;  // as imported, types inferred
  std::vector<IoInfo> inputs, overridable, outputs;
  std::vector<const IoInfo*> by_position;  // parallel to the graph's inputs
  std::vector<AnyValue> defaults;          // parallel to the graph's inputs; kNone: it has none
  std::vector<bool> deciding;              // parallel to the graph's inputs: small contents decide branches or shapes
  std::vector<bool> listed;                // parallel to the graph's inputs: lists that loops read
  exec::WeightFiles files;
  std::shared_ptr<PackCache> packs = std::make_shared<PackCache>();  // of plans to come; each keeps its own
  opt::Journal journal;  // of what was done to loops when the model was loaded
  opt::PassSet passes_off;
  mutable std::mutex dump_mutex;
  mutable std::string dumped;  // what options.dump asks for
  std::shared_ptr<const exec::NativeCache> native_cache;
  std::vector<std::string> remarks;

  judge::FoldLimits fold_limits;  // of what is evaluated before the run

  exec::PlanningLock planning;
  std::vector<Tensor> abandoned;                          // constants of graphs that could not be planned
  std::atomic<const Plan*> plans{nullptr};                // the newest
  std::vector<bool> generalized;                          // per input: contents are data
  std::vector<std::vector<std::vector<std::byte>>> seen;  // per input: contents planned for
  std::atomic<int64_t> plan_count{0}, run_count{0}, last_allocations{0}, last_peak{0};

  ~Impl() {
    for (const Plan* plan = plans.load(); plan;) {
      const std::unique_ptr<const Plan> last(plan);
      plan = plan->next;
    }
  }

  // A session whose graph `read(impl)` reads.
  template <class Read>
  static Result<std::unique_ptr<Session>> load(const SessionOptions& options, Read&& read);
  Status import(std::shared_ptr<wire::MappedFile> from, const std::string& folder);
  Status prepare();
  void override_sizes();
  void remark_on_judge();
  void remark_on_compiler();
  Status fill_feeds(std::span<const Feed> feeds, Given& given) const;
  // Planned in a run, within its limits too. `since`: gets when the run's time began, unless there was a plan.
  Result<const Plan*> plan_for_run(Values values, const RunOptions& run, Limits::Clock::time_point& since);
  Result<const Plan*> find_or_make_plan(Values values);
  const Plan* find_plan(Values values) const;
  Result<const Plan*> make_plan(Values values);
  void keep_constants(const ir::Graph& unplanned);
  Signature signature_for(Values values);
  opt::PipelineOptions pipeline() const {
    opt::PipelineOptions made{.optimize = options.optimize && options.tier != Tier::kJudge,
                              .native = options.jit >= Jit::kAlways,
                              .associative = options.associative_math,
                              .half_weights = options.weights == Weights::kF16,
                              .fold_limits = fold_limits,
                              .off = passes_off};
    if (!options.dump.empty())
      made.after = [this](const opt::Pass& pass, const ir::Graph& made_by) {
        if (pass.name != options.dump) return;
        const std::lock_guard lock(dump_mutex);
        dumped = print(made_by);
      };
    return made;
  }
  Result<exec::Explanation> explain_model() const;
  exec::Explanation explain_program(const plan::Program& program, const exec::NativeLoops* native,
                                    const opt::Journal& of_plan) const;
  Status run_plan(const Plan& plan, Values values, std::span<AnyValue* const> places, const RunOptions& run,
                  Limits::Clock::time_point since);
  Status run(Values values, std::span<AnyValue* const> places, const RunOptions& run);
  Status run_judge(Values values, std::span<AnyValue* const> places, const RunOptions& run) const;
  Status in_file(Status status) const {
    if (file && !status.place().empty()) return model::in_file(std::move(status), *file);
    return path.empty() || status.place().empty() ? std::move(status) : std::move(status).in(path + ":");
  }
};

bool is_number(std::string_view text, int64_t& number) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failure == std::errc() && end == text.data() + text.size();
}

// An instruction set that there is, though this machine may lack it; a number of bytes; off.
Status check_environment() {
  int64_t bytes = 0;
  const char* room = std::getenv("TREADLE_JIT_CACHE_BYTES");
  if (room && *room && (!is_number(room, bytes) || bytes < 0)) {
    return error(Code::kInvalidArgument, "TREADLE_JIT_CACHE_BYTES takes a number of bytes, found '{}'", room);
  }
  const char* signal = std::getenv("TREADLE_SIGBUS");
  if (signal && *signal && std::string_view(signal) != "off") {
    return error(Code::kInvalidArgument, "TREADLE_SIGBUS is off or left alone, found '{}'", signal);
  }
  const char* wanted = std::getenv("TREADLE_ISA");
  if (!wanted) return {};
  std::string known;
  for (int i = 0; i < kIsaCount; ++i) {
    const std::string_view isa = name(static_cast<Isa>(i));
    if (isa == wanted) return {};
    known += fmt::format("{}{}", i > 0 ? ", " : "", isa);
  }
  return error(Code::kInvalidArgument, "TREADLE_ISA names an instruction set ({}), found '{}'", known, wanted);
}

constexpr std::pair<std::string_view, Jit> kJits[] = {
    {"off", Jit::kOff}, {"auto", Jit::kAuto}, {"always", Jit::kAlways}, {"required", Jit::kRequired}};

std::string_view name(Jit jit) {
  return std::find_if(std::begin(kJits), std::end(kJits), [&](const auto& each) { return each.second == jit; })->first;
}

std::optional<Jit> jit_named(std::string_view name) {
  for (const auto& [each, jit] : kJits) {
    if (each == name) return jit;
  }
  return std::nullopt;
}

// TREADLE_JIT=off|auto|always|required[,TRIP] and TREADLE_PASSES_OFF=PASS[,PASS...] take the place of the options where
// those were left alone.
Status read_environment(SessionOptions& options) {
  const char* off = std::getenv("TREADLE_PASSES_OFF");
  if (off && options.passes_off.empty()) options.passes_off = off;
  const char* text = std::getenv("TREADLE_JIT");
  TREADLE_TRY(check_environment());
  if (!text || !*text || options.jit != Jit::kAuto) return {};
  const std::string_view wanted(text);
  const std::string_view mode = wanted.substr(0, wanted.find(','));
  const bool has_trip = mode.size() < wanted.size();
  const std::string_view trip = has_trip ? wanted.substr(mode.size() + 1) : "0";
  const std::optional<Jit> named = jit_named(mode);
  if (!named || !is_number(trip, options.jit_trip)) {
    return error(Code::kInvalidArgument,
                 "TREADLE_JIT is off, auto, always or required, and may be followed by a comma and a "
                 "trip; found '{}'",
                 wanted);
  }
  options.jit = *named;
  return {};
}

// Sizes of the inputs that a caller may fix.
std::string free_sizes(const ir::Region& top) {
  std::vector<std::string_view> names;
  for (const ir::Value* input : top.inputs) {
    for (const Dim& size : input->type.shape) {
      const std::string_view name = size.symbol_name();
      if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

// Fixes the sizes that have these names.
void Session::Impl::override_sizes() {
  ir::Region& top = graph->top();
  const std::string free = free_sizes(top);
  for (const auto& [name, size] : options.dimension_overrides) {
    bool found = false;
    for (ir::Value* input : top.inputs) {
      for (Dim& d : input->type.shape) {
        if (d.symbol_name() != name) continue;
        d = size;
        found = true;
      }
    }
    if (found) continue;
    remarks.push_back(
        fmt::format("no input of the model has a free size named '{}' (their free sizes: {}): {} = {} has "
                    "no effect",
                    name, free, name, size));
  }
}

// What was asked for and the judge does not have.
void Session::Impl::remark_on_judge() {
  if (options.tier != Tier::kJudge) return;
  if (options.weights != Weights::kF32) remarks.emplace_back("weights = f16 has no effect in the judge");
  if (options.associative_math) remarks.emplace_back("associative_math = 1 has no effect in the judge");
  if (options.jit >= Jit::kAlways)
    remarks.push_back(fmt::format("jit = {} has no effect in the judge", name(options.jit)));
  if (!options.passes_off.empty()) {
    remarks.push_back(fmt::format("passes_off = {} has no effect in the judge", options.passes_off));
  }
  if (!options.dump.empty()) remarks.push_back(fmt::format("dump = {} has no effect in the judge", options.dump));
}

void Session::Impl::remark_on_compiler() {
  if (options.jit < Jit::kAlways) return;
  const std::string why = exec::why_damaged();
  if (!why.empty()) remarks.push_back(fmt::format("jit = {} has no effect: {}", name(options.jit), why));
}

Status Session::Impl::prepare() {
  remark_on_judge();
  TREADLE_TRY(read_environment(options));
  TREADLE_ASSIGN(passes_off, opt::PassSet::named(options.passes_off));
  if (!options.dump.empty()) TREADLE_TRY(opt::pass_named(options.dump).status());
  remark_on_compiler();
  native_cache =
      std::make_shared<exec::NativeCache>(exec::NativeCacheOptions{options.jit_cache, options.jit_cache_bytes});
  if (options.threads > kMaxThreads) {
    remarks.push_back(
        fmt::format("threads = {} has the effect of {}, the most that a run uses", options.threads, kMaxThreads));
  }
  if (const std::string problem = options.jit_cache.empty() ? "" : native_cache->why_unusable(); !problem.empty()) {
    remarks.push_back(fmt::format("jit_cache = {} has no effect: {}", options.jit_cache, problem));
  }
  threads = std::min(options.threads > 0 ? options.threads : available_cpus(), kMaxThreads);
  TREADLE_TRY(ir::check_stack(*graph));
  fold_limits =
      options.bounded_load ? judge::FoldLimits::of_model(ir::constant_bytes(*graph)) : judge::FoldLimits::none();
  ir::Region& top = graph->top();
  TREADLE_TRY(opt::run_passes(*graph, opt::Stage::kLoading, pipeline(), &journal));
  for (ir::Value* v : top.outputs) outputs.push_back({v->name, v->type, false});
  override_sizes();
  for (size_t i = 0; i < top.inputs.size(); ++i) {
    ir::Value* v = top.inputs[i];
    const bool has_default = i < graph->input_defaults.size() && graph->input_defaults[i].defined();
    (has_default ? overridable : inputs).push_back({v->name, v->type, has_default});
  }
  size_t plain = 0, with_default = 0;
  for (size_t i = 0; i < top.inputs.size(); ++i) {
    const bool has_default = i < graph->input_defaults.size() && graph->input_defaults[i].defined();
    by_position.push_back(has_default ? &overridable[with_default++] : &inputs[plain++]);
    defaults.push_back(has_default ? AnyValue(graph->input_defaults[i]) : AnyValue());
  }
  Inference inference({.fold = false, .trust_containers = true, .keep_declared = true, .check_types = true});
  TREADLE_TRY(inference.infer(top));
  record_output_types(top);
  for (size_t i = 0; i < outputs.size(); ++i) {
    auto merged = merge(outputs[i].type, top.outputs[i]->type);
    if (merged.ok()) outputs[i].type = std::move(merged).value();
  }
  deciding = exec::deciding_inputs(*graph);
  listed = exec::lists_in_loops(*graph);
  generalized.resize(top.inputs.size());
  seen.resize(top.inputs.size());
  files = exec::WeightFiles(*graph);
  return files.checked({});
}

Status Session::Impl::fill_feeds(std::span<const Feed> feeds, Given& given) const {
  const size_t count = by_position.size();
  given.reserve(feeds.size(), count);
  size_t position = 0;  // feeds tend to come in order
  for (const Feed& feed : feeds) {
    size_t looked_at = 0;
    for (; looked_at < count; ++looked_at, ++position) {
      if (position >= count) position = 0;
      if (by_position[position]->name == feed.name) break;
    }
    if (looked_at == count) {
      return error(Code::kInvalidArgument, "the model has no input '{}'", feed.name);
    }
    const size_t i = position++;
    if (feed.value->is_none()) continue;
    TREADLE_TRY(check_feed(*by_position[i], *feed.value));
    given.values[i] = needs_own(*feed.value) ? given.keep(own(*feed.value)) : feed.value;
  }
  for (size_t i = 0; i < count; ++i) {
    if (given.values[i]) continue;
    if (by_position[i]->has_default) {
      given.values[i] = &defaults[i];
    } else if (by_position[i]->type.kind == Type::Kind::kOptional) {
      given.values[i] = given.keep(Optional{*by_position[i]->type.child, nullptr});
    } else {
      return error(Code::kInvalidArgument, "input '{}' is missing: expected {}", by_position[i]->name,
                   by_position[i]->type.to_string());
    }
  }
  return {};
}

const Plan* Session::Impl::find_plan(Values values) const {
  const Plan* plan = plans.load(std::memory_order_acquire);
  while (plan && !plan->signature.accepts(values)) plan = plan->next;
  return plan;
}

Result<const Plan*> Session::Impl::find_or_make_plan(Values values) {
  if (const Plan* plan = find_plan(values)) return plan;
  const Plan* made = nullptr;
  exec::LimitedWork work(options.load, "planning");
  const auto plan = [&]() -> Status {
    exec::PlanningLock::Held lock(planning);
    TREADLE_TRY(lock.take());
    made = find_plan(values);
    if (!made) {
      TREADLE_ASSIGN(made, make_plan(values));
    }
    return {};
  };
  TREADLE_TRY(work.run(plan));
  return made;
}

Result<const Plan*> Session::Impl::plan_for_run(Values values, const RunOptions& run,
                                                Limits::Clock::time_point& since) {
  if (const Plan* plan = find_plan(values)) return plan;
  since = Limits::Clock::now();
  Limits limits;
  limits.begin(run, "run", since);
  const ThreadScope scope(1, limits.stop_check());
  auto plan = find_or_make_plan(values);
  if (plan.ok()) return plan;
  Status status = std::move(plan).status();
  if (Status reached = scope.stopped() ? limits.check() : Status(); !reached.ok()) {
    status = std::move(reached).in(status.place());
  }
  return in_file(std::move(status));
}

// The signature of the next plan: exact, but for sizes in which earlier plans differ once there are enough of them.
Signature Session::Impl::signature_for(Values values) {
  Signature signature;
  int made = 0;
  for (const Plan* plan = plans.load(); plan; plan = plan->next) ++made;
  const Plan* const others = made < options.exact_plans ? nullptr : plans.load();
  for (size_t i = 0; i < values.size(); ++i) {
    Signature::Input in;
    in.kind = values[i]->kind();
    if (listed[i] && in.kind == AnyValue::Kind::kSequence) {
      in.list = exec::ListSignature::of(values[i]->sequence(), by_position[i]->type.child->element);
      for (const Plan* plan = others; plan; plan = plan->next) in.list.widen(plan->signature.inputs[i].list);
    }
    if (values[i]->is_tensor()) {
      const Tensor& t = values[i]->tensor();
      in.element = t.type();
      in.dims = t.dims();
      for (const Plan* plan = others; plan; plan = plan->next) {
        const Signature::Input& before = plan->signature.inputs[i];
        if (before.kind != in.kind || before.any_rank) continue;
        if (before.dims.size() != in.dims.size()) continue;
        for (size_t d = 0; d < in.dims.size(); ++d) {
          if (before.dims[d] != in.dims[d]) in.dims[d] = -1;
        }
      }
      const bool small = t.element_count() <= static_cast<int64_t>(kMaxDecidingElements);
      if (deciding[i] && small && !generalized[i]) {
        const auto* data = static_cast<const std::byte*>(t.raw());
        std::vector<std::byte> contents(data, data + t.byte_size());
        if (std::find(seen[i].begin(), seen[i].end(), contents) == seen[i].end()) seen[i].push_back(contents);
        if (seen[i].size() > kMaxDecidingContents) {
          generalized[i] = true;
        } else {
          in.contents_fixed = true;
          in.contents = std::move(contents);
        }
      }
    }
    signature.inputs.push_back(std::move(in));
  }
  return signature;
}

Result<const Plan*> Session::Impl::make_plan(Values values) {
  auto made = std::make_unique<Plan>();
  {
    const NoFork whole;  // what sessions remember of plans
    made->signature = signature_for(values);
  }
  std::vector<plan::InputKnowledge> knowledge(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const Signature::Input& in = made->signature.inputs[i];
    if (in.kind != AnyValue::Kind::kTensor) {
      knowledge[i].type = without_element_shapes(by_position[i]->type);
      if (in.list.kind == exec::ListSignature::Kind::kAlike) {
        knowledge[i].type = Type::sequence(Type::tensor(by_position[i]->type.child->element, to_shape(in.list.dims)));
        knowledge[i].length = in.list.length >= 0 ? Dim(in.list.length) : Dim::symbol(by_position[i]->name + ".length");
      }
      continue;
    }
    Shape shape;
    for (size_t d = 0; d < in.dims.size(); ++d) {
      if (in.dims[d] >= 0) {
        shape.emplace_back(in.dims[d]);
      } else {
        // Sizes that the model gives one name are one symbol only where something checks that they agree: nothing does.
        shape.push_back(Dim::symbol(by_position[i]->name + "." + std::to_string(d)));
      }
    }
    knowledge[i].type = Type::tensor(in.element, std::move(shape));
    if (in.contents_fixed || by_position[i]->has_default) {
      const bool is_default = by_position[i]->has_default && !in.contents_fixed;
      const Tensor& tensor = values[i]->tensor();
      if (!is_default || tensor.raw() == graph->input_defaults[i].raw()) {
        TREADLE_ASSIGN(knowledge[i].contents, is_default ? Result<Tensor>(tensor) : tensor.clone());
        if (is_default) made->signature.inputs[i].constant = tensor.raw();
      }
    }
  }
  TREADLE_ASSIGN(plan::Specialized specialized, exec::optimize(*graph, knowledge, pipeline()));
  FreshPacks if_it_throws(packs);
  auto program = plan::make_program(specialized.graph, packs, options.optimize, threads);
  if (!program.ok()) {
    keep_constants(*specialized.graph);
    if_it_throws.dismiss();
    return std::move(program).status();
  }
  made->program = std::move(program).value();
  made->journal = std::move(specialized.journal);
  made->native_trip = options.jit_trip;
  if (options.jit != Jit::kOff && !made->program->loops.empty()) {
    made->native = std::make_shared<exec::NativeLoops>(made->program, options.jit, native_cache);
  }
  const NoFork whole;
  made->next = plans.load();
  plans.store(made.get(), std::memory_order_release);
  ++plan_count;
  if_it_throws.dismiss();
  return made.release();
}

// Packed constants are known by their addresses, which must not be used again.
void Session::Impl::keep_constants(const ir::Graph& unplanned) {
  const NoFork whole;
  ir::for_each_node(unplanned.top(), [&](const ir::Node& node) {
    for (const ir::Value* v : node.inputs) {
      if (v && v->is_constant()) abandoned.push_back(v->constant);
    }
  });
}

Status Session::Impl::run_plan(const Plan& plan, Values values, std::span<AnyValue* const> places,
                               const RunOptions& run, Limits::Clock::time_point since) {
  auto context = plan.take_context();
  Status status = context->run(values, places, run, since);
  last_allocations.store(context->allocations(), std::memory_order_relaxed);
  last_peak.store(static_cast<int64_t>(context->peak_bytes()), std::memory_order_relaxed);
  const bool misplanned = context->misplanned();
  plan.give_back(std::move(context));
  return misplanned ? run_judge(values, places, run) : in_file(std::move(status));
}

Status Session::Impl::run(Values values, std::span<AnyValue* const> places, const RunOptions& run) {
  if (options.tier == Tier::kJudge) return run_judge(values, places, run);
  Limits::Clock::time_point since{};
  TREADLE_ASSIGN(const Plan* const plan, plan_for_run(values, run, since));
  return run_plan(*plan, values, places, run, since);
}

Status Session::Impl::run_judge(Values values, std::span<AnyValue* const> places, const RunOptions& run) const {
  TREADLE_TRY(ir::check_stack(*graph));
  const auto account = MemoryAccount::make();
  account->begin(run.memory_limit);
  const MemoryScope counted(account);
  Limits limits;
  limits.begin(run, "run");
  const ThreadScope scope(1, limits.stop_check());
  JudgeGuard guard(run, limits, *account);
  std::vector<AnyValue> fed;
  for (const AnyValue* value : values) fed.push_back(*value);
  std::vector<AnyValue> made;
  Status status = within_memory([&]() -> Status {
    TREADLE_ASSIGN(made, judge::run_graph(*graph, fed, &guard));
    return {};
  });
  // What a kernel has written that was told to stop is worth nothing, and what it says of that is no news.
  if (scope.stopped()) status = std::move(limits.check()).in(status.place());
  if (!status.ok()) return in_file(std::move(status));
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i]) *places[i] = std::move(made[i]);
  }
  return {};
}

Session::Session() : impl_(std::make_unique<Impl>()) {}
Session::~Session() = default;

Status Session::Impl::import(std::shared_ptr<wire::MappedFile> from, const std::string& folder) {
  model::ImportOptions import;
  import.folder = folder;
  import.copy_weights = options.copy_weights;
  std::vector<model::ImportOptions::DenotedSize> denoted;
  for (const auto& [denotation, size] : options.denotation_overrides) denoted.push_back({denotation, size});
  if (!denoted.empty()) import.denoted_sizes = &denoted;
  TREADLE_ASSIGN(graph, model::import_model(std::move(from), import));
  for (const auto& [denotation, size, found] : denoted) {
    if (found) continue;
    remarks.push_back(fmt::format("no input of the model has a size denoted '{}': {} = {} has no effect", denotation,
                                  denotation, size));
  }
  return {};
}

template <class Read>
Result<std::unique_ptr<Session>> Session::Impl::load(const SessionOptions& options, Read&& read) {
  std::unique_ptr<Session> session(new Session);
  Impl& impl = *session->impl_;
  impl.options = options;
  exec::LimitedWork work(options.load, "loading");
  const auto read_and_prepare = [&]() -> Status {
    TREADLE_TRY(check_stack(1));
    TREADLE_TRY(read(impl));
    Status status = impl.prepare();
    return status.ok() ? std::move(status) : impl.in_file(std::move(status));
  };
  TREADLE_TRY(work.run(read_and_prepare));
  impl.options.load.cancel = nullptr;  // of this call
  return session;
}

Result<std::unique_ptr<Session>> Session::open(const std::string& path, const SessionOptions& options) {
  return Impl::load(options, [&](Impl& impl) -> Status {
    TREADLE_ASSIGN(auto file, wire::MappedFile::open(path));
    impl.path = path;
    if (ir::looks_like_text(file->bytes())) impl.file = file;
    return impl.import(std::move(file), {});
  });
}

Result<std::unique_ptr<Session>> Session::from_bytes(std::span<const std::byte> bytes, const SessionOptions& options,
                                                     const std::string& folder) {
  return Impl::load(options, [&](Impl& impl) -> Status {
    auto file = wire::MappedFile::own(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    if (ir::looks_like_text(file->bytes())) impl.file = file;
    return impl.import(std::move(file), folder);
  });
}

Result<std::unique_ptr<Session>> Session::from_graph(std::unique_ptr<ir::Graph> graph, const SessionOptions& options) {
  return Impl::load(options, [&](Impl& impl) -> Status {
    impl.graph = std::move(graph);
    return {};
  });
}

std::span<const IoInfo> Session::inputs() const {
  return impl_->inputs;
}
std::span<const IoInfo> Session::overridable() const {
  return impl_->overridable;
}
std::span<const IoInfo> Session::outputs() const {
  return impl_->outputs;
}
const ir::Metadata& Session::metadata() const {
  return impl_->graph->metadata;
}
const ir::Graph& Session::graph() const {
  return *impl_->graph;
}
std::span<const std::string> Session::remarks() const {
  return impl_->remarks;
}
const SessionOptions& Session::options() const {
  return impl_->options;
}

Status Session::run(std::span<const Feed> feeds, std::span<const size_t> outputs, std::span<AnyValue* const> results,
                    const RunOptions& options) const {
  ThreadScratch<RunScratch> scratch;
  TREADLE_TRY(impl_->fill_feeds(feeds, scratch->given));
  const Values values = scratch->given.values;
  const size_t count = impl_->outputs.size();
  const auto output = [&](size_t i) { return outputs.empty() ? i : outputs[i]; };
  std::vector<AnyValue*>& places = scratch->outputs;
  places.assign(count, nullptr);
  for (size_t i = 0; i < results.size(); ++i) {
    if (output(i) >= count) return error(Code::kInvalidArgument, "output {} of {} was asked for", output(i), count);
    if (!places[output(i)]) places[output(i)] = results[i];
  }
  impl_->run_count.fetch_add(1, std::memory_order_relaxed);
  TREADLE_TRY(impl_->files.checked(impl_->run(values, places, options)));
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i] != places[output(i)]) *results[i] = *places[output(i)];  // asked for twice
  }
  return {};
}

Status Session::run(std::span<const Feed> feeds, std::span<const size_t> outputs, std::vector<AnyValue>& results,
                    const RunOptions& options) const {
  results.resize(outputs.empty() ? impl_->outputs.size() : outputs.size());
  std::vector<AnyValue*> places;
  for (AnyValue& result : results) places.push_back(&result);
  return run(feeds, outputs, places, options);
}

Status Session::run(RepeatedRun& run, const RunOptions& options) const {
  impl_->run_count.fetch_add(1, std::memory_order_relaxed);
  for (size_t i = 0; i < run.inputs.size(); ++i) {
    if (!run.inputs[i]) run.inputs[i] = &impl_->defaults[i];
  }
  const auto* plan = static_cast<const Plan*>(run.plan);
  Limits::Clock::time_point since{};
  // What a plan accepts has sizes and types that were checked when it was made.
  if (!plan || !plan->signature.accepts(run.inputs)) {
    for (size_t i = 0; i < run.inputs.size(); ++i) {
      TREADLE_TRY(check_feed(*impl_->by_position[i], *run.inputs[i]));
    }
    auto found = impl_->plan_for_run(run.inputs, options, since);
    if (!found.ok()) return impl_->files.checked(std::move(found).status());
    run.plan = plan = *found;
  }
  return impl_->files.checked(impl_->run_plan(*plan, run.inputs, run.outputs, options, since));
}

SessionCounters Session::counters() const {
  int64_t compilations = 0, cache_loads = 0;
  for (const Plan* plan = impl_->plans.load(std::memory_order_acquire); plan; plan = plan->next) {
    if (!plan->native) continue;
    compilations += plan->native->compilations();
    cache_loads += plan->native->cache_loads();
  }
  return {impl_->plan_count.load(),
          impl_->run_count.load(),
          impl_->last_allocations.load(),
          impl_->last_peak.load(),
          compilations,
          cache_loads};
}

void Session::wait_compiled() const {
  for (const Plan* plan = impl_->plans.load(std::memory_order_acquire); plan; plan = plan->next) {
    if (plan->native) return plan->native->wait();
  }
}

// A plan of its own, with packed weights of its own, which go with it.
Result<exec::Explanation> Session::Impl::explain_model() const {
  std::vector<plan::InputKnowledge> knowledge;
  for (const IoInfo* input : by_position) {
    const bool is_tensor = input->type.kind == Type::Kind::kTensor;
    knowledge.push_back({is_tensor ? input->type : without_element_shapes(input->type), {}});
  }
  TREADLE_ASSIGN(plan::Specialized specialized, exec::optimize(*graph, knowledge, pipeline()));
  TREADLE_ASSIGN(const std::shared_ptr<const plan::Program> program,
                 plan::make_program(specialized.graph, std::make_shared<PackCache>(), options.optimize, threads));
  std::shared_ptr<exec::NativeLoops> native;
  if (options.jit != Jit::kOff && !program->loops.empty()) {
    native = std::make_shared<exec::NativeLoops>(program, options.jit, native_cache);
    native->make_all();
  }
  exec::Explanation made = explain_program(*program, native.get(), specialized.journal);
  made.is_specific = false;
  return made;
}

exec::Explanation Session::Impl::explain_program(const plan::Program& program, const exec::NativeLoops* native,
                                                 const opt::Journal& of_plan) const {
  exec::Explanation made = exec::explain(program, native, std::array{&journal, &of_plan}, exec::machine_roof());
  made.mode = options.jit;
  made.cache = native_cache->folder();
  return made;
}

Result<exec::Explanation> Session::explain(std::span<const Feed> feeds) const {
  if (impl_->options.tier == Tier::kJudge) {
    return error(Code::kInvalidArgument, "the judge runs the graph as it is: there is no plan to explain");
  }
  const Plan* plan = impl_->plans.load(std::memory_order_acquire);
  if (!feeds.empty() || (!plan && impl_->by_position.empty())) {
    Given given;
    TREADLE_TRY(impl_->fill_feeds(feeds, given));
    TREADLE_ASSIGN(plan, impl_->find_or_make_plan(given.values));
  }
  if (!plan) {
    exec::Explanation made;
    exec::LimitedWork work(impl_->options.load, "planning");
    TREADLE_TRY(work.run([&]() -> Status {
      TREADLE_ASSIGN(made, impl_->explain_model());
      return {};
    }));
    return made;
  }
  return impl_->explain_program(*plan->program, plan->native.get(), plan->journal);
}

void Session::compile() const {
  for (const Plan* plan = impl_->plans.load(std::memory_order_acquire); plan; plan = plan->next) {
    if (plan->native) plan->native->make_all();
  }
}

Result<std::string> Session::dump_graph() const {
  if (impl_->options.dump.empty()) return print(*impl_->graph);
  const std::lock_guard lock(impl_->dump_mutex);
  if (impl_->dumped.empty()) {
    return error(Code::kInvalidArgument,
                 "pass '{}' has not run: nothing is planned yet, or the options do not ask for it",
                 impl_->options.dump);
  }
  return impl_->dumped;
}

Result<std::string> Session::optimized_model() const {
  return model::export_model(*impl_->graph);
}

Result<std::string> Session::dump_plan(std::span<const Feed> feeds) const {
  Given given;
  TREADLE_TRY(impl_->fill_feeds(feeds, given));
  TREADLE_ASSIGN(const Plan* plan, impl_->find_or_make_plan(given.values));
  return plan::print(*plan->program);
}

}  // namespace treadle

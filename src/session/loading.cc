// From a model's file or bytes to what a session plans and runs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/cpu_count.h"
#include "base/knobs.h"
#include "base/stack.h"
#include "base/thread_pool.h"
#include "infer/inference.h"
#include "ir/nesting.h"
#include "ir/text.h"
#include "model/import.h"
#include "model/text_file.h"
#include "op/loop_view.h"
#include "ops/control/loop.h"
#include "run/native_library.h"
#include "session/deciding_inputs.h"
#include "session/graph_dump.h"
#include "session/limited_work.h"
#include "session/loaded.h"
#include "session/sequence_signature.h"
#include "session/shared_weights.h"

namespace treadle::session {

namespace {

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
void override_sizes(Loaded& loaded) {
  ir::Region& top = loaded.graph->top();
  const std::string free = free_sizes(top);
  for (const auto& [name, size] : loaded.options.dimension_overrides) {
    bool found = false;
    for (ir::Value* input : top.inputs) {
      for (Dim& d : input->type.shape) {
        if (d.symbol_name() != name) continue;
        d = size;
        found = true;
      }
    }
    if (found) continue;
    loaded.warnings.push_back(
        fmt::format("no input of the model has a free size named '{}' (their free sizes: {}): {} = {} has "
                    "no effect",
                    name, free, name, size));
  }
}

// Of runs whose options say no number: the CPUs that the process may use, or fewer where OMP_NUM_THREADS says so.
int default_threads(std::vector<std::string>& warnings) {
  const char* text = environment("OMP_NUM_THREADS");
  if (!text || !*text) return available_cpus();
  const auto wanted = omp_threads(text);
  if (!wanted) warnings.push_back(fmt::format("OMP_NUM_THREADS = {} has no effect: it is no number of threads", text));
  return std::min(wanted.value_or(available_cpus()), available_cpus());
}

// What the options ask of the engine, whatever the model is.
Status settle_options(Loaded& loaded) {
  SessionOptions& options = loaded.options;
  for (std::string& remark : remarks_on_reference(options)) loaded.warnings.push_back(std::move(remark));
  TREADLE_TRY(read_environment(options));
  TREADLE_ASSIGN(loaded.passes_off, opt::PassSet::named(options.passes_off));
  if (!options.dump.empty()) {
    TREADLE_TRY(check_dump(options.dump));
    if (!options.dumped) options.dumped = std::make_shared<GraphDump>();
  }
  const auto compiler = options.jit == Jit::kOff ? run::InstalledCompiler() : run::find_installed_compiler();
  if (options.jit >= Jit::kAlways && !compiler.damage.empty()) {
    loaded.warnings.push_back(fmt::format("jit = {} has no effect: {}", name(options.jit), compiler.damage));
  }
  if (!compiler.another_version.empty()) {
    loaded.warnings.push_back(fmt::format("loops do not become native code: {}", compiler.another_version));
  }
  loaded.native_cache =
      std::make_shared<run::NativeCache>(run::NativeCacheOptions{options.jit_cache, options.jit_cache_bytes});
  if (options.threads > kMaxThreads) {
    loaded.warnings.push_back(
        fmt::format("threads = {} has the effect of {}, the most that a run uses", options.threads, kMaxThreads));
  }
  if (const std::string why = options.jit_cache.empty() ? "" : loaded.native_cache->why_unusable(); !why.empty()) {
    loaded.warnings.push_back(fmt::format("jit_cache = {} has no effect: {}", options.jit_cache, why));
  }
  loaded.threads = std::min(options.threads > 0 ? options.threads : default_threads(loaded.warnings), kMaxThreads);
  return {};
}

// A trip count that leaves a body's condition nothing to end.
bool runs_once_at_most(const LoopView& loop) {
  const ir::Value* count = loop.trip_count();
  return count && count->is_constant() && count->constant.element_count() == 1 && count->constant.int64_at(0) <= 1;
}

// Loops that end behind another iteration in engines that obey the body's condition where cond is left out.
void warn_of_ignored_conditions(Loaded& loaded) {
  std::string first;
  size_t more = 0;
  ir::for_each_node(loaded.graph->top(), [&](const ir::Node& node) {
    if (node.op->control != Control::kLoop) return;
    const auto loop = LoopView::read(node);
    if (!loop.ok() || loop->condition() || runs_once_at_most(*loop) || condition_stays_true(*loop)) return;
    if (!first.empty()) {
      ++more;
    } else {
      first = fmt::format("Loop \"{}\"", node.name.view());
    }
  });
  if (first.empty()) return;
  if (more > 0) first += fmt::format(" (and {} more)", more);
  loaded.model_warnings.push_back(fmt::format(
      "{} has no cond, so the condition that its body computes is ignored, as the specification says; onnxruntime "
      "obeys that condition, and treadle does with the option loop_condition = obeyed",
      first));
}

void warn_of_waiting_nodes(const Inference& inference, Loaded& loaded) {
  for (const WaitingNode& waiting : inference.waiting()) {
    if (waiting.reach == Reach::kNever) continue;
    loaded.model_warnings.push_back(
        fmt::format("{}: {}: a run that reaches this node fails", waiting.status.place(), waiting.status.message()));
  }
}

// The graph rewritten and typed, its inputs and outputs known.
Status settle_graph(Loaded& loaded) {
  ir::Graph& graph = *loaded.graph;
  TREADLE_TRY(ir::check_stack(graph));
  loaded.fold_limits = loaded.options.bounded_load ? reference::FoldLimits::of_model(ir::constant_bytes(graph))
                                                   : reference::FoldLimits::none();
  TREADLE_TRY(opt::run_passes(graph, opt::Stage::kLoading, loaded.pipeline(), &loaded.remarks));
  ir::Region& top = graph.top();
  for (ir::Value* v : top.outputs) loaded.outputs.push_back({v->name, v->type, false});
  override_sizes(loaded);
  loaded.inputs = Inputs(graph);
  Inference inference(
      {.fold = false, .trust_containers = true, .keep_declared = true, .check_types = true, .sizes_wait = true});
  TREADLE_TRY(inference.infer(top));
  warn_of_waiting_nodes(inference, loaded);
  TREADLE_TRY(opt::run_passes(graph, opt::Stage::kTyped, loaded.pipeline(), &loaded.remarks));
  record_output_types(top);
  for (size_t i = 0; i < loaded.outputs.size(); ++i) {
    auto merged = merge(loaded.outputs[i].type, top.outputs[i]->type);
    if (merged.ok()) loaded.outputs[i].type = std::move(merged).value();
  }
  warn_of_ignored_conditions(loaded);
  loaded.deciding = deciding_inputs(graph);
  loaded.listed = sequences_in_loops(graph);
  share_weights(graph);
  if (loaded.options.observed) {
    number_values(graph);
    loaded.values = std::make_unique<const ModelValues>(graph);
  }
  loaded.files = WeightFiles(graph);
  return loaded.files.checked({});
}

Status import(const std::shared_ptr<wire::MappedFile>& from, const std::string& folder, Loaded& loaded) {
  if (ir::looks_like_text(from->bytes())) loaded.text = from;
  model::ImportOptions import;
  import.folder = folder;
  import.copy_weights = loaded.options.copy_weights;
  import.obey_loop_conditions = loaded.options.obey_loop_conditions;
  import.warnings = &loaded.model_warnings;
  std::vector<model::ImportOptions::DenotedSize> denoted;
  for (const auto& [denotation, size] : loaded.options.denotation_overrides) denoted.push_back({denotation, size});
  if (!denoted.empty()) import.denoted_sizes = &denoted;
  std::vector<model::ImportOptions::GivenInitializer> initializers;
  for (const auto& [name, contents] : loaded.options.initializers) initializers.push_back({name, contents});
  if (!initializers.empty()) import.initializers = &initializers;
  for (const auto& [location, bytes] : loaded.options.external_files) {
    const std::string_view contents(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    import.files.emplace_back(location, wire::MappedFile::share(contents));
  }
  loaded.options.external_files.clear();  // of this call
  if (const auto& own = loaded.options.operators; !own.empty()) {
    import.operators = [&own](std::string_view domain, std::string_view name) -> const OpDef* {
      const auto it = std::find_if(own.rbegin(), own.rend(),
                                   [&](const auto& op) { return op->domain == domain && op->name == name; });
      return it == own.rend() ? nullptr : it->get();
    };
  }
  TREADLE_ASSIGN(loaded.graph, model::import_model(from, import));
  TREADLE_TRY(ir::check_stack(*loaded.graph));
  loaded.fingerprint = fingerprint(*loaded.graph);
  for (const auto& given : initializers) {
    if (given.found) continue;
    loaded.warnings.push_back(
        fmt::format("the model has no initializer '{}': the one that was given has no effect", given.name));
  }
  for (const auto& [denotation, size, found] : denoted) {
    if (found) continue;
    loaded.warnings.push_back(fmt::format("no input of the model has a size denoted '{}': {} = {} has no effect",
                                          denotation, denotation, size));
  }
  return {};
}

// `read()` gives the graph.
template <class Read>
Status load(Loaded& loaded, Read&& read) {
  LimitedWork work(loaded.options.load, "loading");
  const auto read_and_settle = [&]() -> Status {
    TREADLE_TRY(check_stack(1));
    TREADLE_TRY(read());
    Status status = settle_options(loaded);
    const DenormalScope mode(loaded.options.denormals);  // constants are computed as runs would
    if (status.ok()) status = settle_graph(loaded);
    return loaded.in_file(std::move(status));
  };
  TREADLE_TRY(work.run(read_and_settle));
  loaded.options.load.cancel = nullptr;  // of this call
  return {};
}

}  // namespace

opt::PipelineOptions Loaded::pipeline() const {
  opt::PipelineOptions made{.optimize = options.optimize && options.tier != Tier::kReference,
                            .native = options.jit >= Jit::kAlways,
                            .compiles = options.jit != Jit::kOff,
                            .associative = options.associative_math,
                            .half_weights = options.weights == Weights::kF16,
                            .fold_limits = fold_limits,
                            .off = passes_off};
  if (options.dumped) options.dumped->watch(options.dump, made);
  return made;
}

Status Loaded::in_file(Status status) const {
  if (status.ok() || status.place().empty()) return status;
  if (text) return model::in_file(std::move(status), *text);
  return path.empty() ? std::move(status) : std::move(status).in(path + ":");
}

Status load_file(const std::string& path, Loaded& loaded) {
  return load(loaded, [&]() -> Status {
    TREADLE_ASSIGN(auto file, wire::MappedFile::open(path));
    loaded.path = path;
    return import(file, {}, loaded);
  });
}

Status load_bytes(std::span<const std::byte> bytes, const std::string& folder, Loaded& loaded) {
  return load(loaded, [&]() -> Status {
    auto file = wire::MappedFile::share({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    Status status = import(file, folder, loaded);
    if (status.code() != Code::kNoSuchFile) return status;
    return error(status.code(),
                 "{}: the model was given as bytes, and the entry "
                 "session.model_external_initializers_file_folder_path (folder in C) names the folder of its data",
                 status.message())
        .in(status.place());
  });
}

Status load_graph(std::unique_ptr<ir::Graph> graph, Loaded& loaded) {
  return load(loaded, [&]() -> Status {
    loaded.graph = std::move(graph);
    return {};
  });
}

}  // namespace treadle::session

#include "opt/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/stop.h"
#include "ir/nesting.h"
#include "op/node.h"
#include "opt/bytes.h"
#include "opt/sequence_elements.h"

namespace treadle::opt {

namespace {

template <void (*kPass)(ir::Graph&, Remarks*)>
bool plain(ir::Graph& graph, Remarks* remarks, const PipelineOptions&) {
  kPass(graph, remarks);
  return false;
}

template <void (*kPass)(ir::Graph&, Remarks*, const reference::FoldLimits&)>
bool limited(ir::Graph& graph, Remarks* remarks, const PipelineOptions& options) {
  kPass(graph, remarks, options.fold_limits);
  return false;
}

bool read_lists(ir::Graph& graph, Remarks* remarks, const PipelineOptions& options) {
  if (!read_lists_as_tensors(graph, options.list_lengths, remarks)) return false;
  remove_dead_nodes(graph, remarks);
  return true;
}

// In native code, a small product costs less inside of the loop than passing its result in.
bool batch(ir::Graph& graph, Remarks* remarks, const PipelineOptions& options) {
  (options.native ? batch_large_products : batch_products)(graph, remarks);
  return false;
}

bool regroup(ir::Graph& graph, Remarks* remarks, const PipelineOptions& options) {
  reassociate(graph, remarks, options.compiles);
  return false;
}

// Limit of the length of a chain of loops over lists, each of which waits for the loop that makes its list.
constexpr int kMostRounds = 16;

constexpr Pass kPasses[] = {
    {"sum-in-integers", Stage::kLoading, plain<sum_in_integers>,
     "before fold-constants, which makes floats of the weights' bytes"},
    {"keep-byte-weights", Stage::kLoading, limited<keep_byte_weights>,
     "behind sum-in-integers, whose products want no floats at all; before fold-constants, which makes floats",
     [](const PipelineOptions& o) { return o.optimize && !o.half_weights; }},
    {"fold-constants", Stage::kLoading, limited<fold_constants>,
     "what becomes a constant is what all later passes look for"},
    {"fold-batch-normalization", Stage::kLoading, plain<fold_batch_normalization>,
     "behind fold-constants, which makes its operands constants"},
    {"replace-cast-like", Stage::kTyped, plain<replace_cast_like>, "all later passes have one operator to look for"},
    {"mark-recurrent", Stage::kLowering, plain<mark_recurrent>,
     "before operators are lowered: narrow-weights knows the products that they become by the mark",
     [](const PipelineOptions& o) { return o.half_weights; }},
    {"drop-unread-nodes", Stage::kLowering, plain<remove_dead_nodes>,
     "before operators are lowered: the run is not asked about sizes of nodes that nothing reads",
     [](const PipelineOptions& o) { return o.asks_in_run; }},
    {"read-sequences", Stage::kSpecializing, read_lists,
     "sizes follow from lists that became tensors, and all passes below ask for sizes"},
    {"drop-decided-nodes", Stage::kPlanning, plain<remove_dead_nodes>,
     "before all that counts uses: specialisation leaves what its constants and chosen branches no longer read",
     [](const PipelineOptions&) { return true; }},
    {"narrow-weights", Stage::kPlanning, plain<narrow_weights>,
     "before any product leaves its loop: which weights are rounded depends on the model alone",
     [](const PipelineOptions& o) { return o.half_weights; }},
    {"remove-identities", Stage::kPlanning, plain<remove_identities>, "identities hide what the passes below look for"},
    {"drop-kept-states", Stage::kPlanning, plain<drop_kept_states>,
     "behind remove-identities, which may stand where a state is handed on; before all that looks for constants in "
     "loops"},
    {"unstack-states", Stage::kPlanning, plain<unstack_states>,
     "before all that looks at states: positions and velocities that one tensor held are states of their own"},
    {"take-stacked-parts", Stage::kPlanning, plain<take_stacked_parts>,
     "behind unstack-states, which stacks the states again for who read them"},
    {"reshape-transposes", Stage::kPlanning, plain<reshape_transposes>,
     "before simplify-products, which sees through Reshape and not through Transpose"},
    {"expand-nodes", Stage::kPlanning, plain<expand_nodes>,
     "before select-branches and hoist-invariants, which look at each step alone: of several operands some may be "
     "invariant"},
    {"simplify-products", Stage::kPlanning, plain<simplify_products>,
     "before hoist-invariants: a constant that it transposes leaves the loop"},
    {"select-branches", Stage::kPlanning, plain<select_branches>,
     "before hoist-invariants, which leaves nodes of branches where they are"},
    {"hoist-invariants", Stage::kPlanning, plain<hoist_invariants>,
     "before merge-common-nodes: equal nodes of two loops meet in front of them"},
    {"merge-common-nodes", Stage::kPlanning, plain<merge_common_nodes>, "before loops are copied"},
    {"scan-counted-loops", Stage::kPlanning, plain<scan_counted_loops>, "the passes below work on Scans", nullptr,
     true},
    {"unroll-single-iterations", Stage::kPlanning, plain<unroll_single_iterations>,
     "behind scan-counted-loops; a loop that is gone needs none of the passes below"},
    {"reassociate", Stage::kPlanning, regroup,
     "behind scan-counted-loops, which knows sums of the counter by their form"},
    {"run-maps-at-once", Stage::kPlanning, plain<run_maps_at_once>,
     "before batch-products: of a map the whole body leaves"},
    {"batch-products", Stage::kPlanning, batch, "before sink-outputs, which moves what reads states as well"},
    {"solve-recurrences", Stage::kPlanning, plain<solve_recurrences>,
     "behind batch-products, since products are not elementwise; before sink-outputs, whose nodes it takes along",
     [](const PipelineOptions& o) { return o.optimize && o.associative; }},
    {"sink-outputs", Stage::kPlanning, plain<sink_outputs>, "last of what empties loops: it takes what is left"},
    {"fuse-convolutions", Stage::kPlanning, plain<fuse_convolutions>,
     "behind all that brings convolutions and what follows them out of loops"},
    {"compute-on-bytes", Stage::kPlanning, plain<compute_on_bytes>,
     "before fuse-integer-products: a QuantizeLinear moves in front of what moves elements, next to a product"},
    {"fuse-integer-products", Stage::kPlanning, plain<fuse_integer_products>, "behind all that moves products"},
    {"fuse-transposes", Stage::kPlanning, plain<fuse_transposes>, "behind all that moves products"},
    {"fuse-attention", Stage::kPlanning, plain<fuse_attention>,
     "behind fuse-transposes, which leaves its products without copies of their operands"},
    {"read-byte-weights", Stage::kPlanning, limited<read_byte_weights>,
     "behind all that looks for MatMul and Gemm; products that it leaves alone read floats again"},
    {"lay-channels-last", Stage::kPlanning, plain<lay_channels_last>,
     "behind fuse-convolutions, which decides what a convolution reads, and all that moves nodes"},
    {"remove-dead-nodes", Stage::kPlanning, plain<remove_dead_nodes>, "takes what the others left behind"},
    {"append-to-picked-rows", Stage::kPlanning, plain<append_to_picked_rows>,
     "behind remove-dead-nodes: a state that somebody else reads, for nothing or not, stays as it is"},
};
static_assert(std::size(kPasses) <= 64);  // the number of bits of PassSet

}  // namespace

std::span<const Pass> passes() {
  return kPasses;
}

Result<size_t> pass_named(std::string_view name) {
  const auto found =
      std::find_if(std::begin(kPasses), std::end(kPasses), [&](const Pass& p) { return p.name == name; });
  if (found != std::end(kPasses)) return static_cast<size_t>(found - std::begin(kPasses));
  std::string known;
  for (const Pass& pass : kPasses) known += fmt::format("{}{}", known.empty() ? "" : ", ", pass.name);
  return error(Code::kInvalidArgument, "there is no pass '{}' (passes: {})", name, known);
}

Result<PassSet> PassSet::named(std::string_view names) {
  PassSet set;
  while (!names.empty()) {
    const size_t comma = std::min(names.find(','), names.size());
    TREADLE_ASSIGN(const size_t pass, pass_named(names.substr(0, comma)));
    set.insert(pass);
    names.remove_prefix(std::min(comma + 1, names.size()));
  }
  return set;
}

bool is_on(const Pass& pass, const PipelineOptions& options) {
  const bool wanted = pass.wanted ? pass.wanted(options) : options.optimize;
  return wanted && !options.off.contains(static_cast<size_t>(&pass - std::begin(kPasses)));
}

bool is_on(std::string_view name, const PipelineOptions& options) {
  return is_on(kPasses[pass_named(name).value()], options);
}

namespace {

// Returns whether types are out of date.
Result<bool> run_once(ir::Graph& graph, Stage stage, const PipelineOptions& options, Remarks* remarks) {
  bool any_old = false;
  for (const Pass& pass : kPasses) {
    if (pass.stage != stage || !is_on(pass, options)) continue;
    if (options.before) options.before(pass, graph);
    any_old |= pass.run(graph, remarks, options);
    if (stop_requested()) return stopped();
    TREADLE_ASSERT(ir::verify(graph).ok() && has_all_defaults(graph.top()));
    if (pass.nests) TREADLE_TRY(ir::check_stack(graph));
    if (options.after) options.after(pass, graph);
  }
  return any_old;
}

}  // namespace

Status run_passes(ir::Graph& graph, Stage stage, const PipelineOptions& options, Remarks* remarks,
                  const std::function<Status()>& find_types) {
  for (int round = 0; round < kMostRounds; ++round) {
    TREADLE_ASSIGN(const bool are_types_old, run_once(graph, stage, options, remarks));
    if (!are_types_old) break;
    TREADLE_ASSERT(find_types != nullptr);
    TREADLE_TRY(find_types());
  }
  return {};
}

}  // namespace treadle::opt

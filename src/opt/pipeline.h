#pragma once
// All rewrites by name, in the order in which they run, each with the reason for its place (pipeline.cc). Loading
// (session/loading.cc), specialisation (plan/specialize.h) and planning (session/optimize.h) run those of their stages.
// Any of them can be switched off, and the graph behind any of them looked at.

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "opt/passes.h"

namespace treadle::opt {

// Some of the passes.
class PassSet {
 public:
  // "", or names with commas between them. An unknown name is kInvalidArgument, with the names that there are.
  static Result<PassSet> named(std::string_view names);

  void insert(size_t pass) { bits_ |= uint64_t{1} << pass; }
  bool contains(size_t pass) const { return bits_ >> pass & 1; }
  bool empty() const { return bits_ == 0; }

 private:
  uint64_t bits_ = 0;
};

struct Pass;

struct PipelineOptions {
  bool optimize = true;       // off: only passes that a caller asks for by another option
  bool native = false;        // loops will be native code
  bool compiles = false;      // loops may become native code
  bool associative = false;   // sums of floats may be put together in another order
  bool half_weights = false;  // weights of recurrences in float16
  // What is lowered without its sizes being known stands behind a CheckSizes (ops/control/check_sizes.cc).
  bool asks_in_run = true;
  reference::FoldLimits fold_limits = {};
  PassSet off = {};
  // Of the lists that the caller gives, parallel to the graph's inputs; unknown where elements may differ in shape.
  std::vector<Dim> list_lengths = {};
  // If given, called in front of each pass that runs, and behind it.
  std::function<void(const Pass&, const ir::Graph&)> before = {}, after = {};
};

enum class Stage : uint8_t {
  kLoading,       // once, when a model is loaded; without types
  kTyped,         // once, when a model is loaded and inference has found types
  kLowering,      // in front of specialisation, which lowers operators (plan/specialize.h)
  kSpecializing,  // in turns with specialisation, which finds the types that follow, until none do
  kPlanning,      // on the specialised graph
};

struct Pass {
  std::string_view name;  // "hoist-invariants"
  Stage stage;
  // Returns whether it has left types old, so that more may follow from new ones: kSpecializing only.
  bool (*run)(ir::Graph&, Remarks*, const PipelineOptions&);
  std::string_view reason;                           // why it stands where it stands
  bool (*wanted)(const PipelineOptions&) = nullptr;  // null: where `optimize` is on
  bool nests = false;                                // puts loops into branches, so the graph gets deeper
};

// In their order.
std::span<const Pass> passes();
// kInvalidArgument names those that there are.
Result<size_t> pass_named(std::string_view name);
// Whether the options ask for it.
bool is_on(const Pass& pass, const PipelineOptions& options);
bool is_on(std::string_view name, const PipelineOptions& options);  // of a pass that there is

// Runs the passes of a stage. Where one of them leaves types old, `find_types` finds the new ones, and all passes of
// the stage run again. Errors: stopped(), what ir::check_stack says of loops that were put into branches, and those of
// `find_types`.
Status run_passes(ir::Graph& graph, Stage stage, const PipelineOptions& options, Remarks* remarks,
                  const std::function<Status()>& find_types = {});

}  // namespace treadle::opt

#pragma once
// All rewrites by name, in the order in which they run, each with the reason for its position (pipeline.cc). Loading
// (session/loading.cc), specialisation (plan/specialize.h) and planning (session/optimize.h) run the passes of their
// stages. Each pass can be switched off, and the graph behind it can be dumped.

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "opt/passes.h"

namespace treadle::opt {

// A set of passes.
class PassSet {
 public:
  // `names`: "", or names with commas between them. An unknown name is the error kInvalidArgument, which lists the
  // valid names.
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
  bool associative = false;   // sums of floats may be computed in another order
  bool half_weights = false;  // weights of recurrences in float16
  // A node that is lowered before its sizes are known gets a CheckSizes in front (ops/control/check_sizes.cc).
  bool asks_in_run = true;
  reference::FoldLimits fold_limits = {};
  PassSet off = {};
  // Lengths of the sequences that the caller gives, parallel to the graph's inputs; unknown if elements may differ in
  // shape.
  std::vector<Dim> list_lengths = {};
  // If given, called before and after each pass that runs.
  std::function<void(const Pass&, const ir::Graph&)> before = {}, after = {};
};

enum class Stage : uint8_t {
  kLoading,       // once, when a model is loaded; types are not known
  kTyped,         // once, when a model is loaded, after inference
  kLowering,      // before specialisation, which lowers operators (plan/specialize.h)
  kSpecializing,  // alternates with specialisation, which infers types, until no pass changes types
  kPlanning,      // on the specialised graph
};

struct Pass {
  std::string_view name;  // "hoist-invariants"
  Stage stage;
  // Returns whether types are out of date; then passes of kSpecializing run again after inference.
  bool (*run)(ir::Graph&, Remarks*, const PipelineOptions&);
  std::string_view reason;                           // the reason for its position
  bool (*wanted)(const PipelineOptions&) = nullptr;  // null: runs if `optimize` is on
  bool nests = false;                                // puts loops into branches, so the graph gets deeper
};

// All passes in order.
std::span<const Pass> passes();
// The error kInvalidArgument lists the valid names.
Result<size_t> pass_named(std::string_view name);
// Whether the options ask for the pass.
bool is_on(const Pass& pass, const PipelineOptions& options);
bool is_on(std::string_view name, const PipelineOptions& options);  // `name` must be valid

// Runs the passes of a stage. If a pass leaves types out of date, `find_types` infers them, and all passes of the stage
// run again. Errors: stopped(); errors of ir::check_stack after loops were put into branches; errors of `find_types`.
Status run_passes(ir::Graph& graph, Stage stage, const PipelineOptions& options, Remarks* remarks,
                  const std::function<Status()>& find_types = {});

}  // namespace treadle::opt

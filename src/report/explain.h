#pragma once
// A report on the loops of a program: how each one runs, and what keeps it from running faster.

#include <span>
#include <string>
#include <vector>

#include "opt/remarks.h"
#include "plan/program.h"
#include "report/measured.h"
#include "report/roofline.h"
#include "report/text_layout.h"
#include "run/native.h"
#include "session/session.h"

namespace treadle::report {

// A node and a remark about it.
struct NodeRemark {
  std::string node, op, remark;
};

// The time of a node, measured or estimated.
struct NodeCost {
  std::string node, op, method;  // of a group: its last node, and all operators joined by "+"
  int loop = -1;                 // index of the innermost loop around it; -1: none
  double ns = 0;                 // in an iteration of that loop (LoopReport), in a run (Explanation)
};

struct LoopReport {
  std::string node, op;     // "/decoder/Loop_3", "Loop"
  int parent = -1;          // index of the enclosing loop in the list
  int64_t iterations = -1;  // -1: unknown, and no run was made; with inputs, the average over the runs
  size_t states = 0, scan_inputs = 0, scan_outputs = 0;
  size_t state_bytes = 0;             // of states with planned sizes
  size_t unsized_states = 0;          // number of other states
  std::vector<std::string> beside;    // loops that can run at the same time (plan/pipelines.h)
  int64_t beside_iterations = 0;      // iterations per strip then
  std::vector<NodeRemark> in_strips;  // nodes that run in front of the loop, for one strip of its iterations
                                      // (plan/strip_mining.h)
  int64_t strip_iterations = 0;       // iterations per strip; 0: no strips

  std::vector<opt::Remark> rewrites;  // in the order in which they were made

  enum class Tier : uint8_t {
    kProgram,  // instruction by instruction
    kChain,    // one instruction of the program
    kNative,
    kInside,  // part of the native code of an enclosing loop
  };
  Tier tier = Tier::kProgram;
  run::NativeLoops::State native;  // the loop's own code
  std::string why_not_native;      // empty if it is native
  size_t operations = 0;           // operations that native code writes out, or could; each operation of a group counts
  std::vector<NodeRemark> calls;   // kernels that native code calls, and the reasons
  std::vector<NodeRemark> obstacles;  // nodes that need the engine's help, or keep the loop from being native code

  // Per iteration, inner loops included (with one iteration if their number is unknown).
  double flops = 0;                 // an elementwise function counts as several
  double bytes = 0;                 // bytes that are touched, each once
  double traffic = 0;               // bytes read and written by all instructions
  bool is_complete = true;          // false: parts of unknown size are missing in the figures
  std::vector<NodeRemark> unsized;  // nodes that are missing for this reason
  double estimated_ns = 0;          // a lower bound if not complete; includes measured nodes
  double measured_ns = 0;           // part of the estimate: nodes measured in a run with the given inputs
  double roof_ns = 0;               // a lower bound if not complete
  double outside_ns = 0;  // part of the estimate: nodes of the body that run outside of the loop, for all iterations at
                          // once
  size_t outside = 0;     // number of such nodes
  std::vector<NodeCost> nodes;       // of the body, without inner loops
  double iterations_in_run = 0;      // all times together; an assumption if Explanation::assumes_iterations
  double run_ns = 0;                 // estimated time of all iterations in a run, inner loops included
  double runs_until_native = -1;     // of the same sizes, until it is compiled; -1: unknown, or never
  std::vector<NodeRemark> unroofed;  // nodes of unknown size, measured or not, which the roof leaves out
  enum class Bound : uint8_t { kArithmetic, kMemory, kStates };
  Bound bound = Bound::kArithmetic;  // which of the roof's parts is the longest, without inner loops
};

// Iterations that loops of unknown length count with where their share of a run is told.
inline constexpr double kAssumedIterations = 100;

// How many instructions run kernels of `op` by `method` (Kernel::method).
struct MethodCount {
  std::string op, method;
  size_t count = 0;
};

struct Explanation {
  Jit mode = Jit::kAuto;    // the session's option, whether or not the program has loops
  std::string cache;        // folder of the cache of native code; empty: none
  bool is_specific = true;  // the plan is for given inputs, not only for the types that the model declares
  size_t instructions = 0;  // of the whole program
  size_t guarded = 0;       // instructions that are prepared during the run
  size_t arena_bytes = 0;
  std::vector<MethodCount> methods;     // in order of names
  std::vector<NodeCost> nodes;          // of the whole program, the longest times first
  double measured_run_ns = 0;           // the fastest of a few runs with the given inputs; 0: nothing ran
  double estimated_run_ns = 0;          // the sum of outer loops and of nodes outside of loops
  double outside_ns = 0;                // part of it: nodes outside of loops
  bool assumes_iterations = false;      // kAssumedIterations stand for numbers that only the run knows
  std::vector<std::string> open_sizes;  // names of sizes that inputs leave open; empty for given inputs
  std::vector<LoopReport> loops;        // outer loops precede inner ones
  std::vector<opt::Remark> maps;        // loops that rewrites have removed
};

// `native`: null if there is no native code. `all_remarks`: from loading and from planning. `measured`: null if nothing
// has run. Leaves the session's part (`mode`, `cache`) unset.
Explanation explain(const plan::Program& program, const run::NativeLoops* native,
                    std::span<const opt::Remarks* const> all_remarks, const Roofline& roof, const Measured* measured);

// Explains the plan for these feeds; if it has loops, it is run a few times. Without feeds, explains the newest plan.
// If nothing has run either, explains a plan for the types that the model declares, with its loops compiled. Errors:
// those of planning, and kInvalidArgument for the reference interpreter.
Result<Explanation> explain(const Session& session, std::span<const Feed> feeds = {});

// Begins with the answers: the time of a run, the loops and nodes that take it, and what would help. Then each loop.
std::string to_text(const Explanation& explanation, const TextOptions& options = {});
std::string to_json(const Explanation& explanation);

}  // namespace treadle::report

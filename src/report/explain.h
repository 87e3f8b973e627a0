#pragma once
// What has become of the loops of a program, and what stood in the way of more.

#include <span>
#include <string>
#include <vector>

#include "opt/remarks.h"
#include "plan/program.h"
#include "report/measured.h"
#include "report/roofline.h"
#include "run/native.h"
#include "session/session.h"

namespace treadle::report {

// A node and what is said about it.
struct NodeRemark {
  std::string node, op, remark;
};

struct LoopReport {
  std::string node, op;  // "/decoder/Loop_3", "Loop"
  int parent = -1;       // the loop around it, by its place in the list
  int64_t trips = -1;    // -1: known only in the run, and none was made; with inputs those of the run, on average
  size_t states = 0, scan_inputs = 0, scan_outputs = 0;
  size_t state_bytes = 0;           // of those whose size is planned
  size_t unsized_states = 0;        // the others
  std::vector<std::string> beside;  // loops that can run at the same time (plan/pipelines.h)
  int64_t beside_trips = 0;         // in blocks of so many trips
  std::vector<NodeRemark> blocked;  // what runs in front of the loop, for a block of its trips (plan/strip_mining.h)
  int64_t block_trips = 0;          // 0: nothing does

  std::vector<opt::Remark> rewrites;  // in the order in which they were made

  enum class Tier : uint8_t {
    kProgram,  // instruction by instruction
    kChain,    // one instruction of the program
    kNative,
    kInside,  // part of the native code of a loop around it
  };
  Tier tier = Tier::kProgram;
  run::NativeLoops::State native;     // of this loop's own code
  std::string why_not_native;         // empty where it is
  size_t operations = 0;              // that are, or could be, written out in native code; groups count all of theirs
  std::vector<NodeRemark> calls;      // kernels that are called, and why they are not in the code
  std::vector<NodeRemark> obstacles;  // what runs by the engine, or keeps the loop from being native code

  // Of one trip, those of loops inside included (where the number of their trips is known; else one is counted).
  double flops = 0;                 // elementwise functions count as several
  double bytes = 0;                 // touched, each once
  double traffic = 0;               // read and written by all instructions together
  bool is_complete = true;          // false: the figures leave out what has sizes that only the run knows
  std::vector<NodeRemark> unsized;  // nodes that are left out for that
  double estimated_ns = 0;          // not complete: at least; nodes that were measured are in it
  double measured_ns = 0;           // of that: nodes that were measured in a run with the given inputs
  double roof_ns = 0;               // not complete: at least
  double outside_ns = 0;  // of the estimate: nodes of the body that run outside of the loop, for all trips at once
  size_t outside = 0;     // so many
  std::vector<NodeRemark> unroofed;  // nodes of unknown sizes, also those that were measured: the roof leaves them out
  enum class Bound : uint8_t { kArithmetic, kMemory, kStates };
  Bound bound = Bound::kArithmetic;  // what the roof is made of, but for loops inside
};

struct Explanation {
  Jit mode = Jit::kAuto;    // of the session, whether or not the program has loops
  std::string cache;        // the folder of native code; empty: none
  bool is_specific = true;  // of a plan for inputs that were given, not for what the model says alone
  size_t instructions = 0;  // of the whole program
  size_t guarded = 0;       // of these, prepared in the run
  size_t arena_bytes = 0;
  std::vector<LoopReport> loops;  // outer ones before those inside
  std::vector<opt::Remark> maps;  // loops that are none any more
};

// `native` may be null: no native code. `all_remarks`: what was done when the model was loaded, and while planning.
// `measured`: null where nothing has run. What only the session knows (`mode`, `cache`) stays as it is.
Explanation explain(const plan::Program& program, const run::NativeLoops* native,
                    std::span<const opt::Remarks* const> all_remarks, const Roofline& roof, const Measured* measured);

// What became of a session's loops: of the plan for these feeds, with which it is run a few times if it has loops;
// without feeds of the newest plan. Before the first run, and without feeds, of a plan for what the model says of its
// inputs, whose loops are compiled for this. Errors: those of planning, and kInvalidArgument for the reference
// interpreter.
Result<Explanation> explain(const Session& session, std::span<const Feed> feeds = {});

std::string to_text(const Explanation& explanation);
std::string to_json(const Explanation& explanation);

}  // namespace treadle::report

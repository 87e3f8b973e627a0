#pragma once
// The table of all that changes how treadle works and is no part of a model: options of sessions and of runs,
// environment variables. `treadle options` prints it, and docs/options.md has the same rows. A variable without a row
// cannot be read: environment() does not compile with its name.

#include <cstdlib>
#include <string_view>

namespace treadle {

struct Knob {
  enum class Kind : unsigned char { kSession, kRun, kVariable };
  Kind kind{};
  std::string_view name;
  std::string_view values;
  std::string_view otherwise;  // the value while the option or variable is not set
  std::string_view meaning;
  std::string_view where;      // it applies
  std::string_view page = {};  // of docs, that says more
};

namespace knobs {

inline constexpr Knob::Kind kSession = Knob::Kind::kSession, kRun = Knob::Kind::kRun, kVariable = Knob::Kind::kVariable;
inline constexpr std::string_view kEverywhere = "Python, C, C++, tool", kAll = "every program", kTool = "tool",
                                  kPython = "Python", kTests = "every program; for tests of treadle";

}  // namespace knobs

// Options of sessions in the order in which errors name them.
inline constexpr Knob kKnobs[] = {
    {knobs::kSession, "tier", "program, reference", "program",
     "how models run: as planned programs, or node by node in the reference interpreter", knobs::kEverywhere,
     "glossary.md"},
    {knobs::kSession, "threads", "0 to 4096", "0",
     "threads that a run may use; 0: as many as the CPUs that the process may use, or as OMP_NUM_THREADS says",
     knobs::kEverywhere},
    {knobs::kSession, "optimize", "0, 1", "1", "whether rewrites change the graph before it is planned",
     knobs::kEverywhere, "native.md"},
    {knobs::kSession, "associative_math", "0, 1", "0",
     "whether sums of floats over time may be added in another order, so that linear recurrences run in blocks of "
     "steps",
     knobs::kEverywhere, "native.md"},
    {knobs::kSession, "weights", "f32, f16", "f32",
     "whether the weights of RNN, LSTM, GRU and of products in loops are rounded to float16", knobs::kEverywhere,
     "native.md"},
    {knobs::kSession, "weight_files", "map, copy", "map",
     "whether weights are read in the model's files, which must then stay as they are, or copied when a session opens",
     knobs::kEverywhere, "files.md"},
    {knobs::kSession, "denormals", "keep, flush", "keep",
     "whether arithmetic keeps numbers nearer to 0 than any normal one, as far as the calling thread does, or takes "
     "them "
     "for 0",
     knobs::kEverywhere, "numerics.md"},
    {knobs::kSession, "loop_condition", "ignored, obeyed", "ignored",
     "whether the body of a Loop without cond ends the Loop; the specification ignores its condition, onnxruntime "
     "obeys "
     "it",
     knobs::kEverywhere, "strictness.md"},
    {knobs::kSession, "jit", "off, auto, always, required", "auto",
     "when loops become native code: never, in the background once that pays, before they first run; required: as "
     "always, and a loop that is no native code is an error",
     knobs::kEverywhere, "native.md"},
    {knobs::kSession, "jit_iteration", "a number", "0", "no native code before this iteration of a loop",
     knobs::kEverywhere},
    {knobs::kSession, "jit_cache", "a folder, off", "$XDG_CACHE_HOME/treadle, or ~/.cache/treadle",
     "where native code is kept for later processes", knobs::kEverywhere, "native.md"},
    {knobs::kSession, "jit_cache_bytes", "a number", "268435456",
     "bytes of all native code that is kept; what was not used for longest goes", knobs::kEverywhere, "native.md"},
    {knobs::kSession, "load_time_limit", "seconds", "0", "how long loading may take, and each planning; 0: any time",
     knobs::kEverywhere, "limits.md"},
    {knobs::kSession, "load_memory_limit", "bytes", "0", "what loading, and each planning, may allocate; 0: any memory",
     knobs::kEverywhere, "limits.md"},
    {knobs::kSession, "bounded_load", "0, 1", "1",
     "whether what is computed from constants beforehand is bounded by the size of the model", knobs::kEverywhere,
     "limits.md"},
    {knobs::kSession, "passes_off", "names of rewrites, with commas between them", "", "rewrites that do not run",
     knobs::kEverywhere, "native.md"},
    {knobs::kSession, "dump", "the name of a rewrite, changes", "",
     "dump_graph gives the graph behind this rewrite; changes: which rewrites changed the graph, and their times",
     knobs::kEverywhere, "native.md"},

    {knobs::kRun, "time_limit", "seconds", "0", "how long a run may take; 0: any time", knobs::kEverywhere,
     "limits.md"},
    {knobs::kRun, "iteration_limit", "a number", "0", "iterations of all loops of a run together; 0: any number",
     knobs::kEverywhere, "limits.md"},
    {knobs::kRun, "memory_limit", "bytes", "0", "what a run may allocate; 0: any memory", knobs::kEverywhere,
     "limits.md"},

    {knobs::kVariable, "TREADLE_JIT", "off, auto, always, required; then a comma and an iteration", "",
     "takes the place of jit, and of jit_iteration, where a program leaves jit at auto", knobs::kAll, "native.md"},
    {knobs::kVariable, "TREADLE_JIT_CACHE", "a folder, off", "",
     "takes the place of jit_cache where a program leaves that alone", knobs::kAll, "native.md"},
    {knobs::kVariable, "TREADLE_JIT_CACHE_BYTES", "a number", "",
     "takes the place of jit_cache_bytes where a program leaves that alone", knobs::kAll, "native.md"},
    {knobs::kVariable, "TREADLE_JIT_LIBRARY", "a path", "",
     "libtreadle_jit.so, in place of the one beside treadle's own library", knobs::kAll},
    {knobs::kVariable, "TREADLE_PASSES_OFF", "names of rewrites, with commas between them", "",
     "takes the place of passes_off where a program leaves that alone", knobs::kAll, "native.md"},
    {knobs::kVariable, "TREADLE_TIER", "program, reference", "",
     "takes the place of tier where a program leaves that alone", knobs::kPython},
    {knobs::kVariable, "TREADLE_ISA", "baseline, avx2, avx512", "the widest that machine and build have",
     "the instruction set of the kernels; the widest takes the place of one that is not there", knobs::kAll,
     "numerics.md"},
    {knobs::kVariable, "TREADLE_CONV", "a method that explain and profile name", "",
     "this method computes all convolutions that it fits; src/kernels/README.md describes methods", knobs::kTests},
    {knobs::kVariable, "TREADLE_GEMM", "a walk that explain and profile name", "",
     "this walk computes all matrix products that it fits; src/kernels/README.md describes walks", knobs::kTests},
    {knobs::kVariable, "TREADLE_SIGBUS", "off", "", "leaves the signal SIGBUS to the program", knobs::kAll, "files.md"},
    {knobs::kVariable, "TREADLE_FILL_MEMORY", "0 to 255", "", "what fresh memory is filled with", knobs::kTests,
     "memory.md"},
    {knobs::kVariable, "TREADLE_JIT_DUMP", "1, 2", "",
     "prints the LLVM code of each loop that is compiled, as written (1) or as optimised (2), on standard error",
     knobs::kTests},
    {knobs::kVariable, "OMP_NUM_THREADS", "a number, or a list whose first number counts", "",
     "threads of runs where options leave the number open; never more than the CPUs that the process may "
     "use; other texts are warned about",
     knobs::kAll},
    {knobs::kVariable, "XDG_CACHE_HOME", "a folder", "~/.cache", "holds the folder treadle, the default of jit_cache",
     knobs::kAll, "native.md"},
    {knobs::kVariable, "HOME", "a folder", "", "holds .cache where XDG_CACHE_HOME is not set", knobs::kAll,
     "native.md"},
    {knobs::kVariable, "ORT_LOAD_CONFIG_FROM_MODEL", "1", "", "warns that options inside of a model have no effect",
     "Python, programs for onnxruntime"},
    {knobs::kVariable, "PYTHONPATH", "folders", "",
     "gets the folder by which child processes find treadle as onnxruntime", "Python, as onnxruntime", "drop-in.md"},
    {knobs::kVariable, "TREADLE_PYTHON", "a path", "python3, or the Python that runs the tool",
     "the Python whose package treadle does the work of compare, report, serve and bench --with", knobs::kTool},
    {knobs::kVariable, "NO_COLOR", "any text", "", "no colours in what the tool prints", knobs::kTool},
    {knobs::kVariable, "SOURCE_DATE_EPOCH", "seconds since 1970", "today", "the date of manual pages", knobs::kTool},
};

// The name of a variable that has a row.
class Variable {
 public:
  consteval Variable(const char* name) : name_(name) {  // NOLINT(google-explicit-constructor): a literal stands for it
    bool is_listed = false;
    for (const Knob& knob : kKnobs) is_listed |= knob.kind == Knob::Kind::kVariable && knob.name == name;
    if (!is_listed) throw "kKnobs has no row for this variable";
  }
  const char* name() const { return name_; }

 private:
  const char* name_;
};

// Null: it is not set.
inline const char* environment(Variable variable) {
  return std::getenv(variable.name());
}

}  // namespace treadle

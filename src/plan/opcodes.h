#pragma once
// The table of instructions: to what the index of an instruction refers, and where the program continues after the
// instruction. plan/roles.h gives the roles of the slots in an instruction's record. Only code that executes or
// compiles instructions switches over OpCode: run::Context (the interpreter) and jit::LoopWriter (native code).

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace treadle::plan {

// To what `index` of an instruction refers.
enum class IndexOf : uint8_t {
  kNothing,
  kKernel,    // kernels[]
  kDynamic,   // dynamic[]
  kCopy,      // copies[]
  kRow,       // rows[]
  kMove,      // moves[]
  kFlag,      // the slot of a bool
  kLoop,      // loops[]; the instruction stands for the loop's slots
  kLoopOf,    // loops[], the loop to which the instruction belongs
  kPipeline,  // pipelines[], likewise
  kPipelineOf,
};

// Where the program continues.
enum class Flow : uint8_t {
  kNext,    // at the next instruction
  kJump,    // at `target`
  kEither,  // at the next instruction or at `target`
  kStop,
};

// clang-format off
//  name             listing        index        flow     what it does
#define TREADLE_OPCODES(X)                                                                                             \
  X(kKernel,         "kernel",      kKernel,     kNext)   /* run(state, slots, operands)                           */  \
  X(kGuarded,        "guarded",     kDynamic,    kNext)   /* a kernel that is prepared per shapes seen             */  \
  X(kCompute,        "compute",     kDynamic,    kNext)   /* values in, values out                                 */  \
  X(kCopy,           "copy",        kCopy,       kNext)   /* bytes                                                 */  \
  X(kRow,            "row",         kRow,        kNext)   /* a pointer to one row of a tensor                      */  \
  X(kMove,           "move",        kMove,       kNext)   /* a value of run-time size takes another place          */  \
  X(kJump,           "jump",        kNothing,    kJump)                                                                \
  X(kBranchUnless,   "unless",      kFlag,       kEither) /* jumps where the flag is false                         */  \
  X(kLoopBegin,      "loop",        kLoop,       kEither) /* target: the LoopEnd, when no iteration runs           */  \
  X(kLoopNext,       "next",        kLoopOf,     kEither) /* target: the first instruction of the body             */  \
  X(kLoopNextSimple, "next",        kLoopOf,     kEither) /* the same where LoopStep is all there is to do         */  \
  X(kLoopEnd,        "endloop",     kLoopOf,     kNext)                                                                \
  X(kPoll,           "poll",        kNothing,    kNext)   /* limits and cancellation, after work that takes its time */\
  X(kPipeline,       "pipeline",    kPipeline,   kEither) /* runs on several threads what follows, up to target, or not */\
  X(kPipelineEnd,    "endpipeline", kPipelineOf, kNext)                                                                \
  X(kInStrips,       "strips",      kLoopOf,     kNext)   /* nothing: the node runs in the strips of the loop      */  \
  X(kEnd,            "end",         kNothing,    kStop)
// clang-format on

#define TREADLE_OPCODE_NAME(name, listing, index, flow) name,
enum class OpCode : uint8_t { TREADLE_OPCODES(TREADLE_OPCODE_NAME) };
#undef TREADLE_OPCODE_NAME

struct OpCodeInfo {
  std::string_view name;  // in listings
  IndexOf index;
  Flow flow;
};

#define TREADLE_OPCODE_INFO(name, listing, index, flow) {listing, IndexOf::index, Flow::flow},
inline constexpr OpCodeInfo kOpCodes[] = {TREADLE_OPCODES(TREADLE_OPCODE_INFO)};
#undef TREADLE_OPCODE_INFO

constexpr const OpCodeInfo& info(OpCode code) {
  return kOpCodes[static_cast<size_t>(code)];
}

// Whether `target` is an instruction to which it may jump.
constexpr bool jumps(OpCode code) {
  return info(code).flow == Flow::kJump || info(code).flow == Flow::kEither;
}
// Whether it works on values of dynamic shape.
constexpr bool is_dynamic(OpCode code) {
  return info(code).index == IndexOf::kDynamic;
}

}  // namespace treadle::plan

#pragma once
// Loops as native code: the description of a loop, and the interface between native code and engine.
//
// src/jit turns a loop of a program into a function. It is a shared object that the engine loads on first use. The two
// exchange only data and pointers in a table, so neither is linked to the other.
//
// Native code is entered before an iteration: the position of the loop is in its LoopCounters, and the loop's states
// and pointers are in the table of slots. After the last iteration native code leaves both there in the same way. So
// the interpreter begins and ends every loop, and may hand a loop over before any iteration. If a state, a scan input
// or a scan output has a dynamic shape, the engine takes the back edge as well (NativeHost::loop_next).

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/cpu.h"
#include "plan/dynamic_code.h"

namespace treadle::plan {

// ---- Between native code and the engine ----

// A position in a loop.
struct LoopCounters {
  int64_t iteration = 0;
  int64_t iterations = 0;
  int64_t row_capacity = INT64_MAX;  // iterations for which growing rows have memory
  bool iterations_known = false;
  bool active = false;
  // Totals of this run over all executions of the loop. Native code does not count inner loops whose length is planned.
  int64_t times_ended = 0, iterations_ended = 0;
};

// The result of native code: 0, a KernelError of instruction `failed_at`, or kNativeStopped.
inline constexpr uint32_t kNativeStopped = UINT32_MAX;

struct NativeFrame {
  void** slots = nullptr;
  std::byte* counters = nullptr;  // LoopCounters of loop i at i times NativeRequest::counter_stride
  void* context = nullptr;        // for the host functions
  int64_t* poll_units = nullptr;
  int64_t* iterations = nullptr;       // iterations of each loop in this run, begun ones included
  const void* const* table = nullptr;  // the addresses that NativeBlob::refs ask for
  uint32_t failed_at = 0;
};

// A value of dynamic shape as native code sees it: operand `operand` of the node of instruction `pc`. With `append`,
// the part of its result behind the first operand.
struct NativeValue {
  uint32_t pc = 0, operand = 0;
  uint32_t rank = 0;
  uint32_t append = 0;
};
// The result of a function that did nothing because the engine's own way is better.
inline constexpr uint32_t kNativeElsewhere = UINT32_MAX - 1;

// Functions of the engine that native code calls. Functions that return uint32_t return 0, or the value that native
// code has to return.
struct NativeHost {
  uint32_t (*poll)(void* context);
  uint32_t (*grow_rows)(void* context, uint32_t loop);
  uint32_t (*fail)(uint32_t code, int64_t found, int64_t limit);
  uint32_t (*dynamic)(void* context, uint32_t first, uint32_t end);           // kGuarded, kCompute and kMove
  uint32_t (*loop_begin)(void* context, uint32_t loop, uint8_t* runs);        // begins an inner loop
  uint32_t (*loop_next)(void* context, uint32_t loop, uint8_t* again);        // takes its back edge
  uint32_t (*loop_end)(void* context, uint32_t loop);                         // ends it
  uint32_t (*read_flag)(void* context, uint32_t slot, uint8_t* value);        // reads a bool from a handle
  const void* (*row)(kernels::ElementwiseOp op, ElementType type, int form);  // 0: vv, 1: vs, 2: sv
  // Sets `sizes` to the sizes of values of dynamic shape, one value after the other. kNativeElsewhere: a value is long,
  // or is not of the kind for which the code was written.
  uint32_t (*sizes)(void* context, const NativeValue* values, uint32_t count, int64_t* sizes);
  // Sets `places` to memory for results of these sizes; `sizes` has one result after the other. Counts `bytes` as work,
  // which are going to be read and written. kNativeElsewhere: a result is long.
  uint32_t (*make)(void* context, const NativeValue* results, uint32_t count, const int64_t* sizes, int64_t bytes,
                   void** places);
};

// An address that the code takes from NativeFrame::table.
struct NativeRef {
  enum class Kind : uint8_t { kHost, kRun, kState, kOperands, kPacked, kRow };
  Kind kind{};
  uint32_t index =
      0;  // kHost: byte offset in NativeHost; kRow: op; otherwise the instruction (kPacked: its KernelCode::packed)
  ElementType type{};  // kRow
  bool operator==(const NativeRef&) const = default;
};

// Position-independent code. It depends on no address.
struct NativeBlob {
  std::vector<std::byte> bytes;  // code and read-only data
  size_t entry = 0;              // offset of the function
  struct Import {
    std::string name;   // name of a function of the C library
    size_t offset = 0;  // offset of the eight bytes for its address
  };
  std::vector<Import> imports;
  std::vector<NativeRef> refs;
};

// Constants up to this size may become a part of the code; the code reads larger ones in place.
inline constexpr size_t kMaxLiteralBytes = 512;

// The compiler's input. Everything in it that affects code is in the key (plan/native_key.h).
struct NativeRequest {
  const Program* program = nullptr;
  uint32_t loop = 0;
  Isa isa = Isa::kBaseline;
  size_t counter_stride = 0;
  std::map<uint32_t, DynamicCode> dynamic;  // by instruction

  // The computation of an instruction; null if only its kernel is known.
  const ElementwiseCode* elementwise(uint32_t pc) const { return elementwise_code(*program, pc); }
  const InstructionCode* other(uint32_t pc) const { return other_code(*program, pc); }
};

// The interface of the shared object.
struct NativeCompiler {
  uint64_t version = 0;  // native_version()
  // False: `why` is the reason. Throws nothing. The compiler's thread-local variables are first used before it asks for
  // memory.
  bool (*compile)(const NativeRequest& request, NativeBlob& blob, std::string& why) = nullptr;
};
// A digest of the sources of compiler and engine on which the code and its environment depend. The build writes it into
// both, so that neither uses code made by another version of the other.
uint64_t native_version();
inline constexpr char kNativeEntry[] = "treadle_native_compiler";  // const NativeCompiler* (*)()

// The request for loop `loop`.
NativeRequest describe_loop(const Program& program, uint32_t loop);

}  // namespace treadle::plan

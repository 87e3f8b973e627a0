#pragma once
// Loops as native code: what a loop is described by, and what that code and the engine know of each other.
//
// src/jit turns a loop of a program into a function; it is a shared object of its own that exec loads on first use.
// Everything that goes between the two is data or a pointer in a table, so neither is linked to the other.
//
// Native code is entered before a trip: the position of the loop is in its LoopCounters, the loop's states and pointers
// are in the table of slots. After the last trip the native code leaves both there in the same way. So the interpreter
// begins and ends every loop, and may hand a loop over before any trip. Where a state, a scan input or a scan output
// has a size that only the run knows, the engine takes the back edge as well (NativeHost::loop_next).

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
  int64_t trip = 0;
  int64_t trips = 0;
  int64_t row_capacity = INT64_MAX;  // trips that growing rows have memory for
  bool trips_known = false;
  bool active = false;
  // In this run, of all times that the loop has ended. Native code leaves out loops inside whose length is planned.
  int64_t times_ended = 0, trips_ended = 0;
};

// What native code returns: 0, a KernelError of instruction `failed_at`, or kNativeStopped.
inline constexpr uint32_t kNativeStopped = UINT32_MAX;

struct NativeFrame {
  void** slots = nullptr;
  std::byte* counters = nullptr;  // LoopCounters of loop i at i times NativeRequest::counter_stride
  void* context = nullptr;        // for the host functions
  int64_t* poll_units = nullptr;
  int64_t* trips = nullptr;            // of all loops, the ones begun included
  const void* const* table = nullptr;  // what NativeBlob::refs ask for
  uint32_t failed_at = 0;
};

// A value of run-time size as native code was written for: operand `operand` of the node of instruction `pc`, or, to
// `append` to its first one, that of its result which is new.
struct NativeValue {
  uint32_t pc = 0, operand = 0;
  uint32_t rank = 0;
  uint32_t append = 0;
};
// Of functions that have done nothing, since the engine's own way is the better one.
inline constexpr uint32_t kNativeElsewhere = UINT32_MAX - 1;

// Functions of the engine that native code calls. Those that return uint32_t return 0 or what the code is to return.
struct NativeHost {
  uint32_t (*poll)(void* context);
  uint32_t (*grow_rows)(void* context, uint32_t loop);
  uint32_t (*fail)(uint32_t code, int64_t found, int64_t limit);
  uint32_t (*dynamic)(void* context, uint32_t first, uint32_t end);           // kGuarded, kCompute and kMove
  uint32_t (*loop_begin)(void* context, uint32_t loop, uint8_t* runs);        // of a loop inside
  uint32_t (*loop_next)(void* context, uint32_t loop, uint8_t* again);        // likewise
  uint32_t (*loop_end)(void* context, uint32_t loop);                         // likewise
  uint32_t (*read_flag)(void* context, uint32_t slot, uint8_t* value);        // of a handle
  const void* (*row)(kernels::ElementwiseOp op, ElementType type, int form);  // 0: vv, 1: vs, 2: sv
  // The sizes of values that only the run knows, one behind the other. kNativeElsewhere: one of them is not what code
  // was written for, or long.
  uint32_t (*sizes)(void* context, const NativeValue* values, uint32_t count, int64_t* sizes);
  // Places for results of these sizes, one behind the other; `bytes` that are going to be read and written are counted
  // as work. kNativeElsewhere: they are long.
  uint32_t (*make)(void* context, const NativeValue* results, uint32_t count, const int64_t* sizes, int64_t bytes,
                   void** places);
};

// An address that the code takes from NativeFrame::table.
struct NativeRef {
  enum class Kind : uint8_t { kHost, kRun, kState, kOperands, kPacked, kRow };
  Kind kind{};
  uint32_t index =
      0;  // kHost: byte offset in NativeHost; kRow: op; else the instruction (kPacked: KernelCode::packed of it)
  ElementType type{};  // kRow
  bool operator==(const NativeRef&) const = default;
};

// Position-independent code. Nothing in it depends on where it or anything else lies.
struct NativeBlob {
  std::vector<std::byte> bytes;  // code and read-only data
  size_t entry = 0;              // of the function, from the first byte
  struct Import {
    std::string name;   // of a function of the C library
    size_t offset = 0;  // of the eight bytes that hold its address
  };
  std::vector<Import> imports;
  std::vector<NativeRef> refs;
};

// Constants up to this size may become part of the code; larger ones it reads where they lie.
inline constexpr size_t kMaxLiteralBytes = 512;

// What a compiler is told. Whatever of it code depends on is in its key (plan/native_key.h).
struct NativeRequest {
  const Program* program = nullptr;
  uint32_t loop = 0;
  Isa isa = Isa::kBaseline;
  size_t counter_stride = 0;
  std::map<uint32_t, DynamicCode> dynamic;  // by instruction

  // What an instruction computes; null where its kernel is all that is known of it.
  const ElementwiseCode* elementwise(uint32_t pc) const { return elementwise_code(*program, pc); }
  const InstructionCode* other(uint32_t pc) const { return other_code(*program, pc); }
};

// What the shared object offers.
struct NativeCompiler {
  uint64_t version = 0;  // native_version()
  // False: `why` says what stands in the way. Nothing is thrown. The compiler's thread-local variables are first used
  // before it asks for memory.
  bool (*compile)(const NativeRequest& request, NativeBlob& blob, std::string& why) = nullptr;
};
// A digest of the sources of compiler and engine that decide what code looks like and what it finds. Written by the
// build into both of them, so that neither takes what another version of the other has made.
uint64_t native_version();
inline constexpr char kNativeEntry[] = "treadle_native_compiler";  // const NativeCompiler* (*)()

// The request for loop `loop`.
NativeRequest describe_loop(const Program& program, uint32_t loop);

}  // namespace treadle::plan

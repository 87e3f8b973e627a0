#pragma once
// Elementwise operations over few elements as threaded code: a list of steps. Each step ends with a jump to the
// next one.
//
// All values of a chain have the same number of elements, and fill a few vector registers (ChainShape). Lanes of the
// last register behind the elements are computed too; their contents are meaningless. A step reads an argument from
// memory, or takes the result of the step before from registers. It stores its own result and passes it on in
// registers. So no step has a prologue, a loop or a tail, and a result does not go through memory to reach the next
// step.

#include <cstddef>
#include <cstdint>

#include "kernels/elementwise_ops.h"

namespace treadle::kernels {

// A function of one instruction set. Only isa/chain_steps.h knows its real type.
using ChainFn = void (*)();

// A number as the `detail` of a step.
inline const void* as_detail(int64_t number) {
  return reinterpret_cast<const void*>(number);
}

struct ChainStep {
  ChainFn run = nullptr;
  uint32_t in[3] = {};  // positions of the arguments, and of the result, in the table of addresses
  uint32_t out = 0;
  const void* detail = nullptr;  // ElementwiseParams, or data that the kind of step defines
};

// The distribution of elements over registers: `vectors` registers of `lanes` elements each.
struct ChainShape {
  uint8_t lanes = 0;
  uint8_t vectors = 0;

  size_t elements() const { return size_t{lanes} * vectors; }
  bool operator==(const ChainShape&) const = default;
};

// The steps of one operation; null if the instruction set has none for the shape.
struct ChainForms {
  ChainFn memory = nullptr;  // all arguments from memory
  ChainFn first = nullptr;   // argument 0 is the result of the step before
  ChainFn second = nullptr;  // argument 1 is the result of the step before
};

struct ChainIterations {
  int64_t count = 0;
  bool continues = true;  // the last value of the body's condition
};

// The steps of one instruction set. Memory that a step reads or writes must hold all elements of the shape, except for
// `load`, `store` and `splat`.
struct ChainTable {
  size_t vector_bytes = 0;
  // A KernelFn: `steps` is the first ChainStep of a list that ends with `end`. Cannot fail.
  uint32_t (*run)(const void* steps, void* const* table, const uint32_t*) = nullptr;
  ChainForms (*operation)(ElementwiseOp op, ComputeType type, ChainShape shape) = nullptr;
  ChainForms (*where)(ComputeType type, ChainShape shape) = nullptr;  // in `first`, the condition comes from the step
                                                                      // before
  ChainFn (*splat)(size_t width, ChainShape shape) = nullptr;         // copies one element to all elements
  ChainFn load = nullptr;   // copies `detail` (a number) bytes into memory of whole vectors, and clears its rest
  ChainFn store = nullptr;  // copies `detail` bytes back
  ChainFn call = nullptr;   // `detail`: a ChainCall; the next step cannot take the result of the step before the call
  ChainFn end = nullptr;

  // Runs a loop whose body is chains and whose back edge is steps too: at least one and up to `iterations` iterations,
  // starting at the first step of the body. The step `again` is the last one.
  ChainIterations (*run_iterations)(const ChainStep* first, void** table, int64_t iterations) = nullptr;
  ChainFn (*copy)(size_t bytes) = nullptr;  // `detail`: the number of bytes, too
  ChainFn swap = nullptr;                   // exchanges the addresses at positions in[0] and out of the table
  ChainFn advance = nullptr;                // moves the address at position out by `detail` bytes
  ChainFn count = nullptr;                  // adds one to the int64 at out
  ChainFn again = nullptr;                  // goes back by `detail` steps for another iteration
  ChainFn again_if = nullptr;               // the same if the bool at in[0] is true
};

// The steps of the instruction set in use.
const ChainTable& chain_steps();

// A step for any other operation: it reads its arguments from memory and writes its result to memory.
struct ChainCall {
  void (*run)(const ChainCall& call, const ChainStep& step, void* const* table) = nullptr;
};

}  // namespace treadle::kernels

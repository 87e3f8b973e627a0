#pragma once
// Elementwise operations over few elements as threaded code: a list of steps, each of which ends by jumping to the
// next.
//
// All values of a chain have the same number of elements, which fills a few vector registers (ChainShape); what is
// left over in the last one is computed along and means nothing. A step reads its arguments from memory or takes what
// the step before made from registers; it stores its result and hands it on. So no step has a prologue, a loop or a
// tail, and what one step makes for the next does not go through memory.

#include <cstddef>
#include <cstdint>

#include "kernels/elementwise_ops.h"

namespace treadle::kernels {

// A function of one instruction set, of a type that only isa/chain_steps.h knows.
using ChainFn = void (*)();

// For `detail`.
inline const void* as_detail(int64_t number) {
  return reinterpret_cast<const void*>(number);
}

struct ChainStep {
  ChainFn run = nullptr;
  uint32_t in[3] = {};  // where arguments and result are found in the table of addresses
  uint32_t out = 0;
  const void* detail = nullptr;  // ElementwiseParams, or what the kind of step wants
};

// How elements are laid over registers: `vectors` of `lanes` elements each.
struct ChainShape {
  uint8_t lanes = 0;
  uint8_t vectors = 0;

  size_t elements() const { return size_t{lanes} * vectors; }
  bool operator==(const ChainShape&) const = default;
};

// One operation; null where the instruction set has none for the shape.
struct ChainForms {
  ChainFn memory = nullptr;  // all arguments from memory
  ChainFn first = nullptr;   // argument 0 is what the step before made
  ChainFn second = nullptr;  // argument 1 is
};

struct ChainTrips {
  int64_t count = 0;
  bool continues = true;  // what the body's condition said last
};

// What one instruction set provides. Memory that steps read and write is as long as the shape's elements, but for
// `load`, `store` and `splat`.
struct ChainTable {
  size_t vector_bytes = 0;
  // A KernelFn: `steps` is the first ChainStep of a list that ends with `end`. Cannot fail.
  uint32_t (*run)(const void* steps, void* const* table, const uint32_t*) = nullptr;
  ChainForms (*operation)(ElementwiseOp op, ComputeType type, ChainShape shape) = nullptr;
  ChainForms (*where)(ComputeType type, ChainShape shape) = nullptr;  // `first`: the condition
  ChainFn (*splat)(size_t width, ChainShape shape) = nullptr;         // one element to all of them
  ChainFn load = nullptr;   // `detail` bytes, as a number, to memory of whole vectors; what is left there is cleared
  ChainFn store = nullptr;  // and back
  ChainFn call = nullptr;   // `detail` is a ChainCall; what the step before made is lost
  ChainFn end = nullptr;

  // A loop whose body is chains and whose back edge is steps as well. Runs up to `trips` trips, one at least, from the
  // first step of the body on; the step `again` is the last one.
  ChainTrips (*run_trips)(const ChainStep* first, void** table, int64_t trips) = nullptr;
  ChainFn (*copy)(size_t bytes) = nullptr;  // `detail` is the number as well
  ChainFn swap = nullptr;                   // of the places in[0] and out
  ChainFn advance = nullptr;                // the place out, by `detail` bytes
  ChainFn count = nullptr;                  // adds one to the int64 at out
  ChainFn again = nullptr;                  // back by `detail` steps for another trip
  ChainFn again_if = nullptr;               // the same if the bool at in[0] holds
};

// The one in use.
const ChainTable& chain_steps();

// Anything else, from memory to memory.
struct ChainCall {
  void (*run)(const ChainCall& call, const ChainStep& step, void* const* table) = nullptr;
};

}  // namespace treadle::kernels

#pragma once
// Several elementwise operations over the same elements as one kernel. The kernel walks the elements tile by tile.
// Within a tile, the operations run one after the other, each as the row function of a kernel of its own, so results
// have the same bits. Values that only the group reads stay in a few tiles of scratch in first-level cache.
//
// An operand is contiguous in the order of the elements, or a single element, or broadcast in another way. Operands
// that are broadcast in another way are first spread into a tile.
//
// Over few elements, a call of a function takes longer than its work. Then the same operations run as a chain
// (kernels/chain.h).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kernels/chain.h"
#include "kernels/elementwise_ops.h"
#include "kernels/table.h"
#include "type/element_type.h"

namespace treadle::kernels {

struct FusedStep {
  Row row = nullptr;  // null if `where` or `convert` is the function
  WhereRow where = nullptr;
  ConvertRow convert = nullptr;
  uint16_t in[3] = {};  // positions in the table of addresses
  uint16_t out = 0;
  uint8_t scalar_mask = 0;  // for `where`: bit i is set if argument i is a single element
  ElementwiseParams params;
};

// An operand that is neither contiguous nor a single element, and the tile that it is spread into.
struct FusedSpread {
  uint16_t from = 0, to = 0;
  uint8_t width = 0;             // bytes per element
  std::vector<int64_t> dims;     // outermost first; neighbouring dimensions that one stride walks through are merged
  std::vector<int64_t> strides;  // in bytes
  int64_t period = 0;            // the operand repeats after so many elements
};

// Copies the elements [start, start + n) of the operand at `from` to contiguous memory.
void spread_elements(const FusedSpread& spread, const std::byte* from, std::byte* to, size_t start, size_t n);
// Runs one step on n elements at the given addresses.
uint32_t run_operation(const FusedStep& step, const std::byte* const* in, std::byte* out, size_t n);

// A kernel works on a table of addresses: the inputs and outputs, which the caller fills in, then tiles in scratch.
struct FusedPlan {
  static constexpr size_t kMaxPlaces = 256;
  static constexpr size_t kMaxDims = 12;  // dimensions of an operand that is spread

  size_t count = 0;  // elements
  size_t tile = 0;   // elements in a tile
  size_t bound = 0;  // inputs and outputs: the first `bound` positions of the table, which the caller fills in
  size_t tiles = 0;
  size_t tile_bytes = 0;
  std::vector<uint8_t> advance;   // per bound position: bytes by which it advances for each element
  std::vector<int64_t> starts;    // per bound position: bytes to the first element
  std::vector<FusedStep> steps;   // in order
  std::vector<FusedSpread> once;  // operands whose spread elements are the same in every tile
  std::vector<FusedSpread> each;

  size_t scratch_bytes() const { return tiles * tile_bytes; }
  int64_t tile_count() const { return tile ? static_cast<int64_t>((count + tile - 1) / tile) : 0; }
  double tile_ns() const;  // estimated
  // Returns 0 or an Error. `table` has room for kMaxPlaces addresses; the caller has filled in the bound ones. Outputs
  // must not overlap inputs.
  uint32_t run(std::byte** table, std::byte* scratch) const { return run_tiles(table, scratch, 0, tile_count()); }
  // Runs the tiles [begin, end). Each thread needs a table and scratch of its own.
  uint32_t run_tiles(std::byte** table, std::byte* scratch, int64_t begin, int64_t end) const;
  // Runs the elements [first, last), at least one. Operands in `once` repeat from `first` on.
  uint32_t run_elements(std::byte** table, std::byte* scratch, size_t first, size_t last) const;
};

// A FusedPlan over few elements as a chain. Steps refer to their operands by number: the bound positions of the plan in
// their order, then `extras`. The planner replaces these numbers by positions in the table that run() gets.
struct FusedChain {
  struct Extra {
    std::vector<std::byte> contents;  // contents of a constant; empty: `bytes` of memory that only the chain uses
    size_t bytes = 0;
  };

  uint32_t (*run)(const void* steps, void* const* table, const uint32_t*) = nullptr;
  std::vector<ChainStep> steps;
  std::vector<Extra> extras;
  size_t padded_bytes(ElementType type) const { return shape.elements() * byte_width(type); }

  ChainShape shape;
  std::vector<std::shared_ptr<const void>> details;  // owns the objects that steps refer to
};

// Builds a plan, operation by operation.
class FusedBuilder {
 public:
  using Value = uint32_t;

  explicit FusedBuilder(size_t count) : count_(count) {}

  // Adds an input, in the order of the caller's list. `dims`: dimensions of the result that reads the input. `strides`:
  // in elements, 0 where the input is broadcast. `start`: elements before its first one.
  Value input(ElementType type, std::span<const int64_t> dims, std::span<const int64_t> strides, int64_t start = 0);
  // Arguments and results have all elements of the result. They are stored in their compute type, except for Where,
  // which only moves elements. Clip is not supported.
  Value apply(ElementwiseOp op, std::span<const Value> arguments, const ElementwiseParams& params = {});
  Value convert(const TileConverter& converter, Value x, ElementType to);  // `converter` must have one step
  // Makes a result of apply() or convert() an output, in the order of the caller's list.
  void output(Value v);
  // Makes tiles whole lines of `elements` elements, or parts of one line, for callers that work line by line.
  void set_line(size_t elements) { line_ = elements; }
  FusedPlan finish();
  double estimated_ns() const;

  // The layout of values in a chain; none if there are too many elements.
  std::optional<ChainShape> chain_shape() const;
  // Properties of an input or output, in the order of the plan's bound positions.
  struct Bound {
    const void* constant = nullptr;  // contents
    bool padded = false;             // the memory holds all elements of the shape
    bool late = false;               // the value is ready last: steps that depend on it are placed as late as possible
  };
  // The same operations as a chain, if the instruction set has a step for each of them.
  std::optional<FusedChain> chain(std::span<const Bound> bound) const;

 private:
  friend class ChainBuilder;
  enum class Kind : uint8_t { kDense, kScalar, kSpread, kMade };
  struct Item {
    Kind kind;
    ElementType type;
    uint16_t place = 0;   // position in the table
    size_t last_use = 0;  // the last step that reads it
    bool is_output = false;
    int64_t start = 0;  // in bytes
  };
  struct Tiles;

  // Replaces a single element by a tile of copies.
  void spread_scalar(Value v);
  Value make(ElementType type, FusedStep step, std::span<const Value> arguments, std::optional<ElementwiseOp> op);
  void place_bound();
  void place_tiles();
  void choose_tile();

  size_t count_;
  size_t line_ = 1;
  FusedPlan plan_;
  std::vector<Item> items_;
  std::vector<std::vector<Value>> arguments_;      // per step
  std::vector<std::optional<ElementwiseOp>> ops_;  // per step; none: a conversion
  std::vector<Value> made_, inputs_, outputs_;
  std::vector<std::pair<Value, FusedSpread>> spreads_;
};

}  // namespace treadle::kernels

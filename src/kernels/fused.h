#pragma once
// Several elementwise operations over the same elements as one kernel. The elements are walked tile by tile; within a
// tile the operations run one after the other, each as the row function that it would be alone, so results are the
// same to the last bit. What only the group needs stays in a few tiles of scratch in first-level cache.
//
// Operands lie densely in the order of the elements, or are one element, or are broadcast in some other way; the last
// kind is spread into a tile first.
//
// Over few elements, where calling a function takes longer than what it does, the same is a chain (kernels/chain.h).

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
  Row row = nullptr;  // or one of the next two
  WhereRow where = nullptr;
  ConvertRow convert = nullptr;
  uint16_t in[3] = {};  // places in the table of addresses
  uint16_t out = 0;
  uint8_t scalar_mask = 0;  // of `where`
  ElementwiseParams params;
};

// An operand that is neither dense nor one element, and the tile that it is spread into.
struct FusedSpread {
  uint16_t from = 0, to = 0;
  uint8_t width = 0;             // bytes per element
  std::vector<int64_t> dims;     // outermost first; neighbours that are walked as one are merged
  std::vector<int64_t> strides;  // in bytes
  int64_t period = 0;            // elements after which it repeats
};

// Elements [start, start + n) of the operand at `from`, densely.
void spread_elements(const FusedSpread& spread, const std::byte* from, std::byte* to, size_t start, size_t n);
// One step on n elements, wherever they are.
uint32_t run_operation(const FusedStep& step, const std::byte* const* in, std::byte* out, size_t n);

// A kernel works on a table of addresses: the inputs, the outputs (both given by the caller), then tiles in scratch.
struct FusedPlan {
  static constexpr size_t kMaxPlaces = 256;
  static constexpr size_t kMaxDims = 12;  // of an operand that is spread
  static constexpr double kElementNs = 0.2;

  size_t count = 0;  // elements
  size_t tile = 0;   // of them at once
  size_t bound = 0;  // inputs and outputs: the places that the caller fills
  size_t tiles = 0;
  size_t tile_bytes = 0;
  std::vector<uint8_t> advance;   // per bound place: bytes per element that it moves by
  std::vector<int64_t> starts;    // per bound place: bytes to the first element
  std::vector<FusedStep> steps;   // in order
  std::vector<FusedSpread> once;  // the same in every tile
  std::vector<FusedSpread> each;

  size_t scratch_bytes() const { return tiles * tile_bytes; }
  int64_t tile_count() const { return tile ? static_cast<int64_t>((count + tile - 1) / tile) : 0; }
  double tile_ns() const { return kElementNs * static_cast<double>(tile * steps.size()); }  // estimated
  // 0 or an Error. `table` has room for kMaxPlaces; its bound places are filled. Outputs overlap no input.
  uint32_t run(std::byte** table, std::byte* scratch) const { return run_tiles(table, scratch, 0, tile_count()); }
  // Tiles [begin, end); each thread has a table and scratch of its own.
  uint32_t run_tiles(std::byte** table, std::byte* scratch, int64_t begin, int64_t end) const;
  // Elements [first, last), at least one; what `once` holds repeats from `first` on.
  uint32_t run_elements(std::byte** table, std::byte* scratch, size_t first, size_t last) const;
};

// A FusedPlan over few elements. Steps find their operands by number: the bound places of the plan in their order, then
// `extras`. Whoever lays out memory replaces these numbers by positions in the table that run() is given.
struct FusedChain {
  struct Extra {
    std::vector<std::byte> contents;  // of a constant; else empty: memory for `bytes` in the chain's hands
    size_t bytes = 0;
  };

  uint32_t (*run)(const void* steps, void* const* table, const uint32_t*) = nullptr;
  std::vector<ChainStep> steps;
  std::vector<Extra> extras;
  size_t padded_bytes(ElementType type) const { return shape.elements() * byte_width(type); }

  ChainShape shape;
  std::vector<std::shared_ptr<const void>> details;  // what steps refer to
};

// Puts a plan together, operation by operation.
class FusedBuilder {
 public:
  using Value = uint32_t;

  explicit FusedBuilder(size_t count) : count_(count) {}

  // An input, in the order of the caller's list. `dims`: of the result that it is used for; `strides` in elements, 0
  // where it is broadcast. `start`: elements before its first one.
  Value input(ElementType type, std::span<const int64_t> dims, std::span<const int64_t> strides, int64_t start = 0);
  // Arguments and results are as long as the result, and stored as they are computed with (but for Where, which only
  // moves them). Not Clip.
  Value apply(ElementwiseOp op, std::span<const Value> arguments, const ElementwiseParams& params = {});
  Value convert(const TileConverter& converter, Value x, ElementType to);  // of one step
  // A value that apply() or convert() made and that the caller wants, in the order of the caller's list.
  void output(Value v);
  // Somebody works on whole lines of so many elements: tiles are lines, or parts of one.
  void set_line(size_t elements) { line_ = elements; }
  FusedPlan finish();
  double estimated_ns() const { return FusedPlan::kElementNs * static_cast<double>(count_ * made_.size()); }

  // How a chain lays out the values; none where there are too many elements.
  std::optional<ChainShape> chain_shape() const;
  // What is known of an input or output, in the order of the plan's bound places.
  struct Bound {
    const void* constant = nullptr;  // contents
    bool padded = false;             // there is memory for all elements of the shape
    bool late = false;               // changes last: what depends on it is done as late as possible
  };
  // The same operations as a chain, if the instruction set has all of them.
  std::optional<FusedChain> chain(std::span<const Bound> bound) const;

 private:
  friend class ChainBuilder;
  enum class Kind : uint8_t { kDense, kScalar, kSpread, kMade };
  struct Item {
    Kind kind;
    ElementType type;
    uint16_t place = 0;   // in the table
    size_t last_use = 0;  // the last step that reads it
    bool is_output = false;
    int64_t start = 0;  // in bytes
  };
  struct Tiles;

  // One element becomes a tile of copies.
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

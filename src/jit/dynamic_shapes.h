#pragma once
// A row of nodes of dynamic shape, as loops with the sizes in registers.
//
// Native code asks the engine for the sizes of the row's inputs, derives all others by the rules of op/size_rules.h,
// and checks that they agree. Then the engine makes places for what is read from memory: results that instructions
// outside of the row read, what Concat puts together, and what would be computed more than once at some cost.
// Everything else is computed where it is needed, an operand of a reduction within the reduction. Neighbours of the
// same sizes share a loop, and with it what they load and compute alike. What is done to all elements that Concat puts
// together is done to its parts. Where sizes are not those that the code was written for (sizes that do not agree, long
// values, sizes of 1 that are broadcast though the plan did not know), the engine runs the row, and says what is wrong.
//
//   dynamic_shapes.cc    plans the row: what is in memory, what shares a loop
//   dynamic_sizes.cc     writes the sizes
//   dynamic_elements.cc  writes the loops over elements
//   dynamic_sums.cc      writes reductions

#include <map>
#include <optional>
#include <vector>

#include "jit/ir_sizes.h"
#include "jit/loop_writer.h"

namespace treadle::jit {

class LoopWriter::DynamicShapeWriter {
 public:
  // Instructions [first, end) have a DynamicCode each.
  DynamicShapeWriter(LoopWriter& writer, uint32_t first, uint32_t end);
  void write();

 private:
  static constexpr size_t kMostInOneLoop = 40;  // operations
  static constexpr size_t kMostPieces = 8;      // that are written in one loop

  using Values = std::vector<Value*>;
  // A value of the row, or one that the row reads.
  struct Tensor {
    ElementType type = ElementType::kUndefined;
    Values sizes;
    Values begins;                            // kSlice: where each axis begins in what it is cut out of; null: at 0
    const plan::DynamicCode* code = nullptr;  // that makes it; null: it is in memory
    uint32_t pc = 0;
    size_t output = 0;
    bool is_placed = false;     // in memory of its own
    bool is_joined = false;     // never made: who reads it reads the parts of `Join`
    size_t uses = 0, cost = 0;  // operations that an element takes where it is needed
    // In memory, or part of what is.
    Value* data = nullptr;
    Values strides;                           // in elements
    Value* place = nullptr;                   // where it is going to be
    Value *start = nullptr, *step = nullptr;  // kRange
  };
  // Elements of values at one place of a loop.
  using Seen = std::map<uint32_t, Value*>;
  // What becomes of parts that a Concat would put together for one reader alone.
  struct Join {
    uint32_t concat = 0;
    uint32_t read = 0;  // as the reader knows it: the Concat's result regrouped
  };
  // The elements of `from`, or what `reader` makes of them, go to `to`.
  struct Piece {
    uint32_t from = 0;
    Tensor to;
    uint32_t reader = UINT32_MAX, read = 0;
  };

  class RowReducer;

  const plan::DynamicNode& node(uint32_t pc) const { return w_.p_.dynamic[w_.p_.code[pc].index]; }
  const plan::DynamicCode& code(uint32_t pc) const { return w_.request_.dynamic.at(pc); }
  const Tensor& input(uint32_t pc, size_t i) const { return tensors_.at(inputs_.at(pc)[i]); }
  bool is_handle(uint32_t s) const { return w_.p_.slots[s].storage == plan::Storage::kHandle; }
  Value* number(int64_t n) const { return w_.b_.getInt64(static_cast<uint64_t>(n)); }
  static bool is_number(const Value* v, int64_t n) { return IrSizes::is_number(v, n); }

  // --- what there is
  void survey();
  void survey(uint32_t pc);
  const std::vector<uint32_t>& name_inputs(uint32_t pc);
  bool is_part(const plan::DynamicCode& code) const;
  void find_users();
  bool is_outside(uint32_t s) const;
  void find_joins();
  bool find_join(uint32_t s, std::optional<Join>& join) const;
  bool is_single(uint32_t name) const;

  // --- sizes
  void read_sizes(Block* otherwise);
  void add_planned(uint32_t name, uint32_t s, const std::vector<int64_t>& sizes);
  void find_sizes(uint32_t pc);
  void size_by_rule(Tensor& to, uint32_t pc);
  void size_elementwise(Tensor& to, uint32_t pc);
  void size_reduction(Tensor& to, uint32_t pc);
  void size_slice(Tensor& to, uint32_t pc);
  void size_concat(Tensor& to, uint32_t pc);
  void size_reshape(Tensor& to, uint32_t pc);
  void size_squeeze(Tensor& to, uint32_t pc);
  void size_unsqueeze(Tensor& to, uint32_t pc);
  void size_split(Tensor& to, uint32_t pc);
  void size_range(Tensor& to, uint32_t pc);
  bool same_sizes(const Tensor& a, const Tensor& b) const;
  void check_planned(Tensor& of, uint32_t s);
  Value* count_of(const Tensor& of) const;
  Value* element_of_list(uint32_t pc, size_t i, size_t at);
  size_t uses_of(uint32_t s) const;
  Values row_major(const Values& sizes) const;

  // --- elements
  void allocate_results(Block* otherwise);
  void find_data(uint32_t s);
  void compute(uint32_t s);
  Tensor place_of(const Tensor& of) const;
  void reduce(uint32_t s);
  void put_pieces(uint32_t s);
  void put_piece(Piece piece);
  void write_pieces();
  bool reads_pieces(uint32_t s) const;
  void each(Value* count, const std::function<void(Value*)>& fn);
  void each_row(Tensor& to, size_t d, Values& at, const std::function<void(Values&)>& fn);
  void along_row(Value* n, const std::function<void(Value* first, unsigned lanes)>& fn);
  Value* address(const Tensor& of, const Values& at) const;
  Value* elements(uint32_t s, const Values& at, unsigned lanes, Seen& seen);
  Value* load(const Tensor& of, const Values& at, unsigned lanes);

  LoopWriter& w_;
  const uint32_t first_, end_;
  IrSizes sizes_;
  std::map<uint32_t, Tensor> tensors_;                // by name: the slot, or a number of its own behind the slots
  std::map<uint32_t, std::vector<uint32_t>> inputs_;  // names, by instruction
  std::map<std::pair<uint32_t, std::vector<int64_t>>, uint32_t> planned_;  // names, by slot and sizes
  std::vector<uint32_t> order_;                                            // of what the row makes
  std::vector<uint32_t> read_;                                             // handles that it reads
  std::map<uint32_t, Join> joins_;                                         // by reader
  std::vector<Piece> pieces_;                                              // to be written in one loop
  std::vector<uint32_t> filled_;                                           // values that these are parts of
  size_t pieces_cost_ = 0;
  Value* bytes_ = nullptr;  // that are read and written
};

}  // namespace treadle::jit

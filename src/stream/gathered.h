#pragma once
// Joins the results of a push's runs for one output, in existing memory: the caller's, or that of the push before. Rows
// of equal sizes are copied into the result as they come; rows of other sizes are kept in a list.

#include <string_view>
#include <vector>

#include "type/any_value.h"

namespace treadle {

class Gathered {
 public:
  struct Rule {
    std::string_view name;  // name of the output, for errors
    int64_t axis = -1;      // time axis, along which rows are joined
    // The first `context` samples of each run's window are not new; their frames are left out.
    int64_t context = 0;
    // Without a time axis, rows are stacked along a new first axis; they are a sequence if sizes differ or if they are
    // not tensors. If false, the last row is the result.
    bool stacks = false;
  };

  // The results of successive pushes, joined as if one push had given them.
  static Result<AnyValue> joined(const Rule& rule, std::vector<AnyValue> parts);

  explicit Gathered(const Rule& rule) : rule_(rule) {}

  // `window`: samples of each run with its context. `count`: the number of rows to come; 0: unknown. If it is 1 and the
  // row is the result, the row is written into `place`, or into its memory.
  void begin(int64_t window, size_t count, AnyValue& place);
  AnyValue& row() { return *row_at_; }  // for the next row
  // Takes the row that was written. Errors: kInvalidArgument if it has no time axis, or if its context is not a whole
  // number of frames.
  Status take();
  bool is_empty() const { return made_ == 0; }
  // Sizes of the last row, before finish(); along time, only the new part counts. Null if it is not a tensor.
  const Dims* row_dims() const;
  // Stores the result in `place`, the one passed to begin().
  Status finish(AnyValue& place);
  // Called instead of finish(): restores `place`; only its memory may have been overwritten.
  void give_back(AnyValue& place);

 private:
  struct Part {
    int64_t begin = 0, length = 0;  // along the time axis
  };
  bool is_stacked() const { return rule_.axis < 0 && rule_.stacks; }
  // Whether the only row is the result.
  bool is_whole() const { return count_ == 1 && (rule_.axis < 0 || rule_.context == 0); }
  Tensor& result() { return fresh_.is_none() ? place_->tensor() : fresh_.tensor(); }
  Result<Part> new_part() const;
  Result<bool> put(const Part& part);
  Status list_what_was_put();
  Status join_list(AnyValue& place);

  Rule rule_;
  int64_t window_ = 0;
  size_t count_ = 0, made_ = 0;
  AnyValue* place_ = nullptr;
  bool was_none_ = false, is_lent_ = false;  // `place` was none; its memory is lent to the row
  AnyValue row_, fresh_;                     // fresh: the result, if `place` cannot hold it
  AnyValue* row_at_ = nullptr;               // `row_` or the place
  std::vector<AnyValue> list_;
};

}  // namespace treadle

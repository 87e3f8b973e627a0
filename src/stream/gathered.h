#pragma once
// What the runs of a push give for one output, put together in memory that is there: the caller's, or that of the push
// before. Rows that are alike are copied into the result as they come; a list is kept only of those that are not.

#include <string_view>
#include <vector>

#include "type/any_value.h"

namespace treadle {

class Gathered {
 public:
  struct Rule {
    std::string_view name;  // of the output, for errors
    int64_t axis = -1;      // of time: rows are joined along it
    // Of the samples of each run's window, the first `context` are not new: their frames are left out.
    int64_t context = 0;
    // Without a time axis, rows are stacked along a new first axis, and are a sequence where sizes differ or they are
    // no tensors. Else the last one counts.
    bool stacks = false;
  };

  // What pushes one after the other gave, as one push would have given it.
  static Result<AnyValue> joined(const Rule& rule, std::vector<AnyValue> parts);

  explicit Gathered(const Rule& rule) : rule_(rule) {}

  // `window`: samples of each run, its context included. `count`: of the rows to come; 0: not known. Where it is 1 and
  // the row is the result, the row is written into `place`, or in its memory.
  void begin(int64_t window, size_t count, AnyValue& place);
  AnyValue& row() { return *row_at_; }  // the place of the next row
  // The row is there. Errors: kInvalidArgument when it has no time axis, or its context is no whole number of frames.
  Status take();
  bool is_empty() const { return made_ == 0; }
  // Sizes of the last row, before finish(): along time those of its part that is new. Null: it is no tensor.
  const Dims* row_dims() const;
  // Leaves the result in `place`, that of begin().
  Status finish(AnyValue& place);
  // Instead of finish(): `place` is as it was before begin(), but for what was written in its memory.
  void give_back(AnyValue& place);

 private:
  struct Part {
    int64_t begin = 0, length = 0;  // along the time axis
  };
  bool is_stacked() const { return rule_.axis < 0 && rule_.stacks; }
  // The only row is the result.
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
  bool was_none_ = false, is_lent_ = false;  // the place; its memory, to the row
  AnyValue row_, fresh_;                     // fresh: the result, where the place has no room for it
  AnyValue* row_at_ = nullptr;               // `row_` or the place
  std::vector<AnyValue> list_;
};

}  // namespace treadle

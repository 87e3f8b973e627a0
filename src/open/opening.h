#pragma once
// A fixed size of a model's input that is to become a symbol, and what stands in its way.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "type/dim_values.h"

namespace treadle::open {

struct Opening {
  std::string input;
  int64_t axis = 0;  // may count from the back
  std::string symbol;
  int64_t size = 0;  // what it is in the model; set by open_sizes()
};

// "frames:0=batch". Errors: kInvalidArgument for another form.
Result<Opening> read_opening(std::string_view text);

// A symbol times a number, or a number.
struct SizeOf {
  int64_t factor = 1;
  const Opening* opening = nullptr;  // null: the size is `factor`

  friend bool operator==(const SizeOf&, const SizeOf&) = default;
};

// The sizes that are opened together.
class Openings {
 public:
  explicit Openings(std::span<const Opening> all);

  // Whether it changes with an opened size, as min(1,batch) does not where the size was 1 or more.
  bool opens(const Dim& dim) const;
  bool opens(const Shape& shape) const;
  // What `dim` is for the sizes that the model has, or for so many times these sizes.
  Dim at(const Dim& dim, int64_t times = 1) const;
  SymbolSizes sizes(int64_t times = 1) const;
  // Nothing for other expressions.
  std::optional<SizeOf> as_product(const Dim& dim) const;
  // The opening that had this size, if it is the only one.
  const Opening* only_of_size(int64_t size) const;
  std::string symbols() const;  // "batch", "T" in a sentence

 private:
  std::span<const Opening> all_;
  SymbolSizes old_;
};

// A node that needs the old size.
struct Obstacle {
  std::string path, op, why;

  std::string text() const;  // "/Reshape_3 (Reshape): why"
};

}  // namespace treadle::open

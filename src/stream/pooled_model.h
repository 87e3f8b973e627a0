#pragma once
// A model that takes many streams as the entries of a batch.

#include <memory>
#include <string>
#include <vector>

#include "stream/layout.h"

namespace treadle {

struct PooledModel {
  std::shared_ptr<const StreamLayout> layout;  // for a batch of any size; null: every stream runs by itself
  std::string why_single;                      // empty: streams run together
  // The feeds of a push for each stream: timed inputs, then inputs that are given with each push.
  struct Fed {
    const IoInfo* info;
    size_t at;            // index in StreamLayout::inputs
    int64_t batch, time;  // axes; time -1: none
  };
  std::vector<Fed> fed;
  // Batch axes of states (declared, then found) and of outputs. kNoAxis: all entries have the same value.
  std::vector<int64_t> states, outputs;
  // A new stream may begin in a run with streams that have run before, since its initial data is known.
  bool begins_in_group = false;

  // `layout`: for one stream.
  static std::shared_ptr<const PooledModel> make(const StreamLayout& layout);
  // The batch axis of a push's result for an output, which may be stacked. kNoAxis: all entries have the same value.
  int64_t result_axis(size_t output) const;
  // The axis along which an output's results of successive pushes are joined; -1: the last result counts.
  int64_t joined_axis(size_t output) const;
};

}  // namespace treadle

#pragma once
// A model that takes many streams at once, as the entries of a batch.

#include <memory>
#include <string>
#include <vector>

#include "stream/layout.h"

namespace treadle {

struct PooledModel {
  std::shared_ptr<const StreamLayout> layout;  // of a batch of any size; null: every stream runs on its own
  std::string why_single;                      // empty: streams run together
  // What a push gives each stream: timed inputs, then those that come with each push.
  struct Fed {
    const IoInfo* info;
    size_t at;            // among StreamLayout::inputs
    int64_t batch, time;  // axes; of time -1: it has none
  };
  std::vector<Fed> fed;
  // Axes of the batch: of states (declared, then found), of outputs. kNoAxis: alike for all entries.
  std::vector<int64_t> states, outputs;
  // A stream may begin in a run of streams that have run before: all that they carry is known of its beginning.
  bool begins_among_others = false;

  // `layout`: of one stream.
  static std::shared_ptr<const PooledModel> make(const StreamLayout& layout);
  // Where the entries are in what a push gives for an output, which may be stacked. kNoAxis: alike for all.
  int64_t result_axis(size_t output) const;
  // The axis along which an output's results of pushes one after the other are joined; -1: the last one counts.
  int64_t joined_axis(size_t output) const;
};

}  // namespace treadle

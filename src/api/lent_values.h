#pragma once
// How values cross the border of a run: what it is given, and the handles that the caller lends for results.

#include <new>
#include <span>
#include <utility>
#include <vector>

#include "api/handles.h"
#include "base/inline_vector.h"

namespace treadle::api {

// What a run needs on its way into the engine and back.
struct CallScratch {
  std::vector<Feed> feeds;
  std::vector<size_t> indices;
  std::vector<AnyValue> results;

  void clear() {
    feeds.clear();
    indices.clear();
    results.clear();
  }
};

// The contents of the caller's handles, moved (the engine writes in place what nobody else refers to) into a list of
// results. They go back in any case, and with them what the run has made once keep() was called.
class LentValues {
 public:
  LentValues(treadle_value** outputs, size_t count, std::vector<AnyValue>& memory)
      : results(memory), outputs_(outputs, count) {
    results.resize(count);
    for (size_t i = 0; i < count; ++i) {
      if (outputs_[i]) results[i] = std::move(outputs_[i]->value);
    }
  }
  ~LentValues() {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (outputs_[i] && i < results.size()) outputs_[i]->value = std::move(results[i]);
    }
    if (kept_) return;
    for (const size_t i : made_) delete std::exchange(outputs_[i], nullptr);
  }
  LentValues(const LentValues&) = delete;
  LentValues& operator=(const LentValues&) = delete;

  // Every output gets a handle; those that were made go again unless keep() is called.
  Status make_handles() {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (outputs_[i]) continue;
      outputs_[i] = new (std::nothrow) treadle_value;
      if (!outputs_[i]) return error(Code::kLimit, "no memory for {} outputs", outputs_.size());
      made_.push_back(i);
    }
    return {};
  }
  void keep() { kept_ = true; }

  std::vector<AnyValue>& results;

 private:
  std::span<treadle_value*> outputs_;
  InlineVector<size_t, 16> made_;
  bool kept_ = false;
};

}  // namespace treadle::api

#pragma once
// Values that pass between the caller and a run: the feeds, and the handles that the caller provides for results.

#include <new>
#include <span>
#include <utility>
#include <vector>

#include "api/handles.h"
#include "base/inline_vector.h"
#include "type/write_over.h"

namespace treadle::api {

// Working memory of a call of run.
struct CallScratch {
  std::vector<Feed> feeds;
  std::vector<size_t> indices;    // of the requested outputs
  std::vector<AnyValue*> places;  // for results, in the handles
  std::vector<AnyValue> fed;      // contents of handles that are both feeds and places for results

  void clear() {
    feeds.clear();
    indices.clear();
    places.clear();
    fed.clear();
  }
};

// Handles of results: those of the caller, whose contents the engine may overwrite in place, and new ones where the
// caller gave none.
class LentHandles {
 public:
  LentHandles(treadle_value** outputs, size_t count, CallScratch& scratch)
      : outputs_(outputs, count), scratch_(scratch) {}
  ~LentHandles() {
    if (kept_) return;
    for (size_t i = 0; i < scratch_.fed.size(); ++i) taken_[i]->value = std::move(scratch_.fed[i]);
    for (const size_t i : made_) delete std::exchange(outputs_[i], nullptr);
  }
  LentHandles(const LentHandles&) = delete;
  LentHandles& operator=(const LentHandles&) = delete;

  // Fills the list of places.
  Status lend() {
    TREADLE_TRY(take_fed());
    return list_places();
  }
  // The same for places that stay the caller's for later calls. Errors: one of them is a feed.
  Status lend_apart() {
    TREADLE_TRY(take_fed());
    if (!taken_.empty()) return error(Code::kInvalidArgument, "a handle is both an input and an output");
    return list_places();
  }
  // Called after a successful run. Otherwise new handles are freed, and the contents of feeds go back to their handles.
  void keep() {
    kept_ = true;
    for (size_t i = 0; i < taken_.size(); ++i) {
      AnyValue result = std::exchange(taken_[i]->value, std::move(scratch_.fed[i]));
      write_over(taken_[i]->value, std::move(result));
    }
  }

 private:
  Status list_places() {
    scratch_.places.reserve(outputs_.size());
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (!outputs_[i]) {
        made_.push_back(i);
        outputs_[i] = new treadle_value;
      }
      scratch_.places.push_back(&outputs_[i]->value);
    }
    return {};
  }

  // A result must neither overwrite what the run reads, nor another result.
  Status take_fed() {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      treadle_value* const handle = outputs_[i];
      if (!handle) continue;
      for (size_t k = 0; k < i; ++k) {
        if (outputs_[k] == handle) return error(Code::kInvalidArgument, "outputs {} and {} get one value", k, i);
      }
      for (const Feed& feed : scratch_.feeds) {
        if (feed.value != &handle->value) continue;
        taken_.push_back(handle);
        break;
      }
    }
    scratch_.fed.reserve(taken_.size());
    for (treadle_value* handle : taken_) {
      const AnyValue* value = &scratch_.fed.emplace_back(std::exchange(handle->value, {}));
      for (Feed& feed : scratch_.feeds) {
        if (feed.value == &handle->value) feed.value = value;
      }
    }
    return {};
  }

  std::span<treadle_value*> outputs_;
  CallScratch& scratch_;
  InlineVector<size_t, 16> made_;
  InlineVector<treadle_value*, 4> taken_;
  bool kept_ = false;
};

}  // namespace treadle::api

#pragma once
// The search for the smallest model that still fails: steps (reduce/step.h) make candidates, the caller says which
// fail, and the search goes on from the first that does.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "wire/mapped_file.h"

namespace treadle::reduce {

enum class Verdict : uint8_t { kPasses, kFails, kStop };

// The smallest model so far.
struct Progress {
  const char* step = "";  // that made the candidate at hand; empty for the model itself
  size_t attempts = 0;
  size_t nodes = 0;   // in all scopes
  size_t bodies = 0;  // of nodes, and functions
  size_t bytes = 0;
  size_t data_tensors = 0;  // whose contents lie in other files
};

// Whether a model fails. Called with the model itself first, and then, with several jobs, from as many threads at once.
using Fails = std::function<Verdict(std::string_view bytes, const Progress& progress)>;

struct Options {
  size_t attempts = 1000;   // calls of `fails` at most, the first one included
  size_t jobs = 1;          // candidates judged at once; the result does not depend on it
  std::string folder = {};  // where the model's external data lies; empty: it is not read
};

struct Reduced {
  std::string bytes;
  Progress progress;
};

// `file`: a serialised model; if it passes, it comes back as it is. Errors: kInvalidFile for bytes that are no model.
Result<Reduced> reduce(const wire::MappedFile& file, const Options& options, const Fails& fails);

}  // namespace treadle::reduce

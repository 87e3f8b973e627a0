#pragma once
// treadle run --find, --statistics and --values: a run that is looked into.

#include <string>
#include <vector>

#include "common.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library calls itself so
class App;
class Option;
}  // namespace CLI

namespace cli {

struct Look {
  std::string find;                 // "nan"
  std::string folder;               // for the node that made it; empty: it is not saved
  bool statistics = false;          // of the values `watch`, or of all
  std::vector<std::string> watch;   // "NAME[@ITERATIONS]"
  std::vector<std::string> values;  // whose contents go to `file`; names as in `watch`
  std::string file = "values.npz";
  int64_t every = 1;               // of the iterations
  size_t limit = size_t{1} << 30;  // bytes of contents or statistics

  void add(CLI::App& command);
  bool wanted() const { return !find.empty() || statistics || !values.empty(); }
  // Such a run takes the model as it is written.
  void prepare(Common& common) const;
  // Runs, prints what was found, and writes the values. Returns the exit status: kFailed if something was found.
  int run(const treadle::Session& session, const treadle::Feeds& feeds, treadle::RunOptions& options, bool json) const;
};

}  // namespace cli

#pragma once
// treadle run --find and --values: a run that is looked into.

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
  std::vector<std::string> values;  // "NAME[@ITERATIONS]"
  std::string file = "values.npz";
  size_t limit = size_t{1} << 30;  // bytes of contents

  void add(CLI::App& command);
  bool wanted() const { return !find.empty() || !values.empty(); }
  // Such a run takes the model as it is written.
  void prepare(Common& common) const;
  // Runs, prints what was found, and writes the values. Returns the exit status: kFailed if something was found.
  int run(const treadle::Session& session, const treadle::Feeds& feeds, treadle::RunOptions& options, bool json) const;
};

}  // namespace cli

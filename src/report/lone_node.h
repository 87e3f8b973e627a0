#pragma once
// The node that made what was found (report/findings.h) as a model of its own, with the inputs that it had then: what
// `treadle test` and `treadle run` repeat, and people send to each other.

#include "report/findings.h"
#include "session/session.h"

namespace treadle::report {

// The run in which it was found.
struct FoundRun {
  const Session& observed;  // Session::observed
  std::span<const Feed> feeds;
  const RunOptions& options;
  bool is_rewritten;  // loading has computed what depends on constants alone
};

// Writes FOLDER/model.onnx and FOLDER/test_data_set_0/{input,output}_I.pb. The model is run again up to the node to get
// its inputs; its outputs are those of the node alone. Model and inputs may take 256 MB together.
SavedNode save_node(const FoundRun& from, const Sought& sought, const FoundPlace& place, const std::string& folder);

}  // namespace treadle::report

#pragma once
// What SessionOptions::dump asks for: the graph behind one pass, or what each pass did.

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "opt/pipeline.h"

namespace treadle::session {

// The name that asks for a line for each pass that ran: whether it changed the graph, and how long it took.
inline constexpr std::string_view kDumpChanges = "changes";

// kInvalidArgument for what is neither a pass nor kDumpChanges.
Status check_dump(std::string_view what);

class GraphDump {
 public:
  // Has the passes that run with `options` note here what `what` asks for. It outlives `options`, and so does `what`.
  void watch(std::string_view what, opt::PipelineOptions& options);
  // Empty where nothing that was asked for has run yet.
  std::string text() const;

 private:
  struct Work {
    const opt::Pass* pass;
    bool changed;
    int64_t ns;
  };
  void add(const Work& work);

  mutable std::mutex mutex_;
  std::string graph_;       // of the last time that the pass ran
  std::vector<Work> done_;  // of all times together, in the order of the passes
};

}  // namespace treadle::session

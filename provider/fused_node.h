// A claimed subgraph at run time: the node that onnxruntime has in its place.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "graph.h"
#include "sessions.h"
#include "threads.h"

namespace treadle::provider {

class FusedNode : public OrtNodeComputeInfo {
 public:
  // `inputs` and `outputs`: of onnxruntime's node. `threads`: NULL where the settings say how many. Throws when the
  // session wants an input that the node lacks.
  FusedNode(Session session, const Settings& settings, Threads* threads, const Values& inputs, const Values& outputs);

 private:
  // An output whose sizes the model says is written where onnxruntime wants it; any other is copied there.
  struct Output {
    std::string name;
    int element = 0;
    bool sized = false;
    std::vector<int64_t> dims{};
  };

  void run(OrtKernelContext* context) const;

  Session session_;
  const Settings& settings_;
  Threads* threads_;
  mutable std::once_flag first_run_;
  std::vector<size_t> positions_;  // of the session's inputs among those of the node
  std::vector<std::string> inputs_;
  std::vector<const char*> input_names_, output_names_;
  std::vector<Output> outputs_;
};

}  // namespace treadle::provider

// A claim at run time: the node that onnxruntime has in its place.
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
  // `inputs` and `outputs`: of onnxruntime's node. `threads`: NULL if the settings give their number. Throws if the
  // session needs an input that the node lacks.
  FusedNode(Session session, const Settings& settings, Threads* threads, const Values& inputs, const Values& outputs);

 private:
  // An output of known size is written straight to onnxruntime's memory; any other is copied there.
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
  std::vector<size_t> positions_;  // positions of the session's inputs among those of the node
  std::vector<std::string> inputs_;
  std::vector<const char*> input_names_, output_names_;
  std::vector<Output> outputs_;
};

}  // namespace treadle::provider

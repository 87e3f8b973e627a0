// The execution provider of one session of onnxruntime.
#pragma once

#include "claims.h"
#include "sessions.h"

namespace treadle::provider {

class Provider : public OrtEp {
 public:
  Provider(const OrtSessionOptions* options, const OrtLogger* logger);

 private:
  void claim(const OrtGraph* graph, OrtEpGraphSupportInfo* info);
  void compile(const OrtGraph* graph, const OrtNode* fused, OrtNodeComputeInfo** out);
  std::vector<Claim> claims_of(const Graph& graph);
  // Whether a session takes the nodes. Says why not.
  bool accepts(const OrtGraph* graph, const std::vector<const Node*>& nodes, const Values& outputs);
  bool is_left_to_outer(const OrtGraph* graph);
  bool is_out_of_names(const Graph& graph) const;

  Settings settings_;
  Sessions sessions_;
  const OrtLogger* logger_;
  bool has_claims_ = false;
};

}  // namespace treadle::provider

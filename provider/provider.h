// The execution provider of one session of onnxruntime.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "claims.h"
#include "model.h"
#include "sessions.h"
#include "threads.h"

namespace treadle::provider {

class Provider : public OrtEp {
 public:
  Provider(const OrtSessionOptions* options, const OrtLogger* logger);

 private:
  void claim(const OrtGraph* graph, OrtEpGraphSupportInfo* info);
  void compile(const OrtGraph* graph, const OrtNode* fused, OrtNodeComputeInfo** out);
  static std::vector<std::string> names_of(const Values& values);
  std::vector<Claim> claims_of(const Graph& graph);
  // Whether a session takes the nodes. Logs the reason if not.
  bool accepts(const OrtGraph* graph, const std::vector<const Node*>& nodes, const Values& outputs, ModelFor purpose);
  Claiming claiming_in(const Graph& graph) const;
  bool is_left_to_outer(const Graph& graph);
  bool is_out_of_names(const Graph& graph) const;

  Settings settings_;
  Sessions sessions_;
  Threads threads_;
  const OrtLogger* logger_;
  bool has_claims_ = false;
  // Outputs of claims in bodies. When a claim is compiled, onnxruntime does not say whether its graph is a body.
  std::set<std::vector<std::string>> in_bodies_;
};

}  // namespace treadle::provider

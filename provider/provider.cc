#include "provider.h"

#include <algorithm>
#include <set>

#include "fused_node.h"
#include "model.h"

namespace treadle::provider {

namespace {

// A captured value is available if one of the nodes makes it, or takes it as an input as well.
void require_known_captures(const std::vector<const Node*>& nodes) {
  std::set<std::string> known;
  for (const Node* node : nodes) {
    for (const Values* values : {&node->inputs, &node->outputs}) {
      for (const OrtValueInfo* value : *values) known.insert(name_of(value));
    }
  }
  for (const Node* node : nodes) {
    for (const OrtValueInfo* value : node->captured) {
      if (is_constant(value) || known.contains(name_of(value))) continue;
      throw Failure(ORT_NOT_IMPLEMENTED, "only onnxruntime 1.27 and later hand captured values to providers");
    }
  }
}

}  // namespace

Provider::Provider(const OrtSessionOptions* options, const OrtLogger* logger)
    : OrtEp{}, settings_(options), sessions_(settings_), logger_(logger) {
  ort_version_supported = kOldestVersion;
  OrtEp::GetName = [](const OrtEp*) { return kName; };
  OrtEp::GetCapability = [](OrtEp* self, const OrtGraph* graph, OrtEpGraphSupportInfo* info) {
    return guarded([&] { static_cast<Provider*>(self)->claim(graph, info); });
  };
  OrtEp::Compile = [](OrtEp* self, const OrtGraph** graphs, const OrtNode** fused, size_t count,
                      OrtNodeComputeInfo** out, OrtNode**) {
    return guarded([&] {
      auto* provider = static_cast<Provider*>(self);
      for (size_t i = 0; i < count; ++i) provider->compile(graphs[i], fused[i], &out[i]);
      provider->sessions_.forget();
    });
  };
  OrtEp::ReleaseNodeComputeInfos = [](OrtEp*, OrtNodeComputeInfo** infos, size_t count) {
    for (size_t i = 0; i < count; ++i) delete static_cast<FusedNode*>(infos[i]);
  };
}

std::vector<std::string> Provider::names_of(const Values& values) {
  std::vector<std::string> names;
  for (const OrtValueInfo* value : values) names.push_back(name_of(value));
  std::ranges::sort(names);
  return names;
}

// onnxruntime asks about bodies before it asks about the graph around them.
void Provider::claim(const OrtGraph* handle, OrtEpGraphSupportInfo* info) {
  if (settings_.wants_context)
    return warn(logger_, "nothing is taken: EPContext nodes (ep.context_enable) are not made");
  const Graph graph(handle);
  if (is_out_of_names(graph) || is_left_to_outer(graph)) return;
  const OrtNodeFusionOptions options{.ort_version_supported = kOldestVersion, .drop_constant_initializers = true};
  for (const Claim& claim : claims_of(graph)) {
    has_claims_ = true;
    if (parent_of(handle)) in_bodies_.insert(names_of(outputs_of(graph, claim)));
    std::vector<const OrtNode*> nodes;
    for (const Node* node : claim.members(graph)) nodes.push_back(node->handle);
    check(host().ep_api->EpGraphSupportInfo_AddNodesToFuse(info, nodes.data(), nodes.size(), &options));
  }
}

std::vector<Claim> Provider::claims_of(const Graph& graph) {
  const auto purpose = parent_of(graph.handle) ? ModelFor::kClaimInBody : ModelFor::kClaim;
  return find_claims(graph, settings_, claiming_in(graph), [&](const Claim& claim) {
    return accepts(graph.handle, claim.members(graph), outputs_of(graph, claim), purpose);
  });
}

bool Provider::accepts(const OrtGraph* graph, const std::vector<const Node*>& nodes, const Values& outputs,
                       ModelFor purpose) {
  try {
    if (!host().wires_captures()) require_known_captures(nodes);
    sessions_.open(write_model(graph, nodes, outputs, purpose));
    return true;
  } catch (const Failure& failure) {
    warn(logger_, "left to onnxruntime: " + nodes.front()->type + " (" + failure.what() + ")");
    return false;
  }
}

// By costs, claims also take nodes around a loop. Before onnxruntime 1.27 the claim must contain the values that its
// body captures. So in a body, and in a graph that may be one, only loops are claimed then.
Claiming Provider::claiming_in(const Graph& graph) const {
  const bool costs = host().wires_captures() || (host().tells_graphs_apart() && !parent_of(graph.handle));
  return costs || settings_.claiming == Claiming::kAll ? settings_.claiming : Claiming::kLoops;
}

// onnxruntime 1.23 numbers the claims of every graph of a model from 0, under one name, and fails if two are alike.
// Then only one graph of a model has claims; the outermost, if it can be recognised.
bool Provider::is_out_of_names(const Graph& graph) const {
  return !host().tells_graphs_apart() && (has_claims_ || graph.looks_like_body());
}

// Whether the node whose body the graph is will be claimed, alone or with the graph around it. onnxruntime shows only
// that node, not its graph. If the node takes or gives values other than tensors, its claim is assumed to grow until
// only tensors cross its border.
bool Provider::is_left_to_outer(const Graph& graph) {
  const OrtNode* handle = parent_of(graph.handle);
  if (!handle) return false;
  if (settings_.claiming == Claiming::kAll) return true;
  const Node parent = read_node(handle);
  if (!is_wanted(graph, parent, settings_, claiming_in(graph))) return false;
  Values outputs = parent.outputs;
  std::erase(outputs, nullptr);
  return accepts(graph.handle, {&parent}, outputs, ModelFor::kQuestion);
}

void Provider::compile(const OrtGraph* graph, const OrtNode* fused, OrtNodeComputeInfo** out) {
  const Node node = read_node(fused);
  const std::vector<Node> nodes = read_nodes(graph);
  std::vector<const Node*> members;
  for (const Node& member : nodes) members.push_back(&member);
  const auto purpose = in_bodies_.contains(names_of(node.outputs)) ? ModelFor::kClaimInBody : ModelFor::kClaim;
  const Session session = sessions_.take(write_model(graph, members, node.outputs, purpose));
  *out = new FusedNode(session, settings_, settings_.own_threads ? nullptr : &threads_, node.inputs, node.outputs);
}

}  // namespace treadle::provider

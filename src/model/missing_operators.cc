#include "model/missing_operators.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <unordered_set>
#include <vector>

#include "op/registry.h"

namespace treadle::model {

namespace {

class Search {
 public:
  explicit Search(const FunctionTable& functions) : functions_(functions) {}

  void look_at(const wire::List<wire::NodeProto>& nodes) {
    for (const wire::NodeProto& node : nodes) {
      if (const Function* function = functions_.find(node)) {
        if (seen_.insert(function->proto).second) look_at(function->proto->nodes);
      } else if (const std::string_view domain = canonical_domain(node.domain); !find_op(domain, node.op_type)) {
        ++nodes_of_[domain.empty() ? std::string(node.op_type) : fmt::format("{}.{}", domain, node.op_type)];
      }
      for (const wire::AttributeProto& attribute : node.attributes) {
        if (attribute.g) look_at(attribute.g->nodes);
        for (const wire::GraphProto& body : attribute.graphs) look_at(body.nodes);
      }
    }
  }

  std::string sentence() const {
    if (nodes_of_.size() < 2) return {};
    constexpr size_t kMostNamed = 40;
    std::vector<std::pair<std::string, size_t>> found(nodes_of_.begin(), nodes_of_.end());
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
      return a.second != b.second ? a.second > b.second : a.first < b.first;
    });
    std::vector<std::string> named;
    for (const auto& [name, count] : found) {
      if (named.size() == kMostNamed) break;
      named.push_back(fmt::format("{} ({} node{})", name, count, count == 1 ? "" : "s"));
    }
    const size_t rest = found.size() - named.size();
    return fmt::format(
        "{} operators of the model are not implemented: {}{}; \"treadle ops\" lists those that are, and a "
        "function of the model may define the others",
        found.size(), fmt::join(named, ", "), rest == 0 ? "" : fmt::format(" and {} more", rest));
  }

 private:
  const FunctionTable& functions_;
  std::map<std::string, size_t> nodes_of_;
  std::unordered_set<const wire::FunctionProto*> seen_;
};

}  // namespace

std::string missing_operators(const wire::ModelProto& model, const FunctionTable& functions) {
  Search search(functions);
  search.look_at(model.graph->nodes);
  return search.sentence();
}

}  // namespace treadle::model

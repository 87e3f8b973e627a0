// Arguments and attributes of nodes.

#include "reduce/lists.h"
#include "reduce/step.h"
#include "reduce/tidy.h"

namespace treadle::reduce {

namespace {

// An argument is left out, or the list of arguments becomes shorter.
class Arguments : public Step {
 public:
  const char* name() const override { return "arguments"; }
  size_t ways() const override { return 2; }
  size_t count(wire::ModelProto& model) const override {
    size_t count = 0;
    for (const Scope& scope : scopes_of(model)) {
      for (const wire::NodeProto& node : scope.nodes()) count += node.inputs.size();
    }
    return count;
  }
  bool apply(Candidate& candidate, size_t first, size_t last, size_t way) const override {
    size_t index = 0;
    for (const Scope& scope : scopes_of(candidate.model)) {
      for (wire::NodeProto& node : scope.nodes()) {
        const auto is_chosen = [&] {
          const size_t i = index++;
          return i >= first && i < last;
        };
        if (way == kShorter) {
          erase_if(node.inputs, [&](std::string_view) { return is_chosen(); });
          continue;
        }
        for (std::string_view& input : node.inputs) {
          if (is_chosen()) input = "";
        }
        while (!node.inputs.empty() && node.inputs.back().empty()) node.inputs.truncate(node.inputs.size() - 1);
      }
    }
    return tidy(candidate);
  }

 private:
  enum Way : uint8_t { kLeftOut, kShorter };
};

// Bodies aside.
class Attributes : public Step {
 public:
  const char* name() const override { return "attributes"; }
  size_t count(wire::ModelProto& model) const override {
    size_t count = 0;
    for_each(model, [&](const wire::AttributeProto&) {
      ++count;
      return false;
    });
    return count;
  }
  bool apply(Candidate& candidate, size_t first, size_t last, size_t) const override {
    size_t index = 0;
    for_each(candidate.model, [&](const wire::AttributeProto&) {
      const size_t i = index++;
      return i >= first && i < last;
    });
    return true;
  }

 private:
  // Takes out those for which drop(attribute) is true.
  template <class Drop>
  static void for_each(wire::ModelProto& model, Drop&& drop) {
    for (const Scope& scope : scopes_of(model)) {
      for (wire::NodeProto& node : scope.nodes()) {
        erase_if(node.attributes, [&](const wire::AttributeProto& attribute) {
          return !attribute.g && attribute.graphs.empty() && drop(attribute);
        });
      }
    }
  }
};

}  // namespace

void add_argument_steps(Steps& steps) {
  steps.push_back(std::make_unique<Arguments>());
  steps.push_back(std::make_unique<Attributes>());
}

}  // namespace treadle::reduce

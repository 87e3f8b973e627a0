// Names: each is defined once in its graph, before it is used. A body must not define a name that is a node's output
// outside. An input or initializer that hides an outer name is allowed, with a warning.
#include <algorithm>

#include "base/spelling.h"
#include "check/walk.h"
#include "model/tensor_reader.h"
#include "model/types.h"

namespace treadle::checking {

// The names stay visible after the nodes, for the model's training algorithm.
void Walk::open_graph(const wire::GraphProto& graph, bool main) {
  if (main) names_->reserve(graph.nodes.size() + graph.inputs.size() + graph.initializers.size());
  names_->enter();
  frames_.back().nodes = &graph.nodes;
  if (uses_) {
    auto [numbers, fresh] = uses_->by_graph.emplace(&graph);
    if (fresh) *numbers = std::make_unique<model::NameUses::Numbers>();
    frames_.back().numbers = numbers->get();
    frames_.back().numbers->reserve(4 * graph.nodes.size());
  }
  if (graph.name.empty()) report(Problem::kNameMissing, {}, "the graph has no name");
  check_text(graph.name, "the graph's name");
  check_metadata(graph.metadata_props, "the graph's");
  check_inputs(graph, main);
  for (const wire::ValueInfoProto& output : graph.outputs) check_value_info(output, main, "output");
  for (const wire::ValueInfoProto& value : graph.value_infos) {
    check_value_type(value);
  }
  check_initializers(graph);
  check_nodes(graph.nodes);
  check_graph_outputs(graph);
}

void Walk::close_graph() {
  names_->leave([&](std::string_view name, const Definition& definition) {
    if (definition.by != DefinedBy::kInitializer || definition.used) return;
    report(Problem::kInitializerUnused, name, "initializer {} is never used", quoted(name));
  });
}

void Walk::check_inputs(const wire::GraphProto& graph, bool main) {
  for (const wire::ValueInfoProto& input : graph.inputs) {
    check_value_info(input, main, "input");
    if (!input.name.empty()) define(input.name, DefinedBy::kInput, &input, "input");
  }
}

void Walk::check_initializers(const wire::GraphProto& graph) {
  std::unordered_set<std::string_view> seen;
  seen.reserve(graph.initializers.size() + graph.sparse_initializers.size());
  for (const wire::TensorProto& tensor : graph.initializers) {
    check_tensor(tensor, "initializer");
    define_initializer(tensor.name, tensor, seen);
  }
  for (const wire::SparseTensorProto& sparse : graph.sparse_initializers) {
    check_sparse_tensor(sparse, "sparse initializer");
    define_initializer(sparse.values.name, sparse.values, seen);
  }
  compare_initializers(graph);
}

// Compares an initializer with an input or value info of the same name. For a sparse initializer, only its parts have
// types.
void Walk::compare_initializers(const wire::GraphProto& graph) {
  if (graph.initializers.empty() || !options_.full) return;
  std::unordered_map<std::string_view, const wire::TypeProto*> declared;
  for (const auto* infos : {&graph.inputs, &graph.value_infos}) {
    for (const wire::ValueInfoProto& info : *infos) {
      if (info.type) declared.emplace(info.name, &*info.type);
    }
  }
  if (declared.empty()) return;
  for (const wire::TensorProto& tensor : graph.initializers) {
    const auto it = declared.find(tensor.name);
    if (it == declared.end()) continue;
    const auto stated = model::read_type(*it->second), own = model::TensorReader::type_of(tensor);
    if (!stated.ok() || !own.ok() || merge(*stated, *own).ok())
      continue;  // problems of the types themselves have been
                 // reported
    Diagnostic& d = report(Problem::kTypeContradiction, tensor.name,
                           "{} is declared with another type than its initializer has", quoted(tensor.name));
    d.expected = stated->to_string() + " (declared)";
    d.found = own->to_string();
  }
}

void Walk::define_initializer(std::string_view name, const wire::TensorProto& tensor,
                              std::unordered_set<std::string_view>& seen) {
  if (name.empty()) {
    report(Problem::kNameMissing, {}, "an initializer has no name");
    return;
  }
  check_text(name, "an initializer's name");
  if (!seen.insert(name).second) {
    report(Problem::kNameDuplicate, name, "two initializers are called {}", quoted(name));
    return;
  }
  const Definition& known = names_->find(name);
  const bool is_input = known.by == DefinedBy::kInput && known.depth == names_->depth();
  if (is_input) {  // a default of the input; in a body, the importer makes it a constant
    if (uses_ && frames_.size() > 1) uses_->complete = false;
    return;
  }
  if (ir_version_ >= 1 && ir_version_ <= 3) {
    report(Problem::kInitializerNotInput, name, "initializer {} is no input of the graph", quoted(name)).hint =
        "list it among the inputs, or state IR version 4 or later";
  }
  define(name, DefinedBy::kInitializer, &tensor, "initializer");
}

// Defines a name of an input or initializer: once per graph; it may hide outer names.
void Walk::define(std::string_view name, DefinedBy by, const void* proto, std::string_view what) {
  const Definition known = names_->find(name);
  if (known.exists() && known.depth == names_->depth()) {
    set_origin(report(Problem::kNameDuplicate, name, "{} {} is defined twice", what, quoted(name)), name, known);
    return;
  }
  if (known.exists()) {
    Diagnostic& d = report(Problem::kNameShadowed, name, "{} {} of the body hides a value of the same name outside",
                           what, quoted(name));
    set_origin(d, name, known);
    d.hint = "rename one of them";
  }
  names_->define(name, by, proto);
  note_number(names_->definitions() - 1);
}

void Walk::check_nodes(const wire::List<wire::NodeProto>& nodes) {
  const size_t depth = frames_.size() - 1;
  frames_[depth].nodes = &nodes;
  for (const wire::NodeProto& node : nodes) {
    frames_[depth].node = &node;
    check_uses(node);
    check_node(node);
    define_outputs(node);
  }
  frames_[depth].node = nullptr;
}

void Walk::check_uses(const wire::NodeProto& node) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const std::string_view name = node.inputs[i];
    if (name.empty()) continue;
    Definition& definition = names_->find(name);
    if (definition.exists()) {
      definition.used = true;
      note_number(definition.number);
    } else {
      report_unknown(name, i);
    }
  }
}

void Walk::define_outputs(const wire::NodeProto& node) {
  for (const std::string_view name : node.outputs) {
    if (name.empty()) continue;
    check_text(name, "an output's name");
    const Definition known = names_->define(name, DefinedBy::kNode, &node);
    note_number(names_->definitions() - 1);
    if (!known.exists()) continue;
    Diagnostic& d = report(Problem::kNameDuplicate, name, "output {} is defined already{}", quoted(name),
                           known.depth < names_->depth() ? ", outside of this body" : "");
    set_origin(d, name, known);
    d.hint = "every value of a graph and its bodies needs a name of its own";
  }
}

void Walk::check_graph_outputs(const wire::GraphProto& graph) {
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const std::string_view name = graph.outputs[i].name;
    if (name.empty()) continue;
    Definition& definition = names_->find(name);
    const bool exists = definition.exists(), here = exists && definition.depth == names_->depth();
    definition.used = true;
    if (here) {
      note_number(definition.number);
      continue;
    }
    Diagnostic& d = report(Problem::kOutputUnknown, name, "nothing in the graph makes its output {}", quoted(name));
    if (exists) {
      set_origin(d, name, definition);
      d.hint = "pass it on by an Identity in the body";
    } else {
      suggest_name(d, name);
    }
  }
}

// ---- Undefined names

void Walk::report_unknown(std::string_view name, size_t input) {
  for (size_t frame = frames_.size(); frame-- > 0;) {
    if (report_later(name, input, frame)) return;
  }
  Diagnostic& d = report(Problem::kNameUnknown, name, "input {} is {}, which nothing defines", input, quoted(name));
  const NamesInBodies& inner = names_in_bodies();
  if (const auto it = inner.places.find(name); it != inner.places.end()) {
    set_origin(d, fmt::format("there is a {} in {}", quoted(name), inner.paths[it->second]), it->first);
    d.hint = "a value of a body is visible inside that body only: make it an output of the body";
  } else {
    suggest_name(d, name);
  }
}

// Whether a later node of the frame's graph makes the name.
bool Walk::report_later(std::string_view name, size_t input, size_t frame) {
  find_makers(frames_[frame]);
  const auto it = frames_[frame].makers.find(name);
  if (it == frames_[frame].makers.end()) return false;
  Frame& owner = frames_[frame];
  if (!owner.node) return false;
  const size_t user = static_cast<size_t>(owner.node - owner.nodes->data());
  const wire::NodeProto& maker = (*owner.nodes)[it->second];
  const std::string place = fmt::format("{}/{} ({})", path_of_graph(frame),
                                        node_name(maker, &maker - owner.nodes->data()), operator_text(maker));
  find_circles(owner);
  if (it->second == user || owner.circles[it->second] == owner.circles[user]) {
    Diagnostic& d = report(Problem::kNodeCycle, name, "input {} is {}, which depends on this node's own output", input,
                           quoted(name));
    set_origin(d, fmt::format("{} is made by {}", quoted(name), place), it->first);
    d.hint = "what goes around in circles has to be a state of a Loop or Scan";
  } else {
    Diagnostic& d = report(Problem::kNodeOrder, name, "input {} is {}, which a later node makes", input, quoted(name));
    set_origin(d, fmt::format("{} is made by {}", quoted(name), place), it->first);
    d.hint = "sort the nodes so that each stands behind those it needs";
  }
  return true;
}

void Walk::find_makers(Frame& frame) {
  if (frame.has_makers) return;
  frame.has_makers = true;
  for (size_t i = 0; i < frame.nodes->size(); ++i) {
    for (const std::string_view output : (*frame.nodes)[i].outputs) {
      if (!output.empty()) frame.makers.emplace(output, i);
    }
  }
}

// Tarjan's strongly connected components over the nodes of the graph, with an explicit stack.
void Walk::find_circles(Frame& frame) {
  if (!frame.circles.empty()) return;
  const auto& nodes = *frame.nodes;
  constexpr int kNew = -1;
  std::vector<int> index(nodes.size(), kNew), low(nodes.size(), 0);
  frame.circles.assign(nodes.size(), kNew);
  struct Visit {
    size_t node, input;
  };
  std::vector<Visit> visits;
  std::vector<size_t> open;
  int next_index = 0, next_circle = 0;
  for (size_t root = 0; root < nodes.size(); ++root) {
    if (index[root] != kNew) continue;
    visits.push_back({root, 0});
    while (!visits.empty()) {
      auto& [node, input] = visits.back();
      if (input == 0 && index[node] == kNew) {
        index[node] = low[node] = next_index++;
        open.push_back(node);
      }
      if (input < nodes[node].inputs.size()) {
        const auto maker = frame.makers.find(nodes[node].inputs[input++]);
        if (maker == frame.makers.end()) continue;
        if (index[maker->second] == kNew) {
          visits.push_back({maker->second, 0});
        } else if (frame.circles[maker->second] == kNew) {
          low[node] = std::min(low[node], index[maker->second]);
        }
        continue;
      }
      const size_t done = node;
      if (low[done] == index[done]) {
        size_t member = 0;
        do {
          member = open.back();
          open.pop_back();
          frame.circles[member] = next_circle;
        } while (member != done);
        ++next_circle;
      }
      visits.pop_back();
      if (!visits.empty()) low[visits.back().node] = std::min(low[visits.back().node], low[done]);
    }
  }
}

// each suggestion searches all visible names
static constexpr size_t kMostSuggestions = 200;

void Walk::suggest_name(Diagnostic& diagnostic, std::string_view name) {
  if (report_.errors > kMostSuggestions) return;
  Speller speller(name);
  names_->for_each([&](std::string_view candidate, const Definition&) { speller.offer(candidate); });
  if (!speller.best().empty()) diagnostic.hint = fmt::format("did you mean {}?", quoted(speller.best()));
}

namespace {

class BodyNames {
 public:
  explicit BodyNames(NamesInBodies& names) : names_(names) {}

  void collect(const wire::List<wire::NodeProto>& nodes, const std::string& path) {
    for (const wire::NodeProto& node : nodes) {
      for (const wire::AttributeProto& attribute : node.attributes) {
        if (attribute.g) collect(*attribute.g, body_path(path, node, &node - nodes.data(), attribute.name));
        for (const wire::GraphProto& graph : attribute.graphs) {
          collect(graph, body_path(path, node, &node - nodes.data(), attribute.name));
        }
      }
    }
  }

 private:
  void collect(const wire::GraphProto& body, const std::string& path) {
    names_.paths.push_back(path);
    const size_t place = names_.paths.size() - 1;
    for (const wire::ValueInfoProto& input : body.inputs) names_.places.emplace(input.name, place);
    for (const wire::NodeProto& node : body.nodes) {
      for (const std::string_view output : node.outputs) names_.places.emplace(output, place);
    }
    collect(body.nodes, path);
  }
  static std::string body_path(const std::string& path, const wire::NodeProto& node, ptrdiff_t index,
                               std::string_view attribute) {
    constexpr size_t kMaxLength = 500;
    std::string text = fmt::format("{}/{}:{}", path, node_name(node, index), bare(attribute));
    return text.size() <= kMaxLength ? text : "..." + text.substr(text.size() - kMaxLength);
  }

  NamesInBodies& names_;
};

}  // namespace

// Every name that a body of the model's graph or of this function defines, with the path of the body.
const NamesInBodies& Walk::names_in_bodies() {
  if (!has_names_in_bodies_) {
    has_names_in_bodies_ = true;
    names_in_bodies_ = {};
    BodyNames(names_in_bodies_).collect(*frames_[0].nodes, "");
  }
  return names_in_bodies_;
}

}  // namespace treadle::checking

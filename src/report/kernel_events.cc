#include "report/kernel_events.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "op/op_def.h"
#include "report/node_times.h"

namespace treadle::report {

using plan::OpCode;
using run::Profile;

namespace {

constexpr std::string_view kOwnDomain = "treadle";  // of operators that only treadle's rewrites make

// The node's name in a path: "encoder" for "/encoder", the whole path for "/encoder/Add".
std::string name_of_path(std::string_view path) {
  if (path.find_last_of('/') == 0) path.remove_prefix(1);
  return std::string(path);
}

void add_nodes(const ir::Region& region, size_t prefix, ModelNodes& found) {
  for (const auto& node : region.nodes) {
    const std::string_view path = node->name;
    found.try_emplace(std::string(path),
                      ModelNode{name_of_path(path.substr(std::min(prefix, path.size()))), node->op->name});
    for (const auto& body : node->regions) add_nodes(*body, path.size() + 1 + body->attribute.size(), found);
  }
}

// The node of the model from which a node of the program was made.
struct Origin {
  std::string_view path;
  std::string name, op;
  bool is_part = false;  // the model's node became several nodes, of which this is one
};

Origin origin_of(const ir::Node& node, const ModelNodes& model) {
  const std::string_view whole = node.name;
  for (std::string_view path = whole; !path.empty();) {
    if (const auto found = model.find(path); found != model.end()) {
      const bool is_part = path.size() < whole.size();
      const bool has_own_name = !is_part && node.op->domain != kOwnDomain;
      return {found->first, found->second.name, has_own_name ? node.op->name : found->second.op, is_part};
    }
    const size_t end = path.find_last_of("/:");
    path = path.substr(0, end == std::string_view::npos ? 0 : end);
  }
  return {whole, name_of_path(whole), node.op->name};
}

std::string type_text(const Type& type) {
  if (!type.is_tensor()) return JsonObject().raw(type.to_string(), "[]").str();
  std::vector<std::string> dims;
  if (type.has_shape) {
    for (const Dim& dim : type.shape) dims.push_back(std::to_string(dim.value_or(-1)));
  }
  return JsonObject().raw(name(type.element), json_array(dims)).str();
}

template <class Values>
std::string types_text(const Values& values) {
  std::vector<std::string> types;
  for (const ir::Value* value : values) {
    if (value) types.push_back(type_text(value->type));
  }
  return json_array(types);
}

class Writer {
 public:
  Writer(const Profile::Run& run, const ModelNodes& model, int64_t origin_ns)
      : run_(run), model_(model), origin_ns_(origin_ns) {}

  std::string take() {
    for (const Profile::Event& event : run_.events) add(event);
    return json_array(written_);
  }

 private:
  void add(const Profile::Event& event) {
    const plan::Instruction& in = run_.program->code[event.pc];
    if (in.code == OpCode::kLoopBegin) {
      loops_.push_back({event.start_ns, origin_of(*run_.program->loops[in.index].node, model_)});
    } else if (in.code == OpCode::kLoopEnd) {
      end_loop(*run_.program->loops[in.index].node, event.start_ns + event.ns);
    } else if (is_timed_alone(in.code)) {
      add_nodes(event);
    }
  }

  void end_loop(const ir::Node& loop, int64_t end_ns) {
    if (loops_.empty()) return;  // the recording began later
    const int64_t begin_ns = loops_.back().begin_ns;
    loops_.pop_back();
    add_node(loop, begin_ns, end_ns - begin_ns);
  }

  void add_nodes(const Profile::Event& event) {
    const auto nodes = plan::nodes_of(*run_.program, event.pc);
    const int64_t each = event.ns / std::max<int64_t>(1, static_cast<int64_t>(nodes.size()));
    for (size_t i = 0; i < nodes.size(); ++i) {
      add_node(*nodes[i], event.start_ns + static_cast<int64_t>(i) * each, each);
    }
  }

  // Whether the time of a part is contained in that of a loop from the same node.
  bool is_in_loop_of(std::string_view path) const {
    return std::ranges::any_of(loops_, [&](const OpenLoop& loop) { return loop.origin.path == path; });
  }

  void add_node(const ir::Node& node, int64_t begin_ns, int64_t ns) {
    const Origin origin = origin_of(node, model_);
    if (origin.is_part && is_in_loop_of(origin.path)) return;
    const std::string arguments = JsonObject()
                                      .text("op_name", origin.op)
                                      .text("provider", "CPUExecutionProvider")
                                      .text("node_index", std::to_string(number_of(origin.path)))
                                      .raw("input_type_shape", types_text(node.inputs))
                                      .raw("output_type_shape", types_text(node.outputs))
                                      .str();
    written_.push_back(JsonObject()
                           .text("cat", "Node")
                           .integer("pid", getpid())
                           .integer("tid", gettid())
                           .integer("dur", microsecond(begin_ns + ns) - microsecond(begin_ns))
                           .integer("ts", microsecond(begin_ns))
                           .text("ph", "X")
                           .text("name", origin.name + "_kernel_time")
                           .raw("args", arguments)
                           .str());
  }

  // Begins and ends are rounded alike, so an event never ends after the loop that contains it.
  int64_t microsecond(int64_t at_ns) const { return (at_ns - origin_ns_) / 1000; }

  size_t number_of(std::string_view path) { return numbers_.try_emplace(path, numbers_.size()).first->second; }

  struct OpenLoop {
    int64_t begin_ns;
    Origin origin;
  };

  const Profile::Run& run_;
  const ModelNodes& model_;
  int64_t origin_ns_;
  std::vector<OpenLoop> loops_;                           // loops around the current event
  std::unordered_map<std::string_view, size_t> numbers_;  // of nodes, in order of their first runs
  std::vector<std::string> written_;
};

}  // namespace

ModelNodes nodes_of_model(const ir::Graph& graph) {
  ModelNodes found;
  add_nodes(graph.top(), 0, found);
  return found;
}

std::string kernel_events(const Profile& profile, const ModelNodes& model, int64_t origin_ns) {
  return Writer(*times_of(profile.runs()).shown, model, origin_ns).take();
}

}  // namespace treadle::report

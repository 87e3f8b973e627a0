#include <fmt/format.h>

#include "base/json.h"
#include "report/advice.h"
#include "report/explain.h"
#include "report/explain_words.h"

namespace treadle::report {

namespace {

std::string json_of(const std::vector<NodeRemark>& remarks, std::string_view key) {
  std::vector<std::string> items;
  for (const NodeRemark& r : remarks) {
    items.push_back(JsonObject().text("node", r.node).text("op", r.op).text(key, r.remark).str());
  }
  return json_array(items);
}

std::string json_of(const std::vector<opt::Remark>& entries) {
  std::vector<std::string> items;
  for (const opt::Remark& entry : entries) {
    JsonObject item;
    item.text("change", opt::name(entry.change)).text("node", entry.node).text("op", entry.op);
    if (!entry.into.empty()) item.text("into", entry.into);
    items.push_back(item.str());
  }
  return json_array(items);
}

std::string json_of(const LoopReport& loop) {
  JsonObject json;
  json.text("node", loop.node).text("op", loop.op);
  json.raw("parent", loop.parent < 0 ? "null" : std::to_string(loop.parent));
  json.raw("iterations", loop.iterations < 0 ? "null" : std::to_string(loop.iterations));
  json.integer("states", loop.states).integer("scan_inputs", loop.scan_inputs);
  json.integer("scan_outputs", loop.scan_outputs).integer("state_bytes", loop.state_bytes);
  json.integer("unsized_states", loop.unsized_states);
  std::vector<std::string> beside;
  for (const std::string& other : loop.beside) beside.push_back(JsonObject().text("node", other).str());
  json.raw("beside", json_array(beside)).integer("beside_iterations", loop.beside_iterations);
  json.raw("in_strips", json_of(loop.in_strips, "remark")).integer("strip_iterations", loop.strip_iterations);
  json.raw("rewrites", json_of(loop.rewrites));
  json.text("tier", name(loop.tier));
  json.boolean("compiled", loop.native.compiled).boolean("from_cache", loop.native.from_cache);
  json.number("compile_ms", loop.native.compile_ms).integer("code_bytes", loop.native.bytes);
  json.text("why_not_native", loop.why_not_native).text("cache_problem", loop.native.cache_why);
  json.integer("operations", loop.operations).raw("calls", json_of(loop.calls, "why"));
  json.raw("obstacles", json_of(loop.obstacles, "why"));
  json.number("flops_per_iteration", loop.flops).number("bytes_per_iteration", loop.bytes);
  json.number("traffic_per_iteration", loop.traffic).boolean("is_complete", loop.is_complete);
  json.raw("unsized", json_of(loop.unsized, "remark")).raw("not_in_roof", json_of(loop.unroofed, "remark"));
  json.number("estimated_ns_per_iteration", loop.estimated_ns).number("measured_ns_per_iteration", loop.measured_ns);
  json.number("roof_ns_per_iteration", loop.roof_ns).number("outside_ns_per_iteration", loop.outside_ns);
  const std::string_view bound = loop.bound == LoopReport::Bound::kStates ? "states" : name(loop.bound);
  json.number("iterations_per_run", loop.iterations_in_run).number("estimated_ns_per_run", loop.run_ns);
  json.raw("runs_until_native", loop.runs_until_native < 0 ? "null" : fmt::format("{}", loop.runs_until_native));
  json.raw("bound_by", loop.unroofed.empty() && loop.is_complete ? json_text(bound) : "null");
  return json.str();
}

std::string json_of(const NodeCost& cost) {
  return JsonObject()
      .text("node", cost.node)
      .text("op", cost.op)
      .text("method", cost.method)
      .raw("loop", cost.loop < 0 ? "null" : std::to_string(cost.loop))
      .number("ns", cost.ns)
      .str();
}

}  // namespace

std::string to_json(const Explanation& explanation) {
  const Roofline& roof = measured_roofline();
  std::vector<std::string> levels, loops;
  for (const Roofline::Level& level : roof.levels) {
    levels.push_back(JsonObject().integer("bytes", level.bytes).number("bytes_per_ns", level.bytes_per_ns).str());
  }
  for (const LoopReport& loop : explanation.loops) loops.push_back(json_of(loop));
  const std::string machine = JsonObject()
                                  .number("flops_per_ns", roof.flops_per_ns)
                                  .number("function_ns", roof.function_ns)
                                  .number("latency_ns", roof.latency_ns)
                                  .raw("memory", json_array(levels))
                                  .str();
  std::vector<std::string> methods;
  for (const MethodCount& m : explanation.methods) {
    methods.push_back(
        JsonObject().text("op", m.op).text("method", m.method).integer("count", static_cast<int64_t>(m.count)).str());
  }
  std::vector<std::string> nodes, advice;
  for (const NodeCost& node : explanation.nodes) nodes.push_back(json_of(node));
  for (const std::string& sentence : advice_on(explanation)) advice.push_back(json_text(sentence));
  JsonObject json;
  json.text("jit", name(explanation.mode)).text("cache", explanation.cache);
  json.boolean("is_specific", explanation.is_specific).integer("instructions", explanation.instructions);
  json.integer("guarded", explanation.guarded).integer("arena_bytes", explanation.arena_bytes);
  json.raw("methods", json_array(methods))
      .raw("machine", machine)
      .raw("loops", json_array(loops))
      .raw("maps", json_of(explanation.maps))
      .raw("nodes", json_array(nodes))
      .raw("advice", json_array(advice));
  json.number("measured_ns_per_run", explanation.measured_run_ns);
  json.number("estimated_ns_per_run", explanation.estimated_run_ns);
  json.boolean("assumes_iterations", explanation.assumes_iterations);
  return json.str();
}

}  // namespace treadle::report

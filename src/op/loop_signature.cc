#include "op/loop_signature.h"

#include <algorithm>

namespace treadle {

namespace {

Status read_list(const ir::NodeInfo& node, const char* axes_name, const char* directions_name, std::string_view what,
                 std::vector<ScanAxis>& list) {
  const auto axes = node.attributes.get_ints(axes_name);
  const auto directions = node.attributes.get_ints(directions_name);
  if (node.attributes.has(axes_name) && axes.size() != list.size()) {
    return error(Code::kInvalidModel, "{} has {} entries, expected one per {}: {}", axes_name, axes.size(), what,
                 list.size());
  }
  if (node.attributes.has(directions_name) && directions.size() != list.size()) {
    return error(Code::kInvalidModel, "{} has {} entries, expected one per {}: {}", directions_name, directions.size(),
                 what, list.size());
  }
  for (size_t i = 0; i < list.size(); ++i) {
    if (!axes.empty()) list[i].axis = axes[i];
    if (directions.empty()) continue;
    if (directions[i] != 0 && directions[i] != 1) {
      return error(Code::kInvalidModel, "{}[{}] is {}, expected 0 (forward) or 1 (reverse)", directions_name, i,
                   directions[i]);
    }
    list[i].reverse = directions[i] == 1;
  }
  return {};
}

}  // namespace

Status unequal_lengths(size_t input, int64_t length, int64_t before) {
  return error(Code::kInvalidArgument, "scan input {} has length {}, expected that of the scan inputs before it, {}",
               input, length, before);
}

Status changed_state(Code code, size_t state, int64_t iteration, const Type& before, const Type& after) {
  return error(
      code, "state {} is {} when iteration {} begins and {} when it ends, expected the same type and shape in a Scan",
      state, before.to_string(), iteration, after.to_string());
}

BeforeStates before_states(Control control, int version) {
  if (control == Control::kLoop) return {.inputs = 2, .body_inputs = 2, .body_outputs = 1};
  return {.inputs = version == 8 ? size_t{1} : 0};
}

namespace {

Result<LoopSignature> read_loop(LoopSignature loop, size_t inputs, size_t body_outputs) {
  loop.states = inputs - std::min(inputs, loop.before.inputs);  // M and cond may be left out
  const size_t least = loop.before.body_outputs + loop.states;
  if (body_outputs < least) {
    return error(Code::kInvalidModel, "the body has {} outputs, expected a condition and one per state: {}",
                 body_outputs, least);
  }
  loop.scan_outputs.resize(body_outputs - least);
  return loop;
}

Result<LoopSignature> read_scan(LoopSignature scan, const ir::NodeInfo& node, size_t inputs, size_t body_outputs) {
  inputs -= std::min(inputs, scan.before.inputs);
  const int64_t scan_inputs = node.attributes.get_int("num_scan_inputs", 0);
  if (scan_inputs < 1 || scan_inputs > static_cast<int64_t>(inputs)) {
    return error(Code::kInvalidModel, "num_scan_inputs is {}, expected 1 to {} (the number of inputs)", scan_inputs,
                 inputs);
  }
  scan.states = inputs - static_cast<size_t>(scan_inputs);
  if (body_outputs < scan.states) {
    return error(Code::kInvalidModel, "the body has {} outputs, expected at least one per state: {}", body_outputs,
                 scan.states);
  }
  scan.masked = node.attributes.get_int("masked") != 0;
  scan.scan_inputs.resize(static_cast<size_t>(scan_inputs));
  scan.scan_outputs.resize(body_outputs - scan.states);
  const char* directions = node.version->since == 8 ? "directions" : "scan_input_directions";
  TREADLE_TRY(read_list(node, "scan_input_axes", directions, "scan input", scan.scan_inputs));
  TREADLE_TRY(read_list(node, "scan_output_axes", "scan_output_directions", "scan output", scan.scan_outputs));
  return scan;
}

}  // namespace

Result<LoopSignature> read_signature(const ir::NodeInfo& node, size_t inputs, size_t body_outputs) {
  LoopSignature signature;
  signature.before = before_states(node.op->control, node.version->since);
  return node.op->control == Control::kLoop ? read_loop(std::move(signature), inputs, body_outputs)
                                            : read_scan(std::move(signature), node, inputs, body_outputs);
}

}  // namespace treadle

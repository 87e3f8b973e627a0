#include "op/loop_view.h"

#include <algorithm>

#include "op/node.h"
#include "op/registry.h"

namespace treadle {

namespace {

using Offset = std::ptrdiff_t;

template <class List>
void erase_at(List& list, size_t i) {
  list.erase(list.begin() + static_cast<Offset>(i));
}

std::vector<int64_t> directions_of(const std::vector<ScanAxis>& axes) {
  std::vector<int64_t> directions;
  for (const ScanAxis& axis : axes) directions.push_back(axis.reverse ? 1 : 0);
  return directions;
}

// Sets an attribute that says where slices lie; without one they lie along axis 0.
void write_axes(ir::Attributes& attributes, std::string_view name, const std::vector<ScanAxis>& axes) {
  std::vector<int64_t> numbers;
  for (const ScanAxis& axis : axes) numbers.push_back(axis.axis);
  if (std::all_of(numbers.begin(), numbers.end(), [](int64_t axis) { return axis == 0; })) {
    attributes.erase(name);
  } else {
    attributes.set(ir::Attribute::of(std::string(name), std::move(numbers)));
  }
}

bool any_reverse(const std::vector<ScanAxis>& axes) {
  return std::any_of(axes.begin(), axes.end(), [](const ScanAxis& axis) { return axis.reverse; });
}

}  // namespace

Result<LoopView> LoopView::read(const ir::Node& loop) {
  const ir::Region* body = loop.region("body");
  if (!body) return error(Code::kInvalidModel, "attribute body is missing");
  TREADLE_ASSIGN(LoopSignature signature, read_signature(loop, loop.inputs.size(), body->outputs.size()));
  const size_t inputs = signature.scan_body_input(signature.scan_inputs.size());
  if (body->inputs.size() != inputs) {
    return error(Code::kInvalidModel, "the body has {} inputs, expected {}", body->inputs.size(), inputs);
  }
  return LoopView(loop, *body, std::move(signature));
}

LoopView::LoopView(const ir::Node& loop) : LoopView(read(loop).value()) {}

LoopView::State LoopView::state(size_t i) const {
  return {input(signature_.state_input(i)), body_->inputs[signature_.state_body_input(i)],
          body_->outputs[signature_.state_body_output(i)], output(i)};
}

LoopView::ScanInput LoopView::scan_input(size_t i) const {
  const ScanAxis& axis = signature_.scan_inputs[i];
  return {input(signature_.scan_input(i)), body_->inputs[signature_.scan_body_input(i)], axis.axis, axis.reverse};
}

LoopView::ScanOutput LoopView::scan_output(size_t i) const {
  const ScanAxis& axis = signature_.scan_outputs[i];
  return {body_->outputs[signature_.row_body_output(i)], output(signature_.scan_output(i)), axis.axis, axis.reverse};
}

size_t LoopView::state_before(const ir::Value* v) const {
  size_t i = 0;
  while (i < states() && state(i).before != v) ++i;
  return i;
}

bool LoopView::is_kept(size_t state_number) const {
  const State s = state(state_number);
  return s.after == s.before;
}

bool LoopView::stays_constant(size_t state_number) const {
  const State s = state(state_number);
  const ir::Value* value = s.after;
  while (value && value->producer && value->producer->op->name == "Identity" && value->producer->op->domain.empty()) {
    value = value->producer->inputs[0];
  }
  return value && value == s.before;
}

const Type* LoopView::row_type(size_t scan_output) const {
  const size_t at = signature_.row_body_output(scan_output);
  return at < body_->output_types.size() ? &body_->output_types[at] : nullptr;
}

bool LoopView::row_is_as_in_model(size_t scan_output) const {
  const ir::Value* row = this->scan_output(scan_output).row;
  const Type* type = row_type(scan_output);
  return type && row->type.is_concrete() && type->is_concrete() && same(type->shape, row->type.shape);
}

void LoopEditor::set_condition(ir::Value* condition) {
  while (node().inputs.size() < signature_.before.inputs) node().inputs.push_back(nullptr);
  node().inputs[1] = condition;
  recount();
}

void LoopEditor::set_scan_output(size_t i, ir::Value* whole) {
  const size_t at = signature_.scan_output(i);
  node().outputs[at] = whole;
  whole->producer = &node();
  whole->output_index = static_cast<uint32_t>(at);
}

ir::Value* LoopEditor::add_state(ir::Value* initial, ir::Value* before, ir::Value* after, std::string_view name) {
  ir::Region& body = this->body();
  const size_t i = states();
  const bool has_types = body.output_types.size() == body.outputs.size();
  node().inputs.insert(signature_.state_input(i), initial);
  body.inputs.insert(body.inputs.begin() + static_cast<Offset>(signature_.state_body_input(i)), before);
  const auto at = static_cast<Offset>(signature_.state_body_output(i));
  body.outputs.insert(body.outputs.begin() + at, after);
  if (has_types) body.output_types.insert(body.output_types.begin() + at, before->type);
  body.graph->add_output(&node(), name, before->type);
  std::rotate(node().outputs.begin() + static_cast<Offset>(i), node().outputs.end() - 1, node().outputs.end());
  ++signature_.states;
  recount();
  return node().outputs[i];
}

void LoopEditor::remove_state(size_t i) {
  ir::Region& body = this->body();
  const bool has_types = body.output_types.size() == body.outputs.size();
  if (has_types) erase_at(body.output_types, signature_.state_body_output(i));
  erase_at(body.inputs, signature_.state_body_input(i));
  erase_at(body.outputs, signature_.state_body_output(i));
  node().inputs.erase(signature_.state_input(i));
  if (ir::Value* final = output(i)) final->producer = nullptr;
  if (i < node().outputs.size()) node().outputs.erase(i);
  --signature_.states;
  recount();
}

void LoopEditor::add_scan_input(ir::Value* whole, ir::Value* element, bool reverse) {
  element->owner = &body();
  element->producer = nullptr;
  element->output_index = 0;
  node().inputs.push_back(whole);
  body().inputs.push_back(element);
  signature_.scan_inputs.push_back({0, reverse});
  write_scan_inputs();
}

void LoopEditor::remove_scan_input(size_t i) {
  node().inputs.erase(signature_.scan_input(i));
  erase_at(body().inputs, signature_.scan_body_input(i));
  erase_at(signature_.scan_inputs, i);
  write_scan_inputs();
}

ir::Value* LoopEditor::add_scan_output(ir::Value* row, const Dim& iterations, bool reverse, std::string_view name) {
  add_row(row, reverse);
  Type type = row->type;
  type.shape.insert(0, iterations);
  return body().graph->add_output(&node(), name, std::move(type));
}

void LoopEditor::add_unread_scan_output(ir::Value* row, bool reverse) {
  add_row(row, reverse);
  body().graph->add_absent_output(&node());
}

void LoopEditor::add_row(ir::Value* row, bool reverse) {
  ir::Region& body = this->body();
  const bool has_types = body.output_types.size() == body.outputs.size();
  body.outputs.push_back(row);
  if (has_types) body.output_types.push_back(row->type);
  signature_.scan_outputs.push_back({0, reverse});
  write_scan_outputs();
}

void LoopEditor::clear_scan_output(size_t i) {
  body().outputs[signature_.row_body_output(i)] = nullptr;
  const size_t at = signature_.scan_output(i);
  if (at < node().outputs.size()) node().outputs[at] = nullptr;
}

void LoopEditor::take_row_types_from_body() {
  body().output_types.clear();
  for (const ir::Value* v : body_->outputs) body().output_types.push_back(v ? v->type : Type());
}

void LoopEditor::become_scan(const ir::Attributes& attributes) {
  const BeforeStates gone = signature_.before;
  become(node(), require_op("Scan"), attributes);
  ir::Region& body = this->body();
  for (size_t i = std::min(node().inputs.size(), gone.inputs); i-- > 0;) node().inputs.erase(i);
  body.inputs.erase(body.inputs.begin(), body.inputs.begin() + static_cast<Offset>(gone.body_inputs));
  const auto outputs = static_cast<Offset>(gone.body_outputs);
  body.outputs.erase(body.outputs.begin(), body.outputs.begin() + outputs);
  if (!body.output_types.empty()) {
    body.output_types.erase(body.output_types.begin(), body.output_types.begin() + outputs);
  }
  signature_.before = {};
  write_scan_inputs();
}

void LoopEditor::move_axes_first() {
  for (ScanAxis& axis : signature_.scan_inputs) axis.axis = 0;
  for (ScanAxis& axis : signature_.scan_outputs) axis.axis = 0;
  write_scan_inputs();
  write_scan_outputs();
}

void LoopEditor::write_scan_inputs() {
  if (!is_scan()) return;
  ir::Attributes& attributes = node().attributes;
  attributes.set(ir::Attribute::of("num_scan_inputs", static_cast<int64_t>(scan_inputs())));
  attributes.set(ir::Attribute::of("scan_input_directions", directions_of(signature_.scan_inputs)));
  write_axes(attributes, "scan_input_axes", signature_.scan_inputs);
  recount();
}

void LoopEditor::write_scan_outputs() {
  if (!is_scan()) return;
  ir::Attributes& attributes = node().attributes;
  if (any_reverse(signature_.scan_outputs)) {
    attributes.set(ir::Attribute::of("scan_output_directions", directions_of(signature_.scan_outputs)));
  } else {
    attributes.erase("scan_output_directions");
  }
  write_axes(attributes, "scan_output_axes", signature_.scan_outputs);
}

void LoopEditor::recount() {
  ir::Node& loop = node();
  loop.input_count = static_cast<uint32_t>(loop.inputs.size());
  loop.output_count = static_cast<uint32_t>(loop.outputs.size());
  for (size_t i = 0; i < loop.outputs.size(); ++i) {
    if (loop.outputs[i]) loop.outputs[i]->output_index = static_cast<uint32_t>(i);
  }
}

}  // namespace treadle

#include "op/work.h"

#include <algorithm>
#include <cmath>

#include "op/op_def.h"

namespace treadle {

namespace {

using kernels::Price;

constexpr double kLanes = 8;              // the least size of a result: a scalar takes as long as a short vector
constexpr double kReducedOperations = 2;  // per element that is summed up or compared
constexpr double kDivisionOperations = 8, kIntegerDivisionOperations = 3;

// Latencies, in units of one dependent addition.
constexpr double kBitsLatency = 0.25, kDivisionLatency = 3, kFunctionLatency = 8;
constexpr double kRoundingLatency = 3;  // to 32 bits and back

// The share of a register that an element takes, relative to one of 32 bits. Narrow floats are computed in 32 bits, and
// some operations of narrow integers as well.
double registers_of(ElementType type) {
  const size_t width = byte_width(type);
  return width > 4 ? static_cast<double>(width) / 4 : width < 4 && !is_float(type) ? 0.5 : 1;
}

}  // namespace

Work& Work::operator+=(const Work& other) {
  flops += other.flops;
  operations += other.operations;
  functions += other.functions;
  one_by_one += other.one_by_one;
  return *this;
}

Work operator*(double times, const Work& work) {
  return {times * work.flops, times * work.operations, times * work.functions, times * work.one_by_one};
}

Work work_of(Price price, ElementType type, double elements) {
  const auto whole = [](double count) { return std::ceil(count / kLanes) * kLanes; };
  if (price == Price::kFunction) return {.functions = whole(elements)};
  elements = whole(registers_of(type) * elements);
  if (price == Price::kDivision || price == Price::kRemainder) {
    elements *= is_float(type) ? kDivisionOperations : kIntegerDivisionOperations;
  }
  return {.operations = elements};
}

std::optional<Price> price_of(const ir::Node& node) {
  if (!node.op->elementwise || !node.op->prepare || node.outputs.size() != 1 || !node.outputs[0]) return std::nullopt;
  const auto is_known = [](const ir::Value* v) { return !v || v->type.is_concrete(); };
  if (!is_known(node.outputs[0]) || !std::all_of(node.inputs.begin(), node.inputs.end(), is_known)) return std::nullopt;
  const ElementwiseForm form = elementwise_form(node);
  if (form.kind == ElementwiseForm::Kind::kConversion) return Price::kBits;
  if (form.kind != ElementwiseForm::Kind::kOperation) return std::nullopt;
  return kernels::info(form.op).price;
}

Work work_of(const ir::Node& node) {
  if (node.outputs.empty() || !node.outputs[0] || node.op->alias_input >= 0) return {};
  if (node.op->work) return node.op->work(node);
  const double result = work::elements_of(node.outputs[0]);
  if (!node.op->elementwise) return {.operations = result};
  return work_of(price_of(node).value_or(Price::kBits), node.outputs[0]->type.element, result);
}

namespace {

// Floats of 16 bits are converted to 32 bits and back.
double rounding_latency(const ir::Value* result) {
  const ElementType type = result ? result->type.element : ElementType::kUndefined;
  return is_float(type) && byte_width(type) < 4 ? kRoundingLatency : 0;
}

double own_latency(const ir::Node& node) {
  if (!node.op->elementwise) {
    const Work work = work_of(node);
    return work.flops == 0 && work.functions > 0 ? 2 * kFunctionLatency : kBitsLatency;
  }
  switch (price_of(node).value_or(Price::kBits)) {
    case Price::kBits:
      return kBitsLatency;
    case Price::kArithmetic:
      return is_float(node.outputs[0]->type.element) ? 1 : kBitsLatency;
    case Price::kDivision:
    case Price::kRemainder:
      return kDivisionLatency;
    case Price::kFunction:
      return kFunctionLatency;
  }
  return 0;
}

}  // namespace

double latency_of(const ir::Node& node) {
  if (node.op->alias_input >= 0 || !node.regions.empty()) return 0;
  return own_latency(node) + (node.op->elementwise ? rounding_latency(node.outputs[0]) : 0);
}

namespace work {

double elements_of(const ir::Value* v) {
  return v && v->type.is_concrete() ? static_cast<double>(known_element_count(v->type.shape)) : 0;
}

double size_of(const ir::Value* v, size_t from_the_end) {
  if (!v || !v->type.is_concrete() || v->type.shape.size() < from_the_end) return 1;
  return static_cast<double>(v->type.shape[v->type.shape.size() - from_the_end].value());
}

Work matrix_product(const ir::Node& node, size_t left) {
  return {.flops = 2 * elements_of(node.outputs[0]) * size_of(node.inputs[left], 1)};
}

Work convolution(const ir::Node& node, size_t weights) {
  const ir::Value* w = node.inputs[weights];
  const double filters = std::max(w->type.is_concrete() ? static_cast<double>(w->type.shape[0].value()) : 1, 1.0);
  return {.flops = 2 * elements_of(node.outputs[0]) * elements_of(w) / filters};
}

Work reduction(const ir::Node& node) {
  return {.operations = kReducedOperations * elements_of(node.inputs[0])};
}

Work positions(const ir::Node& node) {
  return 3 * reduction(node);
}

Work one_by_one(const ir::Node& node) {
  return {.one_by_one = elements_of(node.inputs[0])};
}

Work search(const ir::Node& node) {
  return 0.5 * one_by_one(node);
}

Work functions_of_input(const ir::Node& node) {
  return {.functions = elements_of(node.inputs[0])};
}

}  // namespace work

}  // namespace treadle

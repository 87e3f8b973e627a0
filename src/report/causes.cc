#include "report/causes.h"

#include <algorithm>

#include "kernels/convert.h"
#include "op/elementwise.h"
#include "plan/planner.h"

namespace treadle::report {

using plan::Storage;
using run::Write;

namespace {

constexpr int64_t kTile = static_cast<int64_t>(kernels::kTile);

// The element of an operand of sizes `dims` from which an elementwise operator makes element `element` of a result of
// sizes `result`.
int64_t operand_element(const Dims& result, int64_t element, const Dims& dims) {
  int64_t at = 0, stride = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    const size_t axis = dims.size() - 1 - i, result_axis = result.size() - 1 - i;
    if (result.size() <= i) return 0;
    const int64_t index = element % result[result_axis];
    element /= result[result_axis];
    if (dims[axis] != 1) at += index * stride;
    stride *= dims[axis];
  }
  return at;
}

bool is_elementwise(const plan::Program& program, uint32_t pc) {
  const ir::Node* const node = program.node_of[pc];
  return node && node->op->elementwise;
}

// The elements of a slot in the sizes of the value `v` of a node, which may be a reshaped one.
Watcher::Elements elements_as(const Watcher& watcher, uint32_t slot, const ir::Value* v) {
  Watcher::Elements elements = watcher.elements_of(slot);
  if (elements.data && v && plan::is_fixed(v->type)) elements.dims = known_dims(v->type.shape);
  return elements;
}

// Operand `i` of the node that an instruction runs, or null.
const ir::Value* operand_of(const Watcher& watcher, uint32_t pc, size_t i) {
  const ir::Node* const node = watcher.program().node_of[pc];
  return node && watcher.reads(pc).size() == node->inputs.size() ? node->inputs[i] : nullptr;
}

const ir::Value* result_of(const Watcher& watcher, uint32_t pc, uint32_t output) {
  const ir::Node* const node = watcher.program().node_of[pc];
  return node && output < node->outputs.size() ? node->outputs[output] : nullptr;
}

// The operands of a node that takes each element from the second or the third of them, as the first says.
std::optional<Finder::Choice> choice_of(const ir::Node& node) {
  const auto scalar = [](const ir::Value* v) {  // the sizes do not matter
    Operand operand;
    if (v) operand.type = v->type.element;
    return operand;
  };
  std::vector<Operand> inputs;
  for (const ir::Value* v : node.inputs) inputs.push_back(scalar(v));
  std::optional<Finder::Choice> choice;
  with_form(node, inputs, scalar(node.outputs[0]), [&](const ElementwiseForm& form) {
    if (form.kind != ElementwiseForm::Kind::kOperation || form.op != kernels::ElementwiseOp::kWhere) return;
    choice = {form.arguments[0], form.arguments[1], form.arguments[2]};
  });
  return choice;
}

// `cause`, gone on through instruction `pc` in iteration `iteration`.
std::shared_ptr<const Cause> gone_on(const Cause& cause, uint32_t pc, int64_t iteration) {
  auto made = std::make_shared<Cause>(cause);
  std::vector<Step>& steps = made->steps;
  const auto is_same = [&](const Step& step) { return step.pc == pc; };
  if (const auto before = std::find_if(steps.begin(), steps.end(), is_same); before != steps.end()) {
    before->last = iteration;
    ++before->times;
    if (static_cast<size_t>(before - steps.begin()) < Cause::kFirstSteps) made->left_out = 0;
    made->around.assign(before + 1, steps.end());
    steps.erase(before + 1, steps.end());
    return made;
  }
  const auto again = std::find_if(made->around.begin(), made->around.end(), is_same);
  if (again != made->around.end()) {
    steps.push_back({pc, again->first, iteration, again->times + 1});
    made->around.erase(made->around.begin(), again + 1);
  } else {
    steps.push_back({pc, iteration, iteration, 1});
  }
  if (steps.size() > Cause::kFirstSteps + Cause::kLastSteps) {
    steps.erase(steps.begin() + Cause::kFirstSteps);
    ++made->left_out;
  }
  return made;
}

}  // namespace

void Finder::want(const plan::Program& program, std::vector<bool>& slots) const {
  for (size_t s = 1; s < slots.size(); ++s) {
    const Type& type = program.slots[s].type;
    const bool is_integer =
        type.is_tensor() && type.element != ElementType::kUndefined && kernels::least_normal(type.element) == 0;
    slots[s] = slots[s] || !is_integer || sought_.in_integers();
  }
}

void Finder::begin(Watcher& watcher) {
  makings_ = 0;
  places_.clear();
  outputs_.clear();
  choices_.clear();
  const plan::Program& program = watcher.program();
  const auto look_at = [&](uint32_t slot, Making::By by) {
    if (!sought_.is_in(watcher.seen(slot).statistics)) return;
    Making making;
    making.by = by;
    making.slot = slot;
    watcher.seen(slot).cause = made(watcher, std::move(making));
  };
  for (uint32_t s = 1; s < program.slots.size(); ++s) {
    if (program.slots[s].storage == Storage::kConstant) look_at(s, Making::By::kConstant);
  }
  for (const plan::Input& input : program.inputs) {
    if (input.slot != plan::kNoSlot) look_at(input.slot, Making::By::kInput);
  }
}

Status Finder::wrote(Watcher& watcher, const Write& write, uint32_t pc, bool) {
  if (write.how == Write::How::kComputes) {
    computed(watcher, write, pc);
  } else if (write.how == Write::How::kAdds) {
    Seen& whole = watcher.seen(write.slot);
    const auto& row = watcher.seen(write.from).cause;
    if (row && !whole.cause) whole.cause = gone_on(*row, pc, watcher.iteration_at(pc));
  }
  return {};
}

void Finder::finish(Watcher& watcher) {
  for (const plan::Output& output : watcher.program().outputs) {
    Output& made = outputs_.emplace_back();
    if (output.slot == plan::kNoSlot) continue;
    made.statistics = watcher.seen(output.slot).statistics;
    if (!sought_.is_in(made.statistics)) continue;
    made.cause = watcher.seen(output.slot).cause;
    double value = 0;
    made.element = first_element(watcher, output.slot, value);
    if (made.element >= 0) made.dims = watcher.elements_of(output.slot).dims;
  }
}

void Finder::computed(Watcher& watcher, const Write& write, uint32_t pc) {
  Seen& seen = watcher.seen(write.slot);
  if (!sought_.is_in(seen.statistics)) {
    seen.cause = nullptr;
  } else if (write.from != plan::kNoSlot && watcher.seen(write.from).cause) {
    seen.cause = watcher.seen(write.from).cause;
  } else if (const Cause* const cause = cause_among(watcher, write, pc)) {
    seen.cause = gone_on(*cause, pc, watcher.iteration_at(pc));
  } else {
    seen.cause = made(watcher, making_of(watcher, write, pc));
  }
}

// The earliest cause among what the instruction reads. The elements of an elementwise operator's result come from one
// element of each operand, so only operands in which that is sought count.
const Cause* Finder::cause_among(Watcher& watcher, const Write& write, uint32_t pc) {
  const Cause* best = nullptr;
  Watcher::Elements result;
  int64_t element = -1;
  if (is_elementwise(watcher.program(), pc)) {
    double value = 0;
    element = first_element(watcher, write.slot, value);
    if (element >= 0) result = elements_as(watcher, write.slot, result_of(watcher, pc, write.output));
  }
  // The operand's number from which that element was made, if it is still there.
  const std::span<const uint32_t> reads = watcher.reads(pc);
  const auto number_in = [&](size_t i) -> std::optional<double> {
    if (element < 0 || reads[i] == plan::kNoSlot) return std::nullopt;
    const Watcher::Elements from = elements_as(watcher, reads[i], operand_of(watcher, pc, i));
    const int64_t at = from.data ? operand_element(result.dims, element, from.dims) : -1;
    if (at < 0 || at >= from.count) return std::nullopt;
    return number_at(from, at);
  };
  size_t unused = SIZE_MAX;  // the operand from which the element is not taken
  if (const auto& choice = choice_at(watcher, pc)) {
    if (const auto condition = number_in(choice->condition)) unused = *condition != 0 ? choice->no : choice->yes;
  }
  for (size_t i = 0; i < reads.size(); ++i) {
    const Cause* const cause = reads[i] == plan::kNoSlot ? nullptr : watcher.seen(reads[i]).cause.get();
    if (!cause || i == unused || (best && best->making->number < cause->making->number)) continue;
    const std::optional<double> number = number_in(i);
    if (number && !sought_.is(*number, kernels::least_normal(watcher.elements_of(reads[i]).type))) continue;
    best = cause;
  }
  return best;
}

Making Finder::making_of(Watcher& watcher, const Write& write, uint32_t pc) const {
  Making making;
  making.pc = pc;
  making.slot = write.slot;
  making.output = write.output;
  for (const uint32_t loop : watcher.loops_around(pc)) making.iterations.emplace_back(loop, watcher.iteration(loop));
  for (const uint32_t slot : watcher.reads(pc)) {
    Making::Operand& operand = making.inputs.emplace_back();
    operand.slot = slot;
    if (slot == plan::kNoSlot) continue;
    operand.seen = watcher.seen(slot);
    operand.seen.cause = nullptr;
    if (operand.seen.statistics.count == 0) operand.seen.statistics = watcher.statistics_of(slot);
  }
  return making;
}

std::shared_ptr<const Cause> Finder::made(Watcher& watcher, Making making) {
  making.number = makings_++;
  making.result = watcher.seen(making.slot).statistics;
  making.element = first_element(watcher, making.slot, making.value);
  if (making.element >= 0) {
    const ir::Value* const result =
        making.by == Making::By::kNode ? result_of(watcher, making.pc, making.output) : nullptr;
    making.dims = elements_as(watcher, making.slot, result).dims;
  }
  if (making.element >= 0 && making.by == Making::By::kNode && is_elementwise(watcher.program(), making.pc)) {
    for (size_t i = 0; i < making.inputs.size(); ++i) {
      Making::Operand& operand = making.inputs[i];
      if (operand.slot == plan::kNoSlot) continue;
      const Watcher::Elements from = elements_as(watcher, operand.slot, operand_of(watcher, making.pc, i));
      const int64_t at = from.data ? operand_element(making.dims, making.element, from.dims) : -1;
      if (at >= 0 && at < from.count) operand.number = number_at(from, at);
    }
  }
  auto cause = std::make_shared<Cause>();
  const auto shared = std::make_shared<const Making>(std::move(making));
  const uint32_t place = shared->by == Making::By::kNode ? shared->pc : shared->slot;
  Place& found = places_[{shared->by, place}];
  if (found.times++ == 0) found.first = shared;
  cause->making = shared;
  return cause;
}

const std::optional<Finder::Choice>& Finder::choice_at(const Watcher& watcher, uint32_t pc) {
  const auto [known, is_new] = choices_.try_emplace(pc);
  const ir::Node* const node = watcher.program().node_of[pc];
  if (is_new && node && node->op->elementwise && node->op->prepare) known->second = choice_of(*node);
  return known->second;
}

double Finder::number_at(const Watcher::Elements& of, int64_t element) const {
  const ElementType part = kernels::part_of(of.type);
  const size_t parts = part == of.type ? 1 : 2;
  double numbers[2] = {};
  const auto* const at = static_cast<const std::byte*>(of.data) + element * static_cast<int64_t>(byte_width(of.type));
  kernels::cast(part, ElementType::kDouble, at, numbers, parts);
  const bool second = parts == 2 && !sought_.is(numbers[0], kernels::least_normal(of.type)) &&
                      sought_.is(numbers[1], kernels::least_normal(of.type));
  return numbers[second ? 1 : 0];
}

int64_t Finder::first_element(const Watcher& watcher, uint32_t slot, double& value) const {
  const Watcher::Elements of = watcher.elements_of(slot);
  if (!of.data) return -1;
  const double least = kernels::least_normal(of.type);
  const ElementType part = kernels::part_of(of.type);
  const int64_t parts = part == of.type ? 1 : 2, width = static_cast<int64_t>(byte_width(part));
  const kernels::TileConverter converter = kernels::make_converter(part, ElementType::kDouble);
  double numbers[kTile];
  for (int64_t begin = 0; begin < of.count * parts; begin += kTile) {
    const int64_t size = std::min(kTile, of.count * parts - begin);
    const auto* const from = static_cast<const std::byte*>(of.data) + begin * width;
    kernels::convert(converter, from, numbers, static_cast<size_t>(size));
    for (int64_t i = 0; i < size; ++i) {
      if (!sought_.is(numbers[i], least)) continue;
      value = numbers[i];
      return (begin + i) / parts;
    }
  }
  return -1;
}

}  // namespace treadle::report

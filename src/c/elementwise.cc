// Groups of elementwise operations: one loop over all elements, a statement for each step.

#include <algorithm>
#include <cmath>

#include "c/writer.h"

namespace treadle::c {

namespace {

using plan::ElementwiseCode;
using Broadcast = ElementwiseCode::Broadcast;
using kernels::ElementwiseOp;

// The loops around the steps: sizes, outermost first, and for each input that is broadcast in a way of its own the
// strides along them.
struct Nest {
  Dims sizes;
  std::vector<Dims> strides;  // by input; empty for others
  bool is_even = true;        // false: some input's index needs divisions
};

// Splits the elements so that every input has one stride along each loop.
Nest nest_of(const ElementwiseCode& code) {
  Nest nest;
  nest.strides.resize(code.inputs.size());
  // Suffix products of all lists of dimensions.
  std::vector<int64_t> products{1, code.count};
  for (const auto& input : code.inputs) {
    int64_t product = 1;
    for (size_t d = input.dims.size(); d-- > 0;) products.push_back(product *= input.dims[d]);
  }
  std::ranges::sort(products);
  products.erase(std::ranges::unique(products).begin(), products.end());
  for (size_t i = 1; i < products.size(); ++i) nest.is_even &= products[i] % products[i - 1] == 0;
  if (!nest.is_even) {
    nest.sizes = {code.count};
    return nest;
  }
  // Loops from the innermost on; merged while all strides agree.
  Dims sizes;
  std::vector<Dims> strides(code.inputs.size());
  for (size_t i = 1; i < products.size(); ++i) {
    const int64_t size = products[i] / products[i - 1], inner = products[i - 1];
    bool merges = !sizes.empty();
    Dims here;
    for (const auto& input : code.inputs) {
      int64_t stride = 0, suffix = 1;
      for (size_t d = input.dims.size(); d-- > 0 && input.broadcast == Broadcast::kOther;) {
        if (inner >= suffix && inner < suffix * input.dims[d]) stride = input.strides[d] * (inner / suffix);
        suffix *= input.dims[d];
      }
      const size_t k = here.size();
      here.push_back(stride);
      if (merges && input.broadcast == Broadcast::kOther) merges = stride == strides[k].back() * sizes.back();
    }
    if (merges) {
      sizes.back() *= size;
      continue;
    }
    sizes.push_back(size);
    for (size_t k = 0; k < here.size(); ++k) strides[k].push_back(here[k]);
  }
  if (sizes.empty()) sizes = {1}, std::ranges::for_each(strides, [](Dims& s) { s.push_back(0); });
  const auto reversed = [](const Dims& list) {
    Dims turned = list;
    std::ranges::reverse(turned);
    return turned;
  };
  nest.sizes = reversed(sizes);
  for (size_t k = 0; k < strides.size(); ++k) {
    if (code.inputs[k].broadcast == Broadcast::kOther) nest.strides[k] = reversed(strides[k]);
  }
  return nest;
}

std::string sum(const std::vector<std::string>& terms) {
  std::string text;
  for (const std::string& term : terms) text += (text.empty() ? "" : " + ") + term;
  return text.empty() ? "0" : text;
}

std::string times(const std::string& index, int64_t stride) {
  return stride == 1 ? index : fmt::format("{} * {}", index, stride);
}

// The single element of a constant, as a double.
std::optional<double> number_of(const Tensor* constant, ElementType type) {
  if (!constant || constant->element_count() != 1) return std::nullopt;
  if (type == ElementType::kFloat) return static_cast<double>(*constant->data<float>());
  if (type == ElementType::kDouble) return *constant->data<double>();
  return std::nullopt;
}

class Steps {
 public:
  Steps(Writer& writer, const ElementwiseCode& code) : w_(writer), code_(code) {}

  // The name of the step's result, of its stored type. Empty: `why` says what is missing.
  std::string write(const ElementwiseCode::Step& step, std::string& why) {
    std::vector<std::string> arguments;
    for (size_t i = 0; i < step.argument_count; ++i) arguments.push_back(values_[step.arguments[i]]);
    if (step.converts) return name(step.to, w_.converted(step.from, step.to, arguments[0]));
    if (step.op == ElementwiseOp::kWhere) {
      return name(step.to, fmt::format("{} ? {} : {}", arguments[0], arguments[1], arguments[2]));
    }
    const ElementType wide = wide_type(step.from);
    for (std::string& argument : arguments) argument = w_.converted(step.from, wide, argument);
    std::string result = operation(step, wide, arguments, why);
    if (result.empty()) return {};
    if (kernels::info(step.op).bool_result) return name(ElementType::kBool, result);
    return name(step.to, w_.converted(wide, step.to, result));
  }

  void add(std::string value) { values_.push_back(std::move(value)); }
  const std::string& value(size_t i) const { return values_[i]; }

 private:
  std::string name(ElementType type, const std::string& expression) {
    const std::string made = fmt::format("t{}", made_++);
    w_.text().line("const {} {} = {};", stored(type), made, expression);
    return made;
  }

  std::string operation(const ElementwiseCode::Step& step, ElementType wide, const std::vector<std::string>& a,
                        std::string& why) {
    const char* plain = plain_sign(step.op);
    if (plain && is_float(wide)) return fmt::format("{} {} {}", a[0], plain, a[1]);
    if (step.op == ElementwiseOp::kPow && is_float(wide)) {
      if (std::string power = frequent_power(step, wide, a[0]); !power.empty()) return power;
    }
    const std::string function = w_.functions().operation(step.op, wide);
    if (function.empty()) {
      why = fmt::format("{} of {} has no formula in C, only the C library has one (libm allows it)",
                        kernels::info(step.op).name, name_of_type(step.from));
      return {};
    }
    std::string list;
    for (const std::string& argument : a) list += (list.empty() ? "" : ", ") + argument;
    if (Functions::has_parameters(step.op, wide)) {
      const bool is_single = wide == ElementType::kFloat;
      for (const double p : {step.params.alpha, step.params.beta}) {
        list += ", " + (is_single ? literal(static_cast<float>(p)) : literal(p));
      }
    }
    if (Functions::can_fail(step.op, wide)) list += ", &" + w_.error_of_instruction();
    return fmt::format("{}({})", function, list);
  }

  static std::string_view name_of_type(ElementType type) { return treadle::name(type); }

  static const char* plain_sign(ElementwiseOp op) {
    switch (op) {
      case ElementwiseOp::kAdd:
        return "+";
      case ElementwiseOp::kSub:
        return "-";
      case ElementwiseOp::kMul:
        return "*";
      case ElementwiseOp::kDiv:
        return "/";
      default:
        return nullptr;
    }
  }

  // By a known exponent, as kernels::functions::Pow computes it.
  std::string frequent_power(const ElementwiseCode::Step& step, ElementType wide, const std::string& a) {
    const size_t exponent = step.arguments[1];
    if (exponent >= code_.inputs.size() || code_.inputs[exponent].broadcast != Broadcast::kScalar) return {};
    const auto number = number_of(w_.constant(code_.inputs[exponent].slot), step.from);
    const std::string_view one = wide == ElementType::kFloat ? "1.0f" : "1.0";
    if (number != 2 && number != 3 && number != -1) return {};  // roots of negative numbers are the C library's
    w_.text().line("(void){};", values_[exponent]);
    if (number == 2) return fmt::format("{} * {}", a, a);
    if (number == 3) {
      const std::string square = name(wide, fmt::format("{} * {}", a, a));
      return fmt::format("{} * {}", square, a);
    }
    return fmt::format("{} / {}", one, a);
  }

  Writer& w_;
  const ElementwiseCode& code_;
  std::vector<std::string> values_;  // of inputs, then of steps
  int made_ = 0;
};

}  // namespace

void write_elementwise(Writer& w, const ElementwiseCode& code, std::string& why) {
  if (code.count == 0) return;
  const Nest nest = nest_of(code);
  Text& text = w.text();
  Steps steps(w, code);
  // Pointers, and single elements, in front of the loops.
  std::vector<std::string> pointers(code.inputs.size());
  for (size_t i = 0; i < code.inputs.size(); ++i) {
    const auto& input = code.inputs[i];
    const Tensor* constant = w.constant(input.slot);
    const bool is_number = constant && constant->element_count() == 1 && input.broadcast == Broadcast::kScalar;
    if (!is_number) pointers[i] = w.reads(input.slot, input.type);
  }
  std::vector<std::string> results;
  for (const auto& output : code.outputs) {
    results.push_back(w.writes(output.slot, code.steps[output.step].to));
  }
  text.open("");
  for (size_t i = 0; i < code.inputs.size(); ++i) {
    const auto& input = code.inputs[i];
    if (input.broadcast != Broadcast::kScalar) {
      steps.add(fmt::format("x{}", i));
      continue;
    }
    const Tensor* constant = w.constant(input.slot);
    steps.add(fmt::format("x{}", i));
    if (pointers[i].empty()) {
      text.line("const {} x{} = {};", stored(input.type), i, literal(input.type, constant->raw()));
    } else {
      text.line("const {} x{} = {}[0];", stored(input.type), i, pointers[i]);
    }
  }
  std::vector<std::string> dense;
  int64_t inner = 1;
  std::vector<std::string> names;
  for (size_t d = 0; d < nest.sizes.size(); ++d) {
    names.push_back(nest.sizes.size() == 1 ? "i" : fmt::format("i{}", d));
  }
  for (size_t d = nest.sizes.size(); d-- > 0;) {
    if (nest.sizes[d] > 1) dense.insert(dense.begin(), times(names[d], inner));
    inner *= nest.sizes[d];
  }
  for (size_t d = 0; d < nest.sizes.size(); ++d) {
    if (nest.sizes[d] == 1) continue;
    if (d + 1 == nest.sizes.size()) text.line("{}", w.functions().upper_prefix() + "_INDEPENDENT");
    text.open("for (ptrdiff_t {0} = 0; {0} < {1}; ++{0})", names[d], nest.sizes[d]);
  }
  const std::string at = sum(dense);
  for (size_t i = 0; i < code.inputs.size(); ++i) {
    const auto& input = code.inputs[i];
    if (input.broadcast == Broadcast::kScalar) continue;
    std::string index = at;
    if (input.broadcast == Broadcast::kOther) {
      std::vector<std::string> terms;
      if (nest.is_even) {
        for (size_t d = 0; d < nest.sizes.size(); ++d) {
          if (nest.sizes[d] > 1 && nest.strides[i][d] != 0) terms.push_back(times(names[d], nest.strides[i][d]));
        }
      } else {
        int64_t suffix = 1;
        for (size_t d = input.dims.size(); d-- > 0;) {
          if (input.strides[d] != 0 && input.dims[d] > 1) {
            terms.push_back(times(fmt::format("i / {} % {}", suffix, input.dims[d]), input.strides[d]));
          }
          suffix *= input.dims[d];
        }
      }
      if (input.start != 0) terms.push_back(std::to_string(input.start));
      index = sum(terms);
    }
    text.line("const {} x{} = {}[{}];", stored(input.type), i, pointers[i], index);
  }
  for (const auto& step : code.steps) {
    std::string made = steps.write(step, why);
    if (!why.empty()) break;
    steps.add(std::move(made));
  }
  if (why.empty()) {
    for (size_t i = 0; i < code.outputs.size(); ++i) {
      text.line("{}[{}] = {};", results[i], at, steps.value(code.inputs.size() + code.outputs[i].step));
    }
  }
  for (const int64_t size : nest.sizes) {
    if (size > 1) text.close();
  }
  text.close();
}

}  // namespace treadle::c

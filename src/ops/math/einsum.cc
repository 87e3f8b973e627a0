// Einsum. Operands are taken from left to right. Labels that no later term needs are summed first. Then the next
// operand is combined by a stack of matrix products, which sum over shared labels that are no longer needed (k), or by
// an elementwise product if nothing is summed. A copy reorders labels only if strides cannot.

#include <algorithm>
#include <numeric>

#include "kernels/elementwise.h"
#include "kernels/reduce.h"
#include "op/axis_rules.h"
#include "op/gemm.h"
#include "op/op_def.h"
#include "op/parallel.h"
#include "op/work.h"
#include "ops/math/einsum_equation.h"

namespace treadle {

namespace {

using einsum::Label;
using einsum::Labels;

Result<einsum::Equation> equation_of(const ir::Attributes& attributes, std::span<const int64_t> ranks) {
  return einsum::parse(attributes.get_string("equation"), ranks);
}

Status infer_einsum(InferContext& ctx) {
  InlineVector<int64_t, 4> ranks;
  for (size_t i = 0; i < ctx.inputs.size(); ++i) {
    if (!ctx.shape(i)) {
      ctx.set_output(0, ctx.element(0));
      return {};
    }
    ranks.push_back(ctx.input(i).rank());
  }
  TREADLE_ASSIGN(const einsum::Equation equation, equation_of(ctx.attributes(), ranks));
  Dim sizes[einsum::kLabels];
  bool seen[einsum::kLabels] = {};
  for (size_t i = 0; i < ranks.size(); ++i) {
    const Shape& shape = *ctx.shape(i);
    for (size_t d = 0; d < shape.size(); ++d) {
      const size_t l = static_cast<uint8_t>(equation.inputs[i][d]);
      if (!seen[l] || sizes[l].is_known(1) || (sizes[l].is_unknown() && !shape[d].is_known(1))) {
        sizes[l] = shape[d];
      } else if (shape[d].is_known() && !shape[d].is_known(1)) {
        if (sizes[l].is_known() && sizes[l].value() != shape[d].value()) {
          return error(Code::kInvalidArgument, "input {} has size {} at axis {}, expected that of another input, {}", i,
                       shape[d].value(), d, sizes[l].value());
        }
        sizes[l] = shape[d];
      }
      seen[l] = true;
    }
  }
  Shape out;
  for (Label l : equation.output) out.push_back(sizes[static_cast<uint8_t>(l)]);
  ctx.set_output(0, ctx.element(0), std::move(out));
  return {};
}

// ---------------------------------------------------------------------------------------------------------------------

// The location of a value: an input, scratch, or the result.
struct Location {
  enum Kind : uint8_t { kInput, kScratch, kResult } kind = kScratch;
  size_t at = 0;  // number of the input, or offset
};

struct Step {
  enum Kind : uint8_t { kCopy, kReduce, kMultiply, kGemm } kind = kCopy;
  Location a, b, to;
  kernels::CopyPlan copy;
  kernels::ReducePlan reduce;
  kernels::ElementwisePlan multiply;
  StackedGemm gemm;
};

// An intermediate value: each label once, with its size and stride.
struct Term {
  Location location;
  Labels labels;
  Dims dims, strides;

  size_t find(Label l) const {
    return static_cast<size_t>(std::find(labels.begin(), labels.end(), l) - labels.begin());
  }
  bool has(Label l) const { return find(l) < labels.size(); }
  void add(Label l, int64_t size, int64_t stride) {
    labels.push_back(l);
    dims.push_back(size);
    strides.push_back(stride);
  }
};

struct EinsumState {
  InlineVector<WideOperand, 2> inputs;
  std::vector<Step> steps;
  kernels::TileConverter narrow;
  bool narrows = false;
  size_t wide_result = 0, count = 0;
};

class Builder {
 public:
  Builder(PrepareContext& ctx, EinsumState& state, const einsum::Equation& equation)
      : ctx_(ctx), state_(state), equation_(equation), wide_(wide_type(ctx.outputs[0].type)) {}

  Status build() {
    set_sizes();
    TREADLE_ASSIGN(Term acc, load(0));
    TREADLE_TRY(sum_away(acc, 1));
    for (size_t i = 1; i < equation_.inputs.size(); ++i) {
      TREADLE_ASSIGN(Term next, load(i));
      TREADLE_TRY(sum_private(acc, next, i));
      TREADLE_ASSIGN(acc, combine(acc, next, i + 1));
    }
    TREADLE_TRY(finish(acc));
    ctx_.scratch_bytes = scratch_.size() + 64;
    return {};
  }

 private:
  size_t width() const { return byte_width(wide_); }

  // Sets the sizes of labels; 1 is replaced by the size in other operands.
  void set_sizes() {
    std::fill(std::begin(sizes_), std::end(sizes_), 1);
    for (size_t i = 0; i < equation_.inputs.size(); ++i) {
      for (size_t d = 0; d < equation_.inputs[i].size(); ++d) {
        const int64_t size = ctx_.inputs[i].dims[d];
        if (size != 1) sizes_[equation_.inputs[i][d]] = size;
      }
    }
  }

  // Whether `l` is in the output or in an input from `from` on.
  bool needed(Label l, size_t from) const {
    auto in = [l](const Labels& labels) { return std::find(labels.begin(), labels.end(), l) != labels.end(); };
    for (size_t i = from; i < equation_.inputs.size(); ++i) {
      if (in(equation_.inputs[i])) return true;
    }
    return in(equation_.output);
  }

  Result<Term> load(size_t i) {
    WideOperand& operand = state_.inputs[i];
    TREADLE_TRY(operand.prepare(ctx_.inputs[i], wide_, scratch_));
    Term term;
    term.location = {Location::kInput, i};
    for (size_t d = 0; d < equation_.inputs[i].size(); ++d) {
      const Label l = equation_.inputs[i][d];
      const int64_t stride = ctx_.inputs[i].dims[d] == 1 ? 0 : operand.strides[d];
      if (const size_t at = term.find(l); at < term.labels.size()) {
        term.strides[at] += stride;  // a label twice means the diagonal
      } else {
        term.add(l, sizes_[l], stride);
      }
    }
    return term;
  }

  Term reordered(const Term& term, const Labels& order) const {
    Term out;
    out.location = term.location;
    for (Label l : order) out.add(l, term.dims[term.find(l)], term.strides[term.find(l)]);
    return out;
  }

  Term fresh(const Term& like) {
    Term out = like;
    out.strides = contiguous_strides(out.dims);
    out.location = {Location::kScratch, scratch_.add(static_cast<size_t>(element_count_unchecked(out.dims)) * width())};
    return out;
  }

  Result<Term> copied(const Term& term, const Labels& order) {
    const Term from = reordered(term, order);
    if (is_contiguous(from.dims, from.strides)) return from;
    const Term to = fresh(from);
    Step& step = state_.steps.emplace_back();
    step.kind = Step::kCopy;
    step.a = from.location;
    step.to = to.location;
    TREADLE_TRY(kernels::prepare_copy(&step.copy, width(), from.dims, from.strides, to.strides));
    return to;
  }

  // Sums over the labels for which `away` holds.
  template <class Fn>
  Status sum_if(Term& term, Fn&& away) {
    Labels kept, order;
    for (Label l : term.labels) {
      if (!away(l)) kept.push_back(l);
    }
    if (kept.size() == term.labels.size()) return {};
    order = kept;
    for (Label l : term.labels) {
      if (away(l)) order.push_back(l);
    }
    TREADLE_ASSIGN(const Term from, copied(term, order));
    InlineVector<bool, 8> reduced;
    for (size_t d = 0; d < order.size(); ++d) reduced.push_back(d >= kept.size());
    const Term to = fresh(reordered(from, kept));
    Step& step = state_.steps.emplace_back();
    step.kind = Step::kReduce;
    step.a = from.location;
    step.to = to.location;
    TREADLE_TRY(kernels::prepare_reduce(&step.reduce, kernels::ReduceOp::kSum, wide_, from.dims, reduced));
    term = to;
    return {};
  }

  Status sum_away(Term& term, size_t next) {
    return sum_if(term, [&](Label l) { return !needed(l, next); });
  }

  // Sums over labels of `next` that nothing else needs.
  Status sum_private(const Term& acc, Term& next, size_t i) {
    return sum_if(next, [&](Label l) { return !acc.has(l) && !needed(l, i + 1); });
  }

  // Multiplies acc by next, and sums over labels that neither the output nor operands from `later` on need.
  Result<Term> combine(Term& acc, Term& next, size_t later) {
    TREADLE_TRY(sum_if(acc, [&](Label l) { return !next.has(l) && !needed(l, later); }));
    Labels batch, m, k, n;
    for (Label l : acc.labels) (!next.has(l) ? m : needed(l, later) ? batch : k).push_back(l);
    for (Label l : next.labels) {
      if (!acc.has(l)) n.push_back(l);
    }
    Term out;
    for (const Labels* group : {&batch, &m, &n}) {
      for (Label l : *group) out.add(l, sizes_[l], 0);
    }
    out = fresh(out);
    TREADLE_TRY(k.empty() ? multiply(acc, next, out) : contract(acc, next, batch, m, k, n, out));
    return out;
  }

  Status multiply(const Term& a, const Term& b, const Term& out) {
    Step& step = state_.steps.emplace_back();
    step.kind = Step::kMultiply;
    step.a = a.location;
    step.b = b.location;
    step.to = out.location;
    Dims strides[2];
    for (Label l : out.labels) {
      strides[0].push_back(a.has(l) ? a.strides[a.find(l)] : 0);
      strides[1].push_back(b.has(l) ? b.strides[b.find(l)] : 0);
    }
    const kernels::ElementwiseOperand operands[] = {{wide_, strides[0]}, {wide_, strides[1]}};
    return kernels::prepare_elementwise(&step.multiply, kernels::ElementwiseOp::kMul, out.dims, operands,
                                        {wide_, out.strides});
  }

  // Finds a single stride that walks all labels of the group as one dimension; false if there is none.
  bool fuse(const Term& term, const Labels& group, int64_t& size, int64_t& stride) const {
    size = 1;
    stride = 1;
    for (size_t i = group.size(); i-- > 0;) {
      const size_t at = term.find(group[i]);
      if (term.dims[at] == 1) continue;
      if (size == 1) stride = term.strides[at];
      if (size != 1 && term.strides[at] != stride * size) return false;
      size *= term.dims[at];
    }
    return true;
  }

  // Gives both groups a single stride, by copying the term to [batch, first, second] if necessary.
  Status arrange(Term& term, const Labels& batch, const Labels& first, const Labels& second) {
    int64_t size, stride;
    if (fuse(term, first, size, stride) && fuse(term, second, size, stride)) return {};
    Labels order = batch;
    for (Label l : first) order.push_back(l);
    for (Label l : second) order.push_back(l);
    TREADLE_ASSIGN(term, copied(term, order));
    return {};
  }

  Status contract(Term& a, Term& b, const Labels& batch, const Labels& m, const Labels& k, const Labels& n,
                  const Term& out) {
    TREADLE_TRY(arrange(a, batch, m, k));
    TREADLE_TRY(arrange(b, batch, k, n));
    kernels::GemmShape shape;
    fuse(a, m, shape.m, shape.a_row);
    fuse(a, k, shape.k, shape.a_col);
    fuse(b, k, shape.k, shape.b_row);
    fuse(b, n, shape.n, shape.b_col);
    InlineVector<StackedGemm::Level, 4> stack;
    for (Label l : batch) {
      stack.push_back({sizes_[l], a.strides[a.find(l)], b.strides[b.find(l)], out.strides[out.find(l)]});
    }
    Step& step = state_.steps.emplace_back();
    step.kind = Step::kGemm;
    step.a = a.location;
    step.b = b.location;
    step.to = out.location;
    return step.gemm.prepare(wide_, shape, stack, scratch_, ctx_.threads);
  }

  Status finish(const Term& acc) {
    const Operand& out = ctx_.outputs[0];
    state_.count = static_cast<size_t>(out.element_count());
    state_.narrows = wide_ != out.type;
    if (state_.narrows) {
      state_.narrow = kernels::make_converter(wide_, out.type);
      state_.wide_result = scratch_.add(state_.count * width());
    }
    const Term from = reordered(acc, equation_.output);
    if (acc.location.kind == Location::kScratch && is_contiguous(from.dims, from.strides)) {
      state_.steps.back().to = {Location::kResult, 0};
      return {};
    }
    Step& step = state_.steps.emplace_back();
    step.kind = Step::kCopy;
    step.a = from.location;
    step.to = {Location::kResult, 0};
    return kernels::prepare_copy(&step.copy, width(), from.dims, from.strides, contiguous_strides(from.dims));
  }

  PrepareContext& ctx_;
  EinsumState& state_;
  const einsum::Equation& equation_;
  const ElementType wide_;
  ScratchLayout scratch_;
  int64_t sizes_[einsum::kLabels];
};

// ---------------------------------------------------------------------------------------------------------------------

uint32_t run_einsum(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const EinsumState*>(state);
  const size_t inputs = s.inputs.size();
  auto* scratch = static_cast<std::byte*>(slots[operands[inputs + 1]]);
  void* out = slots[operands[inputs]];
  auto read = [&](const Location& location) -> const void* {
    if (location.kind == Location::kInput) return s.inputs[location.at].get(slots[operands[location.at]], scratch);
    return scratch + location.at;
  };
  for (const Step& step : s.steps) {
    void* to = step.to.kind == Location::kScratch ? scratch + step.to.at : s.narrows ? scratch + s.wide_result : out;
    const void* a = read(step.a);
    if (step.kind == Step::kCopy) {
      step.copy(a, to);
    } else if (step.kind == Step::kReduce) {
      step.reduce(a, to);
    } else if (step.kind == Step::kMultiply) {
      const void* factors[] = {a, read(step.b)};
      step.multiply(factors, to);
    } else {
      step.gemm.run(a, read(step.b), nullptr, to, scratch, nullptr);
    }
  }
  if (s.narrows) parallel_convert(s.narrow, scratch + s.wide_result, out, s.count);
  return 0;
}

Status prepare_einsum(PrepareContext& ctx) {
  InlineVector<int64_t, 4> ranks;
  for (const Operand& input : ctx.inputs) ranks.push_back(input.rank());
  TREADLE_ASSIGN(const einsum::Equation equation, equation_of(ctx.attributes(), ranks));
  auto* state = ctx.make_state<EinsumState>();
  state->inputs.resize(ctx.inputs.size());
  TREADLE_TRY(Builder(ctx, *state, equation).build());
  ctx.set_kernel(run_einsum, state);
  return {};
}

Result<einsum::Equation> equation_of(const ir::Node& node) {
  InlineVector<int64_t, 4> ranks;
  for (const ir::Value* v : node.inputs) ranks.push_back(v->type.rank());
  return equation_of(node.attributes, ranks);
}

Status einsum_axes(AxisContext& c) {
  TREADLE_ASSIGN(const einsum::Equation equation, equation_of(c.node()));
  std::optional<einsum::Label> label;
  for (size_t i = 0; i < c.inputs(); ++i) {
    if (!c.runs_along(i)) continue;
    const einsum::Label here = equation.inputs[i][static_cast<size_t>(c.in(i))];
    if (label && *label != here) return looks_along("its operands run along unlike axes");
    label = here;
  }
  for (size_t i = 0; i < c.inputs(); ++i) {
    const einsum::Labels& labels = equation.inputs[i];
    for (size_t d = 0; d < labels.size(); ++d) {
      const bool is_the_axis = static_cast<int64_t>(d) == c.in(i);
      if (labels[d] == *label && !is_the_axis && !c.size(i, static_cast<int64_t>(d)).is_known(1)) {
        return looks_along("an operand of its product has a fixed size along it");
      }
    }
  }
  const auto it = std::find(equation.output.begin(), equation.output.end(), *label);
  if (it == equation.output.end()) return looks_along("its product sums along it");
  return c.give(0, it - equation.output.begin());
}

// A multiplication and an addition for every combination of positions.
Work einsum_work(const ir::Node& node) {
  const auto equation = equation_of(node);
  if (!equation.ok()) return {};
  double sizes[einsum::kLabels];
  std::fill(std::begin(sizes), std::end(sizes), 1.0);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const einsum::Labels& labels = equation->inputs[i];
    for (size_t d = 0; d < labels.size(); ++d) {
      double& size = sizes[static_cast<uint8_t>(labels[d])];
      size = std::max(size, work::size_of(node.inputs[i], labels.size() - d));
    }
  }
  return {.flops = 2 * std::accumulate(std::begin(sizes), std::end(sizes), 1.0, std::multiplies<>())};
}

}  // namespace

}  // namespace treadle

TREADLE_OP(Einsum, "") {
  op.since(12)
      .in("Inputs", "T", Arity::kVariadic)
      .out("Output", "T")
      .required("equation", ir::AttributeKind::kString)
      .type("T", types::kNumeric);
  op.since(28).type("T", types::kNumericBf16);
  op.infer(infer_einsum).prepare(prepare_einsum).strided_inputs({0, 1}).axes(einsum_axes).work(einsum_work);
}

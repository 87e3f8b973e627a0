// Products in the form that suits their operands:
// - MatMul(W, x) of a constant matrix and a vector becomes MatMul(x, transposed W): packed, with one row for each step.
// - MatMul(A, B) of a column and a row becomes Mul(A, B), for floats plus 0, which joins the elementwise groups around
//   it.
// - MatMul(A, x) of short rows and a vector, in a loop, becomes ReduceSum(Mul(A, x)): kernels of such products sum as
//   ReduceSum does (kernels/gemm.h), so bits stay.
// - Einsum in a loop becomes Transpose, Reshape, Mul, MatMul and ReduceSum. Outside of loops it keeps its own kernel.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <unordered_map>

#include "kernels/gemm.h"
#include "kernels/move.h"
#include "op/gemm.h"
#include "op/op_def.h"
#include "ops/math/einsum_equation.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/restater.h"
#include "type/make_tensor.h"

namespace treadle::opt {

namespace {

using einsum::Label;
using einsum::Labels;

// Elements of a constant. Measured with square matrices and a vector: the transposed product takes 0.6 of the time at
// 1024 x 1024. At 2048 x 2048 it takes 0.93, for a second copy of 16 MB. Below 8 x 8 native code has both in registers.
constexpr int64_t kMostTransposed = 1 << 20, kFewestTransposed = 64;
// Rows that kernels sum as ReduceSum does, and elements that stay in the first-level cache (32 KB of floats).
constexpr int64_t kLongestRow = kernels::kGemmShortDot, kMostElements = 1 << 13;

int64_t count_of(const Dims& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

class Rewriter : public Restater {
 public:
  using Restater::Restater;

 private:
  ir::Value* restate(const ir::Node& node, bool in_loop) override {
    if (node.attributes.has(kHalfWeights)) return nullptr;
    if (is(node, "MatMul")) return multiply(input(0), input(1), node.outputs[0]->type, in_loop);
    return in_loop && is(node, "Einsum") ? sum_products(node) : nullptr;
  }

  // --- MatMul ---

  // Null if the product stays as it is.
  ir::Value* multiply(ir::Value* a, ir::Value* b, const Type& result, bool in_loop) {
    const Type &left = a->type, &right = b->type;
    if (!left.has_shape || !right.has_shape) return nullptr;
    const size_t rank_a = left.shape.size(), rank_b = right.shape.size();
    if (rank_a >= 2 && rank_b >= 2 && left.shape[rank_a - 1].is_known(1) && right.shape[rank_b - 2].is_known(1)) {
      return multiply_column_by_row(a, b, result);
    }
    const auto rows = sizes_of(a), columns = sizes_of(b);
    if (!rows || !columns || rank_a < 2) return nullptr;
    const bool is_vector = rank_b == 1 || columns->back() == 1;
    if (!is_vector) return nullptr;
    if (a->is_constant() && rank_a == 2 && rank_b <= 2) return multiply_transposed(a, b, *rows);
    const int64_t k = rows->back();
    if (!in_loop || a->is_constant() || k > kLongestRow || count_of(*rows) > kMostElements) return nullptr;
    return multiply_and_sum(a, b, *columns);
  }

  // W is [M, K], x is [K] or [K, 1].
  ir::Value* multiply_transposed(ir::Value* w, ir::Value* x, const Dims& sizes) {
    const int64_t m = sizes[0], k = sizes[1];
    if (m == 1 || m * k < kFewestTransposed || m * k > kMostTransposed) return nullptr;
    ir::Value* row = reshape(x, {k});
    ir::Value* product = call("MatMul", {row, transposed(w, m, k)}, tensor({m}));
    return x->type.rank() == 1 ? product : reshape(product, {m, 1});
  }

  ir::Value* transposed(ir::Value* w, int64_t m, int64_t k) {
    ir::Value*& made = transposed_[w];
    if (made) return made;
    const Tensor& from = w->constant;
    Tensor to = make_tensor(from.type(), {k, m});
    kernels::CopyPlan copy;
    [[maybe_unused]] const bool ok =
        kernels::prepare_copy(&copy, byte_width(from.type()), Dims{k, m}, Dims{1, k}, Dims{m, 1}).ok();
    TREADLE_ASSERT(ok);
    copy(from.raw(), to.mutable_raw());
    return made = graph().new_constant(std::string(w->name) + ":transposed", std::move(to));
  }

  // A sum of one product: sums begin with 0, so the result is never -0.
  ir::Value* multiply_column_by_row(ir::Value* a, ir::Value* b, const Type& result) {
    ir::Value* product = call("Mul", {a, b}, result);
    if (!is_float(result.element)) return product;
    Tensor zero = make_tensor(result.element, {});
    std::memset(zero.mutable_raw(), 0, zero.byte_size());
    return call("Add", {product, graph().new_constant(std::string(product->name) + ":zero", std::move(zero))}, result);
  }

  // A is [..., M, K], x is [K] or [..., K, 1]. Narrow floats are summed as float, as in a product.
  ir::Value* multiply_and_sum(ir::Value* a, ir::Value* x, const Dims& columns) {
    Dims as_row = columns;
    if (as_row.size() > 1) std::swap(as_row[as_row.size() - 1], as_row[as_row.size() - 2]);
    Shape sizes = a->type.shape;
    if (!broadcast_into(sizes, to_shape(as_row)).ok()) return nullptr;
    const ElementType stored = element(), wide = wide_type(stored);
    ir::Value* products = call("Mul", {cast(a, wide), cast(reshape(x, as_row), wide)}, Type::tensor(wide, sizes));
    const int64_t last[] = {static_cast<int64_t>(sizes.size()) - 1};
    return cast(reduce("ReduceSum", products, last, columns.size() > 1), stored);
  }

  ir::Value* cast(ir::Value* v, ElementType to) {
    if (v->type.element == to) return v;
    return call("Cast", {v}, Type::tensor(to, v->type.shape), {ir::Attribute::of("to", static_cast<int64_t>(to))});
  }

  // --- Einsum ---

  // An intermediate value; its dimensions are in the order of their labels.
  struct Term {
    ir::Value* value = nullptr;
    Labels labels;

    bool has(Label l) const { return std::find(labels.begin(), labels.end(), l) != labels.end(); }
  };

  ir::Value* sum_products(const ir::Node& node) {
    InlineVector<int64_t, 4> ranks;
    for (ir::Value* v : node.inputs) {
      if (!sizes_of(v)) return nullptr;
      ranks.push_back(v->type.rank());
    }
    auto parsed = einsum::parse(node.attributes.get_string("equation"), ranks);
    if (!parsed.ok() || !has_product(node.outputs[0]->type.element)) return nullptr;
    equation_ = std::move(parsed).value();
    if (!set_sizes(node)) return nullptr;
    Term acc = sum_if(operand(0), [&](Label l) { return !needed(l, 1); });
    for (size_t i = 1; i < equation_.inputs.size(); ++i) {
      const bool last = i + 1 == equation_.inputs.size();
      const Term next = sum_if(operand(i), [&](Label l) { return !acc.has(l) && !needed(l, i + 1); });
      acc = sum_if(acc, [&](Label l) { return !next.has(l) && !needed(l, i + 1); });
      acc = combine(acc, next, i + 1, last);
    }
    return in_order(acc, equation_.output);
  }

  static bool has_product(ElementType type) {
    return is_float(type) || type == ElementType::kInt32 || type == ElementType::kInt64 ||
           type == ElementType::kUint32 || type == ElementType::kUint64;
  }

  // False if a label stands for two sizes, or occurs twice in one operand.
  bool set_sizes(const ir::Node& node) {
    std::fill(std::begin(sizes_), std::end(sizes_), 0);
    for (size_t i = 0; i < equation_.inputs.size(); ++i) {
      const Labels& labels = equation_.inputs[i];
      for (size_t d = 0; d < labels.size(); ++d) {
        int64_t& size = sizes_[static_cast<uint8_t>(labels[d])];
        const int64_t here = node.inputs[i]->type.shape[d].value();
        if (std::find(labels.begin(), labels.begin() + d, labels[d]) != labels.begin() + d) return false;
        if (size != 0 && size != here) return false;
        size = here;
      }
    }
    return true;
  }

  Term operand(size_t i) { return {input(i), equation_.inputs[i]}; }

  bool needed(Label l, size_t from) const {
    auto in = [l](const Labels& labels) { return std::find(labels.begin(), labels.end(), l) != labels.end(); };
    return in(equation_.output) || std::any_of(equation_.inputs.begin() + from, equation_.inputs.end(), in);
  }

  template <class Fn>
  Term sum_if(const Term& term, Fn&& away) {
    Term out;
    std::vector<int64_t> axes;
    for (size_t d = 0; d < term.labels.size(); ++d) {
      if (away(term.labels[d])) {
        axes.push_back(static_cast<int64_t>(d));
      } else {
        out.labels.push_back(term.labels[d]);
      }
    }
    if (axes.empty()) return term;
    out.value = reduce("ReduceSum", term.value, axes, false);
    return out;
  }

  Term combine(const Term& a, const Term& b, size_t later, bool last) {
    Labels batch, m, k, n;
    for (const Label l : a.labels) (!b.has(l) ? m : needed(l, later) ? batch : k).push_back(l);
    for (const Label l : b.labels) {
      if (!a.has(l)) n.push_back(l);
    }
    if (k.empty()) return multiply_elements(a, b, last ? equation_.output : joined({&a.labels, &n}));
    const Dims stack = sizes({&batch});
    Dims left = stack, right = stack;
    for (const Labels* group : {&m, &k}) left.push_back(count_of(sizes({group})));
    for (const Labels* group : {&k, &n}) right.push_back(count_of(sizes({group})));
    ir::Value* x = reshape(in_order(a, joined({&batch, &m, &k})), left);
    ir::Value* y = reshape(in_order(b, joined({&batch, &k, &n})), right);
    Dims result = stack;
    result.push_back(left[left.size() - 2]);
    result.push_back(right.back());
    ir::Value* product = multiply_stacks(x, y, result);
    const Labels labels = joined({&batch, &m, &n});
    return {reshape(product, sizes({&labels})), labels};
  }

  ir::Value* multiply_stacks(ir::Value* x, ir::Value* y, const Dims& result) {
    if (ir::Value* other = multiply(x, y, tensor(result), true)) return other;
    return call("MatMul", {x, y}, tensor(result));
  }

  Term multiply_elements(const Term& a, const Term& b, const Labels& order) {
    const Dims all = sizes({&order});
    ir::Value* product = call("Mul", {spread(a, order), spread(b, order)}, tensor(all));
    return {product, order};
  }

  // The term with all labels of `order` as dimensions; the size is 1 for labels that it lacks.
  ir::Value* spread(const Term& term, const Labels& order) {
    Labels own;
    Dims under;
    for (const Label l : order) {
      if (term.has(l)) own.push_back(l);
      under.push_back(term.has(l) ? sizes_[static_cast<uint8_t>(l)] : 1);
    }
    return reshape(in_order(term, own), under);
  }

  ir::Value* in_order(const Term& term, const Labels& order) {
    std::vector<int64_t> axes;
    for (const Label l : order) {
      axes.push_back(std::find(term.labels.begin(), term.labels.end(), l) - term.labels.begin());
    }
    if (std::is_sorted(axes.begin(), axes.end())) return term.value;
    return call("Transpose", {term.value}, tensor(sizes({&order})), {ir::Attribute::of("perm", axes)});
  }

  static Labels joined(std::initializer_list<const Labels*> groups) {
    Labels all;
    for (const Labels* group : groups) {
      for (const Label l : *group) all.push_back(l);
    }
    return all;
  }

  Dims sizes(std::initializer_list<const Labels*> groups) const {
    Dims out;
    for (const Label l : joined(groups)) out.push_back(sizes_[static_cast<uint8_t>(l)]);
    return out;
  }

  einsum::Equation equation_;
  int64_t sizes_[einsum::kLabels] = {};
  std::unordered_map<const ir::Value*, ir::Value*> transposed_;
};

}  // namespace

void simplify_products(ir::Graph& graph, Remarks* remarks) {
  Rewriter(graph, remarks).run();
}

}  // namespace treadle::opt

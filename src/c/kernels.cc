// Instructions that move elements, reduce, multiply matrices, or gather.

#include <algorithm>
#include <cstring>

#include "c/sums.h"
#include "c/vectors.h"
#include "c/writer.h"

namespace treadle::c {

namespace {

using kernels::ReduceOp;

std::string times(const std::string& index, int64_t stride) {
  if (stride == 1) return index;
  return fmt::format("{} * {}", index, stride);
}

// Loops over `dims` without those of size 1, and the offsets that indices and strides give.
class Loops {
 public:
  explicit Loops(Writer& writer, std::string_view name = "i") : w_(writer), name_(name) {}

  void open(const Dims& dims) {
    for (const int64_t size : dims) {
      names_.push_back(size == 1 ? "" : fmt::format("{}{}", name_, names_.size()));
      if (size == 1) continue;
      w_.text().open("for (ptrdiff_t {0} = 0; {0} < {1}; ++{0})", names_.back(), size);
      ++opened_;
    }
  }
  std::string offset(const Dims& strides, int64_t start = 0) const {
    std::string sum;
    for (size_t d = 0; d < names_.size(); ++d) {
      if (names_[d].empty() || strides[d] == 0) continue;
      sum += (sum.empty() ? "" : " + ") + times(names_[d], strides[d]);
    }
    if (start != 0 || sum.empty()) {
      sum += sum.empty() ? std::to_string(start) : fmt::format(" {} {}", start < 0 ? "-" : "+", std::abs(start));
    }
    return sum;
  }
  void close() {
    for (; opened_ > 0; --opened_) w_.text().close();
  }

 private:
  Writer& w_;
  std::string name_;
  std::vector<std::string> names_;
  int opened_ = 0;
};

std::string plus(const std::string& pointer, const std::string& offset) {
  return offset == "0" ? pointer : fmt::format("{} + {}", pointer, offset);
}

// Drops dimensions of size 1 and joins neighbours that one stride walks through.
void merge(Dims& dims, std::initializer_list<Dims*> strides) {
  for (size_t d = dims.size(); d-- > 0;) {
    if (dims[d] == 1) {
      dims.erase(d);
      for (Dims* s : strides) s->erase(d);
    }
  }
  for (size_t d = dims.size(); d-- > 1;) {
    const bool joins = std::ranges::all_of(strides, [&](Dims* s) { return (*s)[d - 1] == (*s)[d] * dims[d]; });
    if (!joins) continue;
    dims[d - 1] *= dims[d];
    dims.erase(d);
    for (Dims* s : strides) {
      (*s)[d - 1] = (*s)[d];
      s->erase(d);
    }
  }
}

void write_region(Writer& w, ElementType type, const plan::MoveCode::Region& region) {
  if (element_count_unchecked(region.dims) == 0) return;
  Dims dims = region.dims, in = region.in_strides, out = region.out_strides;
  const bool fills = region.from == plan::kNoSlot;
  if (fills) in = Dims(dims.size());
  merge(dims, {&in, &out});
  const std::string to = w.writes(region.to, type);
  const std::string from = fills ? "" : w.reads(region.from, type);
  const auto width = static_cast<int64_t>(byte_width(type));
  const bool is_block = !fills && !dims.empty() && in.back() == 1 && out.back() == 1 && dims.back() >= 4;
  int64_t block = 1;
  if (is_block) {
    block = dims.back();
    dims.pop_back(), in.pop_back(), out.pop_back();
  }
  Loops loops(w);
  loops.open(dims);
  const std::string at = loops.offset(out, region.out_start);
  if (fills) {
    uint64_t bits = region.bits;
    w.text().line("{}[{}] = {};", to, at, literal(type, &bits));
  } else if (is_block) {
    w.text().line(
        "{}", w.copy(plus(to, at), plus(from, loops.offset(in, region.in_start)), static_cast<size_t>(block * width)));
  } else {
    w.text().line("{}[{}] = {}[{}];", to, at, from, loops.offset(in, region.in_start));
  }
  loops.close();
}

// Elements whose numbers are listed, as runs with one stride within one operand.
void write_list(Writer& w, const plan::MoveCode& code, const plan::MoveCode::Output& output) {
  const std::string to = w.writes(output.slot, code.type);
  const auto source = [&](int64_t number) {
    int64_t first = 0;
    for (const auto& in : code.inputs) {
      if (number < first + in.count) return std::pair(&in, number - first);
      first += in.count;
    }
    return std::pair<const plan::MoveCode::Input*, int64_t>(nullptr, 0);
  };
  const auto& from = output.from;
  // How many runs there are.
  size_t runs = 1;
  for (size_t i = 2; i < from.size(); ++i) {
    if (from[i] - from[i - 1] != from[i - 1] - from[i - 2]) ++runs;
  }
  constexpr size_t kMostRuns = 96;
  if (runs > kMostRuns && code.inputs.size() == 1) {
    // A table of positions; -1 and below are constants.
    const std::vector<int32_t> positions(from.begin(), from.end());
    const std::string table = w.table("positions", ElementType::kInt32, positions.data(), positions.size());
    const std::string x = w.reads(code.inputs[0].slot, code.type);
    w.text().open("for (ptrdiff_t i = 0; i < {}; ++i)", from.size());
    if (std::ranges::min(from) >= 0) {
      w.text().line("{}[i] = {}[{}[i]];", to, x, table);
    } else {
      std::vector<std::byte> elements(code.constants.size() * byte_width(code.type));
      for (size_t i = 0; i < code.constants.size(); ++i) {
        std::memcpy(elements.data() + i * byte_width(code.type), &code.constants[i], byte_width(code.type));
      }
      const std::string constants = w.table("constants", code.type, elements.data(), code.constants.size());
      w.text().line("{}[i] = {}[i] < 0 ? {}[-1 - {}[i]] : {}[{}[i]];", to, table, constants, table, x, table);
    }
    w.text().close();
    return;
  }
  for (size_t i = 0; i < from.size();) {
    if (from[i] < 0) {
      size_t end = i + 1;
      while (end < from.size() && from[end] == from[i]) ++end;
      uint64_t bits = code.constants[static_cast<size_t>(-1 - from[i])];
      const std::string value = literal(code.type, &bits);
      if (end - i < 4) {
        for (; i < end; ++i) w.text().line("{}[{}] = {};", to, i, value);
      } else {
        w.text().line("for (ptrdiff_t i = {}; i < {}; ++i) {}[i] = {};", i, end, to, value);
      }
      i = end;
      continue;
    }
    const auto [input, at] = source(from[i]);
    const std::string x = w.reads(input->slot, code.type);
    size_t end = i + 1;
    int64_t stride = 0;
    if (end < from.size() && from[end] >= 0 && source(from[end]).first == input) {
      stride = from[end] - from[i];
      while (end < from.size() && from[end] >= 0 && source(from[end]).first == input &&
             from[end] - from[end - 1] == stride) {
        ++end;
      }
    }
    if (end - i < 4) {
      for (size_t k = i; k < end; ++k) w.text().line("{}[{}] = {}[{}];", to, k, x, source(from[k]).second);
    } else if (stride == 1) {
      w.text().line(
          "{}", w.copy(plus(to, std::to_string(i)), plus(x, std::to_string(at)), (end - i) * byte_width(code.type)));
    } else {
      w.text().line("for (ptrdiff_t i = 0; i < {}; ++i) {}[i + {}] = {}[{} + i * {}];", end - i, to, i, x, at, stride);
    }
    i = end;
  }
}

// What ends a reduction: from the wide sum to an element. LogSumExp adds the `shift` of its exponentials.
std::string finished(Writer& w, ReduceOp op, ElementType type, const std::string& sum, int64_t count,
                     std::string& why) {
  const ElementType compute = summed_type(op, type), wide = wide_sum(compute);
  Functions& functions = w.functions();
  std::string result = sum;
  ElementType made = wide;
  switch (op) {
    case ReduceOp::kMean:
      if (is_float(compute)) {
        result = fmt::format("{} / {}.0", sum, count);
      } else {
        result = count == 0 ? "0" : fmt::format("{} / {}", sum, count);
      }
      break;
    case ReduceOp::kL2:
      result =
          fmt::format("{}({})", functions.sqrt(ElementType::kDouble), w.converted(wide, ElementType::kDouble, sum));
      made = ElementType::kDouble;
      break;
    case ReduceOp::kLogSum:
    case ReduceOp::kLogSumExp: {
      const std::string log = functions.logarithm();
      if (log.empty()) why = "the logarithm of a sum is the C library's (libm allows it)";
      result = fmt::format("{}({})", log, w.converted(wide, ElementType::kDouble, sum));
      if (op == ReduceOp::kLogSumExp) {
        result = fmt::format("{} + {}", result, w.converted(compute, ElementType::kDouble, "shift"));
      }
      made = ElementType::kDouble;
      break;
    }
    default:
      break;
  }
  // Doubles are rounded to floats before narrow floats are made of them.
  return w.converted(compute, type, w.converted(made, compute, result));
}

}  // namespace

void write_moves(Writer& w, const plan::MoveCode& code, std::string&) {
  if (!code.regions.empty()) {
    for (const auto& region : code.regions) write_region(w, code.type, region);
    return;
  }
  for (const auto& output : code.outputs) write_list(w, code, output);
}

namespace {

constexpr int64_t kLeastColumns = 4;  // that are taken together

// Opens a loop that takes `count` columns in blocks of neighbours. A block begins at the column `first`; the expression
// that is returned is its number of columns.
std::string open_columns(Text& text, int64_t count) {
  if (count <= kColumns) {
    text.open("");
    text.line("const ptrdiff_t first = 0;");
    return std::to_string(count);
  }
  text.open("for (ptrdiff_t first = 0; first < {}; first += {})", count, kColumns);
  if (count % kColumns == 0) return std::to_string(kColumns);
  text.line("const ptrdiff_t m = {0} - first < {1} ? {0} - first : {1};", count, kColumns);
  return "m";
}

// Of columns that are neighbours: the last kept axis of `kept`.
void reduce_columns(Writer& w, const plan::ReductionCode& code, std::string& why) {
  Text& text = w.text();
  Dims rows = code.reduced, row_strides = code.reduced_strides, outer = code.kept;
  const int64_t n = rows.back(), stride = row_strides.back(), count = outer.back();
  rows.pop_back(), row_strides.pop_back(), outer.pop_back();
  const ElementType wide = wide_sum(summed_type(code.op, code.type));
  Loops kept(w);
  kept.open(outer);
  const std::string m = open_columns(text, count);
  text.line("{} sums[{}];", stored(wide), kColumns);
  text.line("for (ptrdiff_t j = 0; j < {}; ++j) sums[j] = {};", m, neutral(code.op, code.type));
  Loops reduced(w, "r");
  reduced.open(rows);
  const auto within = [](const std::string& a, const std::string& b) {
    return a == "0" ? b : b == "0" ? a : a + " + " + b;
  };
  const std::string at = within(within(kept.offset(code.kept_strides), reduced.offset(row_strides)), "first");
  text.line("{}(sums, {} + {}, {}, {}, {});", columns_function(w.functions(), code.op, code.type),
            w.reads(code.from, code.type), at, n, stride, m);
  reduced.close();
  const std::string to = within(kept.offset(contiguous_strides(code.kept)), "first + j");
  text.open("for (ptrdiff_t j = 0; j < {}; ++j)", m);
  text.line("{}[{}] = {};", w.writes(code.to, code.type), to,
            finished(w, code.op, code.type, "sums[j]", n * element_count_unchecked(rows), why));
  text.close();
  text.close();
  kept.close();
}

}  // namespace

void write_reduction(Writer& w, const plan::ReductionCode& code, std::string& why) {
  if (element_count_unchecked(code.kept) == 0) return;
  const bool neighbours = code.columns && !code.kept.empty() && code.kept.back() >= kLeastColumns &&
                          code.kept_strides.back() == 1 && element_count_unchecked(code.reduced) > 0;
  if (neighbours && !code.reduced.empty() && code.op != ReduceOp::kLogSumExp) return reduce_columns(w, code, why);
  const std::string to = w.writes(code.to, code.type);
  Dims rows = code.reduced, row_strides = code.reduced_strides;
  const int64_t n = rows.empty() ? 1 : rows.back(), stride = rows.empty() ? 1 : row_strides.back();
  if (!rows.empty()) rows.pop_back(), row_strides.pop_back();
  const int64_t count = n * element_count_unchecked(rows);
  const ElementType compute = summed_type(code.op, code.type);
  Loops kept(w);
  kept.open(code.kept);
  // Declares `name`, what `op` makes of the reduced elements.
  const auto reduce = [&](ReduceOp op, const char* name) {
    const ElementType wide = wide_sum(summed_type(op, code.type));
    w.text().line("{} {} = {};", stored(wide), name, neutral(op, code.type));
    if (count == 0) return;
    const std::string combine =
        code.columns ? column_function(w.functions(), op, code.type) : row_function(w.functions(), op, code.type);
    Loops reduced(w, "r");
    reduced.open(rows);
    std::string at = kept.offset(code.kept_strides);
    const std::string more = reduced.offset(row_strides);
    if (more != "0") at = at == "0" ? more : at + " + " + more;
    std::string end = code.columns ? fmt::format(", {}", stride) : "";
    if (op == ReduceOp::kLogSumExp) end += ", shift";
    w.text().line("{0} = {1}({0}, {2}, {3}{4});", name, combine, plus(w.reads(code.from, code.type), at), n, end);
    reduced.close();
  };
  w.text().open("");
  if (code.op == ReduceOp::kLogSumExp) {
    reduce(ReduceOp::kMax, "best");
    w.text().line("{} shift = {};", stored(compute), w.converted(wide_sum(code.type), compute, "best"));
    w.text().line("if (shift - shift != 0 && shift == shift) shift = 0; /* infinite */");
  }
  reduce(code.op, "sum");
  const std::string result = finished(w, code.op, code.type, "sum", count, why);
  w.text().line("{}[{}] = {};", to, kept.offset(contiguous_strides(code.kept)), result);
  w.text().close();
  kept.close();
}

void write_extremes(Writer& w, const plan::ArgReductionCode& code, std::string&) {
  const std::string from = w.reads(code.from, code.type), to = w.writes(code.to, ElementType::kInt64);
  const ElementType wide = wide_type(code.type);
  const auto element = [&](const std::string& at) {
    return w.converted(code.type, wide, fmt::format("{}[{}]", from, at));
  };
  const char* sign = code.greatest ? ">" : "<";
  // Whether x stands before `best`.
  const auto wins = [&](const std::string& best) {
    std::string is_less = fmt::format("x {}{} {}", sign, code.last ? "=" : "", best);
    if (!is_float(wide)) return is_less;
    return code.last ? fmt::format("x != x || {}", is_less)
                     : fmt::format("{0} == {0} && (x != x || {1})", best, is_less);
  };
  Loops loops(w);
  if (code.inner >= kLeastColumns && code.n < (int64_t{1} << 31)) {
    loops.open({code.outer});
    const auto within = [&](const std::string& at, int64_t step) {
      const std::string base = loops.offset({step});
      return base == "0" ? at : base + " + " + at;
    };
    const std::string m = open_columns(w.text(), code.inner);
    w.text().line("{} best[{}];", stored(wide), kColumns);
    w.text().line("int32_t found[{}] = {{0}};", kColumns);
    w.text().line("for (ptrdiff_t j = 0; j < {}; ++j) best[j] = {};", m,
                  element(within("first + j", code.n * code.inner)));
    w.text().open("for (int32_t k = 1; k < {}; ++k)", code.n);
    w.text().line("{}_INDEPENDENT", w.functions().upper_prefix());
    w.text().open("for (ptrdiff_t j = 0; j < {}; ++j)", m);
    w.text().line(
        "const {} x = {};", stored(wide),
        element(within(fmt::format("{} + first + j", times("(ptrdiff_t)k", code.inner)), code.n * code.inner)));
    w.text().line("const int wins = {};", wins("best[j]"));
    w.text().line("best[j] = wins ? x : best[j];");
    w.text().line("found[j] = wins ? k : found[j];");
    w.text().close();
    w.text().close();
    w.text().line("for (ptrdiff_t j = 0; j < {}; ++j) {}[{}] = found[j];", m, to, within("first + j", code.inner));
    w.text().close();
    loops.close();
    return;
  }
  loops.open({code.outer, code.inner});
  const std::string base = loops.offset({code.n * code.inner, 1});
  w.text().open("");
  w.text().line("{} best = {};", stored(wide), element(base));
  w.text().line("ptrdiff_t found = 0;");
  w.text().open("for (ptrdiff_t k = 1; k < {}; ++k)", code.n);
  const std::string at = base == "0" ? times("k", code.inner) : fmt::format("{} + {}", base, times("k", code.inner));
  w.text().line("const {} x = {};", stored(wide), element(at));
  w.text().line("if ({}) best = x, found = k;", wins("best"));
  w.text().close();
  w.text().line("{}[{}] = found;", to, loops.offset({code.inner, 1}));
  w.text().close();
  loops.close();
}

namespace {

// f(a, a_row, a_col, b, b_row, c, c_row, k): `rows` rows and `across` vectors of a product. Each sum is a variable of
// its own, so that compilers keep all in registers.
std::string tile_function(Functions& functions, ElementType type, Width width, int rows, int across) {
  const Vectors v = vectors(functions, type, width);
  const std::string add = vector_multiply_add(functions, type, width);
  const std::string_view kind = width == Width::kFull ? "tile" : width == Width::kBrief ? "brief_tile" : "column";
  const std::string full = fmt::format("{}_{}x{}_{}", kind, rows, across, suffix(type));
  return functions.get(full, [&](Text& text, const std::string& name) {
    text.open(
        "static inline void {0}(const {1} *restrict a, ptrdiff_t a_row, ptrdiff_t a_col, const {1} *restrict b, "
        "ptrdiff_t b_row, {1} *restrict c, ptrdiff_t c_row, ptrdiff_t k)",
        name, stored(type));
    const auto each = [&](auto&& body) {
      for (int r = 0; r < rows; ++r) {
        for (int j = 0; j < across; ++j) body(r, j, fmt::format("s{}{}", r, j));
      }
    };
    const auto lanes = [&](int j) { return j == 0 ? "" : fmt::format(" + {} * {}", j, v.lanes); };
    if (rows == 1) text.line("(void)a_row, (void)c_row;");
    each([&](int, int, const std::string& sum) { text.line("{} {} = {{0}};", v.type, sum); });
    text.open("for (ptrdiff_t p = 0; p < k; ++p)");
    for (int r = 0; r < rows; ++r) text.line("const {} x{} = {}(a[{} * a_row]);", v.type, r, v.splat, r);
    for (int j = 0; j < across; ++j) text.line("const {} y{} = {}(b{});", v.type, j, v.load, lanes(j));
    each([&](int r, int j, const std::string& sum) { text.line("{0} = {1}(x{2}, y{3}, {0});", sum, add, r, j); });
    text.line("a += a_col;");
    text.line("b += b_row;");
    text.close();
    each([&](int r, int j, const std::string& sum) {
      text.line("{}(c + {} * c_row{}, {});", v.store, r, lanes(j), sum);
    });
    text.close();
  });
}

}  // namespace

// Rows and columns that fill no tile are computed again with those before them.
std::string product_function(Functions& functions, ElementType type, int64_t m) {
  const int rows = m >= kProductRows ? kProductRows : 1;
  const std::string_view t = stored(type);
  const auto tile = [&](Width width, int across) { return tile_function(functions, type, width, rows, across); };
  struct Level {
    int across;
    std::string tile;
  };
  std::vector<Level> levels;
  for (const int across : rows == 1 ? std::vector{8, 4, 2} : std::vector{2}) {
    levels.push_back({across, tile(Width::kFull, across)});
  }
  const std::string vector = tile(Width::kFull, 1), brief = tile(Width::kBrief, 1), column = tile(Width::kSingle, 1);
  const std::string lanes = vectors(functions, type).lanes, few = vectors(functions, type, Width::kBrief).lanes;
  const std::string name = fmt::format("{}_{}", rows == 1 ? "row_product" : "product", suffix(type));
  return functions.get(name, [&](Text& text, const std::string& full) {
    text.line("/* c = a b, each element one chain of sums. Rows and columns that fill no tile are computed again with");
    text.line("   those before them. */");
    text.open(
        "static void {0}(const {1} *restrict a, ptrdiff_t a_row, ptrdiff_t a_col, const {1} *restrict b, "
        "ptrdiff_t b_row, {1} *restrict c, ptrdiff_t c_row, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k)",
        full, t);
    text.line("const ptrdiff_t lanes = {}, few = {};", lanes, few);
    text.open("for (ptrdiff_t i = 0; i < m; i += {})", rows);
    if (rows > 1) text.line("if (i > m - {0}) i = m - {0};", rows);
    text.line("const {} *const a_at = a + i * a_row;", t);
    text.line("{} *const c_at = c + i * c_row;", t);
    text.line("ptrdiff_t j = 0;");
    const auto call = [&](const std::string& called) {
      text.line("{}(a_at, a_row, a_col, b + j, b_row, c_at + j, c_row, k);", called);
    };
    const auto covered = [&](const char* step, const std::string& called) {
      text.open("for (ptrdiff_t left = n - j; left > 0; left -= {})", step);
      text.line("j = n - (left < {0} ? {0} : left);", step);
      call(called);
      text.close();
    };
    text.open("if (n >= lanes)");
    for (const Level& level : levels) {
      text.open("for (; n - j >= {0} * lanes; j += {0} * lanes)", level.across);
      call(level.tile);
      text.close();
    }
    covered("lanes", vector);
    text.close();
    text.open("else if (n >= few)");
    covered("few", brief);
    text.close();
    text.open("else");
    text.open("for (; j < n; ++j)");
    call(column);
    text.close();
    text.close();
    text.close();
    text.close();
  });
}

namespace {

// The matrix of a constant with the element of row p and column j at p * n + j.
std::string repacked(Writer& w, const plan::ProductCode& code, const Tensor& b) {
  const kernels::GemmShape& s = code.shape;
  const size_t width = byte_width(code.type);
  std::vector<std::byte> packed(static_cast<size_t>(s.k * s.n) * width);
  const auto* from = static_cast<const std::byte*>(b.raw());
  for (int64_t p = 0; p < s.k; ++p) {
    for (int64_t j = 0; j < s.n; ++j) {
      std::memcpy(packed.data() + static_cast<size_t>(p * s.n + j) * width,
                  from + static_cast<size_t>(p * s.b_row + j * s.b_col) * width, width);
    }
  }
  return w.table("weights", code.type, packed.data(), static_cast<size_t>(s.k * s.n));
}

}  // namespace

void write_matrices(Writer& w, const Matrices& p) {
  const kernels::GemmShape& s = p.shape;
  const ElementType type = p.type;
  const bool dots = s.n <= kernels::kGemmDotColumns;
  const std::string &a = p.a, &b = p.b, &c = p.c;
  int64_t b_row = s.b_row, b_col = s.b_col;
  Dims sizes, a_steps, b_steps, c_steps;
  for (const auto& level : p.stack) {
    sizes.push_back(level.size), a_steps.push_back(level.a), b_steps.push_back(level.b), c_steps.push_back(level.c);
  }
  Loops stack(w, "m");
  stack.open(sizes);
  const std::string a_at = plus(a, stack.offset(a_steps)), c_at = plus(c, stack.offset(c_steps));
  std::string b_at = plus(b, stack.offset(b_steps));
  // Columns of b that few rows of a meet are read as they are.
  constexpr int64_t kFewRows = 4;
  if (!dots && b_col != 1 && b_row == 1 && s.m >= kFewRows) {
    const std::string rows = room(w, type, s.k * s.n);
    w.text().line("{}({}, {}, {}, {}, {}, {});", columns_function(w.functions(), type, type), b_at, b_col, s.n, s.k,
                  rows, s.n);
    b_at = rows;
    b_row = s.n, b_col = 1;
  }
  if (dots || b_col != 1) {
    // One column at a time.
    Loops loops(w);
    loops.open({s.m, s.n});
    const auto add = [&](const std::string& base, const Dims& strides) { return plus(base, loops.offset(strides)); };
    if (dots) {
      w.text().line("*({}) = {}({}, {}, {}, {}, {});", add(c_at, {s.c_row, 1}), dot_function(w.functions(), type),
                    add(a_at, {s.a_row, 0}), s.a_col, add(b_at, {0, b_col}), b_row, s.k);
    } else {
      w.text().line("{}({}, 0, {}, {}, {}, {}, 0, 1, 1, {});", product_function(w.functions(), type, 1),
                    add(a_at, {s.a_row, 0}), s.a_col, add(b_at, {0, b_col}), b_row, add(c_at, {s.c_row, 1}), s.k);
    }
    loops.close();
  } else {
    w.text().line("{}({}, {}, {}, {}, {}, {}, {}, {}, {}, {});", product_function(w.functions(), type, s.m), a_at,
                  s.a_row, s.a_col, b_at, b_row, c_at, s.c_row, s.m, s.n, s.k);
  }
  const bool clamps = s.low != -__builtin_inff() || s.high != __builtin_inff();
  const bool has_bias = !p.bias.empty();
  if (s.alpha != 1 || has_bias || clamps) {
    Loops loops(w);
    loops.open({s.m, s.n});
    const std::string at = loops.offset({s.c_row, 1});
    const std::string base = p.stack.empty() ? c : fmt::format("({})", c_at);
    const bool real = is_float(type);
    const std::string_view t = stored(type);
    const std::string_view u = byte_width(type) == 8 ? "uint64_t" : "uint32_t";
    const auto number = [&](double value) {
      if (type == ElementType::kFloat) return literal(static_cast<float>(value));
      if (type == ElementType::kDouble) return literal(value);
      return literal(static_cast<int64_t>(value));
    };
    const auto apply = [&](const std::string& x, const char* op, const std::string& y) {
      return real ? fmt::format("{} {} {}", x, op, y) : fmt::format("({})(({}){} {} ({}){})", t, u, x, op, u, y);
    };
    w.text().open("");
    w.text().line("{} x = {}[{}];", t, base, at);
    if (s.alpha != 1) w.text().line("x = {};", apply("x", "*", number(s.alpha)));
    if (has_bias) {
      w.text().line("{} y = {}[{}];", t, p.bias, loops.offset({s.bias_row, s.bias_col}));
      if (s.beta != 1) w.text().line("y = {};", apply(number(s.beta), "*", "y"));
      w.text().line("x = {};", apply("x", "+", "y"));
    }
    if (clamps) w.text().line("x = x < {0} ? {0} : x > {1} ? {1} : x;", number(s.low), number(s.high));
    w.text().line("{}[{}] = x;", base, at);
    w.text().close();
    loops.close();
  }
  stack.close();
}

void write_product(Writer& w, const plan::ProductCode& code, std::string&) {
  Matrices p{code.shape, code.stack, code.type, {}, {}, {}, {}};
  const bool converts = code.stored != code.type;
  // Operands of narrow floats as floats
  const auto read = [&](uint32_t slot, int64_t count) {
    std::string from = w.reads(slot, code.stored);
    if (!converts) return from;
    const std::string wide = room(w, code.type, count);
    w.text().line("for (ptrdiff_t i = 0; i < {}; ++i) {}[i] = {};", count, wide,
                  w.converted(code.stored, code.type, from + "[i]"));
    return wide;
  };
  p.a = read(code.a, code.a_count);
  const Tensor* weights = w.constant(code.b);
  if (weights && !converts && code.stack.empty() && p.shape.n > kernels::kGemmDotColumns && p.shape.b_col != 1) {
    p.b = repacked(w, code, *weights);
    p.shape.b_row = p.shape.n, p.shape.b_col = 1;
  } else {
    p.b = read(code.b, code.b_count);
  }
  if (code.bias != plan::kNoSlot) p.bias = read(code.bias, code.bias_count);
  const std::string to = w.writes(code.c, code.stored);
  p.c = converts ? room(w, code.type, code.c_count) : to;
  write_matrices(w, p);
  if (!converts) return;
  w.text().line("for (ptrdiff_t i = 0; i < {}; ++i) {}[i] = {};", code.c_count, to,
                w.converted(code.type, code.stored, p.c + "[i]"));
}

void write_gather(Writer& w, const plan::GatherCode& code, std::string&) {
  const ElementType wide = code.wide ? ElementType::kInt64 : ElementType::kInt32;
  const std::string data = w.reads(code.data, code.type), index = w.reads(code.index, wide),
                    to = w.writes(code.to, code.type);
  Loops loops(w);
  loops.open({code.count});
  w.text().open("");
  w.text().line("int64_t at = {}[{}];", index, loops.offset({1}));
  w.text().line("if (at < 0) at += {};", code.n);
  w.text().line("if (at < 0 || at >= {}) return {};", code.n, w.error("INDEX_OUT_OF_RANGE"));
  Loops outer(w, "o");
  outer.open({code.outer});
  const auto join = [](const std::string& x, const std::string& y) {
    return x == "0" ? y : y == "0" ? x : x + " + " + y;
  };
  const std::string from_at = join(outer.offset({code.n * code.row}), times("(ptrdiff_t)at", code.row));
  const std::string to_at = join(outer.offset({code.count * code.row}), loops.offset({code.row}));
  if (code.row == 1) {
    w.text().line("{}[{}] = {}[{}];", to, to_at, data, from_at);
  } else {
    w.text().line("{}",
                  w.copy(plus(to, to_at), plus(data, from_at), static_cast<size_t>(code.row) * byte_width(code.type)));
  }
  outer.close();
  w.text().close();
  loops.close();
}

}  // namespace treadle::c

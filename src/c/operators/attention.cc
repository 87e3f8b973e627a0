// Attention and SinkAttention (ops/attention/run.cc): blocks of rows of queries, as the kernel's state describes them.

#include "ops/attention/attention.h"

#include <limits>

#include "c/sums.h"
#include "c/writer.h"

namespace treadle::c {

namespace {

using attention::Cache;
using attention::Heads;
using attention::Stage;
using attention::State;
using kernels::ElementwiseOp;

// f(x, step, rows, n, y): rows of n elements, `step` apart, as rows of another type next to each other.
std::string rows_function(Functions& f, ElementType from, ElementType to) {
  return f.get(fmt::format("rows_{}_to_{}", suffix(from), suffix(to)), [&](Text& text, const std::string& name) {
    text.open("static void {}(const {} *x, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t n, {} *restrict y)", name,
              stored(from), stored(to));
    text.open("for (ptrdiff_t i = 0; i < rows; ++i)");
    text.line("for (ptrdiff_t k = 0; k < n; ++k) y[i * n + k] = {};", f.converted(from, to, "x[i * step + k]"));
    text.close();
    text.close();
  });
}

// f(row, n, cap): cap * tanh(row / cap).
std::string cap_function(Functions& f, ElementType type) {
  const std::string tanh = f.operation(ElementwiseOp::kTanh, type);
  return f.get(fmt::format("cap_{}", suffix(type)), [&](Text& text, const std::string& name) {
    text.open("static void {0}({1} *row, ptrdiff_t n, {1} cap)", name, stored(type));
    text.line("for (ptrdiff_t i = 0; i < n; ++i) row[i] = {}(row[i] / cap) * cap;", tanh);
    text.close();
  });
}

// f(row, mask, n): adds a mask of numbers, or bars what a mask of truths bars. Whether it leaves any key.
std::string mask_function(Functions& f, ElementType type, ElementType mask) {
  return f.get(fmt::format("mask_{}_{}", suffix(mask), suffix(type)), [&](Text& text, const std::string& name) {
    text.open("static int {}({} *restrict row, const {} *mask, ptrdiff_t n)", name, stored(type), stored(mask));
    text.line("int left = 0;");
    text.open("for (ptrdiff_t i = 0; i < n; ++i)");
    if (mask == ElementType::kBool) {
      text.line("left |= mask[i] != 0;");
      text.line("row[i] = mask[i] != 0 ? row[i] : ({})(-1.0 / 0.0);", stored(type));
    } else {
      text.line("const {} added = {};", stored(type), f.converted(mask, type, "mask[i]"));
      text.line("left |= added != ({})(-1.0 / 0.0);", stored(type));
      text.line("row[i] = row[i] + added;");
    }
    text.close();
    text.line("return left;");
    text.close();
  });
}

// f(row, begin, end, value)
std::string fill_function(Functions& f, ElementType type) {
  return f.get(fmt::format("fill_{}", suffix(type)), [&](Text& text, const std::string& name) {
    text.open("static void {0}({1} *row, ptrdiff_t begin, ptrdiff_t end, {1} value)", name, stored(type));
    text.line("for (ptrdiff_t i = begin; i < end; ++i) row[i] = value;");
    text.close();
  });
}

class Attention {
 public:
  Attention(const State& s, Functions& f) : s_(s), f_(f), t_(stored(s.wide)) {}

  // Writes the function and calls it.
  void write(const Call& call) {
    std::vector<std::string> given;
    const auto argument = [&](bool is_used, std::string type, const char* name, const std::string& value) {
      if (!is_used) return;
      parameters_ += fmt::format("{}{} *{}", parameters_.empty() ? "" : ", ", type, name);
      given.push_back(value);
    };
    const auto input = [&](size_t i, bool is_used, const char* name) {
      if (is_used) argument(true, fmt::format("const {}", stored(call.type(i))), name, call.in(i));
    };
    const auto output = [&](size_t i, bool is_used, const char* name) {
      if (is_used) argument(true, std::string(stored(call.result(i))), name, call.out(i));
    };
    input(attention::kQuery, true, "q");
    input(attention::kKey, true, "k");
    input(attention::kValue, true, "v");
    input(attention::kMask, s_.has_mask, "mask");
    input(attention::kPastKey, s_.keys.past > 0, "past_k");
    input(attention::kPastValue, s_.values.past > 0, "past_v");
    input(attention::kValidLength, s_.has_lengths, "lengths");
    input(attention::kSink, s_.has_sinks, "sinks");
    output(attention::kResult, true, "y");
    output(attention::kPresentKey, s_.keys.present != 0, "present_k");
    output(attention::kPresentValue, s_.values.present != 0, "present_v");
    output(attention::kScores, s_.has_scores, "shown");
    const std::string name = f_.get_alike(fmt::format("attention_{}", suffix(s_.query.type)),
                                          [&](Text& text, const std::string& full) { write_function(text, full); });
    given.push_back(fmt::format("({} *)(void *){}", t_, call.writer.scratch(room_ * byte_width(s_.wide))));
    std::string list;
    for (const std::string& value : given) list += (list.empty() ? "" : ", ") + value;
    call.writer.text().line("{}({});", name, list);
  }

 private:
  bool uses_positions() const { return s_.causal || s_.left >= 0 || s_.right >= 0; }
  bool is_limited() const { return uses_positions() || s_.has_lengths; }
  bool joined() const { return s_.query.nested() && s_.result.nested(); }
  int64_t group() const { return s_.query.heads / s_.keys.fresh.heads; }
  std::string number(double value) const {
    return s_.wide == ElementType::kDouble ? literal(value) : literal(static_cast<float>(value));
  }
  std::string infinity() const { return number(-std::numeric_limits<double>::infinity()); }

  // Names a part of the scratch.
  void part(Text& text, const char* name, int64_t elements) {
    constexpr size_t kStep = 16;
    text.line("{} *const {} = scratch + {};", t_, name, room_);
    room_ += (static_cast<size_t>(elements) + kStep - 1) / kStep * kStep;
  }

  void write_function(Text& text, const std::string& name) {
    room_ = 0;
    const int64_t total = s_.keys.total();
    text.open("static void {}({}, {} *scratch)", name, parameters_, t_);
    part(text, "keys", total * s_.query.size);
    part(text, "scores", s_.block * s_.score_step);
    if (!s_.values.in_place && !s_.values.in_present) part(text, "values", total * s_.result.size);
    if (s_.query.type != s_.wide) part(text, "queries", s_.block * s_.query.size);
    if (s_.result.type != s_.wide) part(text, "sums", s_.block * s_.result.size);
    text.open("for (ptrdiff_t b = 0; b < {}; ++b)", s_.batch);
    if (s_.has_lengths) {
      text.line("const ptrdiff_t valid = lengths[b] < 0 ? 0 : lengths[b] > {0} ? {0} : (ptrdiff_t)lengths[b];", total);
      if (uses_positions()) text.line("const ptrdiff_t first = valid - {};", s_.query.length);
    }
    text.open("for (ptrdiff_t h = 0; h < {}; ++h)", s_.keys.fresh.heads);
    gather(text, s_.keys, "k", true);
    gather(text, s_.values, "v", false);
    const bool splits = !joined() && group() > 1;
    const int64_t rows = s_.query.length * (splits ? 1 : group());
    if (splits) text.open("for (ptrdiff_t g = 0; g < {}; ++g)", group());
    text.open("for (ptrdiff_t row = 0; row < {}; row += {})", rows, s_.block);
    if (rows % s_.block == 0) {
      text.line("const ptrdiff_t rows = {};", s_.block);
    } else {
      text.line("const ptrdiff_t rows = {0} - row < {1} ? {0} - row : {1};", rows, s_.block);
    }
    text.line("const ptrdiff_t head = h * {}{};", group(), splits ? " + g" : "");
    write_block(text);
    text.close();
    if (splits) text.close();
    text.close();
    text.close();
    text.close();
  }

  static std::string at(const Heads& h, std::string_view head) {
    return fmt::format("b * {} + {} * {}", h.batch_stride, head, h.head_stride);
  }

  // The rows of a head: to the present output, and to where products read them.
  void gather(Text& text, const Cache& c, std::string_view name, bool columns) {
    const ElementType type = c.fresh.type;
    const int64_t size = c.fresh.size, total = c.total();
    const std::string fresh = fmt::format("{} + {}", name, at(c.fresh, "h"));
    const std::string head = fmt::format("(b * {} + h)", c.fresh.heads);
    const std::string past = fmt::format("past_{} + {} * {}", name, head, c.past * size);
    const std::string_view w = columns ? "keys" : "values";
    if (c.present != 0) {
      text.line("{} *const new_{} = present_{} + {} * {};", stored(type), name, name, head, total * size);
      if (c.past > 0) text.line("memcpy(new_{}, {}, {});", name, past, c.past * size * width(type));
      const std::string to = c.past > 0 ? fmt::format("new_{} + {}", name, c.past * size) : fmt::format("new_{}", name);
      text.line("{}({}, {}, {}, {}, {});", rows_function(f_, type, type), fresh, c.fresh.row_stride, c.fresh.length,
                size, to);
    }
    if (columns) {
      const std::string function = columns_function(f_, type, s_.wide);
      if (c.past > 0) text.line("{}({}, {}, {}, {}, {}, {});", function, past, size, c.past, size, w, total);
      text.line("{}({}, {}, {}, {}, {} + {}, {});", function, fresh, c.fresh.row_stride, c.fresh.length, size, w,
                c.past, total);
    } else if (c.in_place) {
      text.line("const {} *const {} = {};", t_, w, fresh);
    } else if (c.in_present) {
      text.line("const {} *const {} = new_{};", t_, w, name);
    } else {
      const std::string function = rows_function(f_, type, s_.wide);
      if (c.past > 0) text.line("{}({}, {}, {}, {}, {});", function, past, size, c.past, size, w);
      text.line("{}({}, {}, {}, {}, {} + {});", function, fresh, c.fresh.row_stride, c.fresh.length, size, w,
                c.past * size);
    }
  }
  static int64_t width(ElementType type) { return static_cast<int64_t>(byte_width(type)); }

  // Lines `begin` and `end` of the keys that row i of the block attends.
  void write_ranges(Text& text) {
    const int64_t total = s_.keys.total();
    text.line("/* The keys that each row attends, and those that any row attends. */");
    text.line("ptrdiff_t begins[{0}], ends[{0}], least = {1}, most = 0;", s_.block, total);
    text.open("for (ptrdiff_t i = 0; i < rows; ++i)");
    if (uses_positions()) {
      text.line("const ptrdiff_t query = (row + i) % {};", s_.query.length);
      const std::string first = s_.from_zero ? "(first > 0 ? first : 0)" : "first";
      text.line("const ptrdiff_t position = query + {};", s_.has_lengths ? first : std::to_string(s_.keys.past));
    }
    text.line("ptrdiff_t begin = 0, end = {};", total);
    if (s_.left >= 0) {
      text.line("begin = position - {0};", s_.left);
      text.line("begin = begin < 0 ? 0 : begin > {0} ? {0} : begin;", total);
    }
    if (s_.causal) {
      text.line("if ({}position + 1 < end) end = position + 1;",
                s_.last_sees_all ? fmt::format("query != {} && ", s_.query.length - 1) : "");
    }
    if (s_.right >= 0) {
      text.line("if (position < {} && position + {} < end) end = position + {};", total - s_.right, s_.right + 1,
                s_.right + 1);
    }
    if (s_.has_lengths) text.line("if (valid < end) end = valid;");
    text.line("if (end < begin) end = begin;");
    text.line("if (begin < end && begin < least) least = begin;");
    text.line("if (begin < end && end > most) most = end;");
    text.line("begins[i] = begin, ends[i] = end;");
    text.close();
    text.line("if (least > most) least = most;");
  }

  std::string product(std::string_view a, int64_t a_row, std::string_view b, std::string_view b_at, int64_t b_row,
                      std::string_view c, int64_t c_row, std::string_view n, std::string_view k) {
    // The last block may have fewer rows than a tile.
    std::string multiply = product_function(f_, s_.wide, 1);
    if (s_.query.length >= kProductRows) {
      multiply =
          fmt::format("(rows < {} ? {} : {})", kProductRows, multiply, product_function(f_, s_.wide, kProductRows));
    }
    return fmt::format("{}({}, {}, 1, {}{}, {}, {}, {}, rows, {}, {});", multiply, a, a_row, b, b_at, b_row, c, c_row,
                       n, k);
  }
  // Few columns have sums of their own (kernels/gemm.h).
  void dots(Text& text, int64_t columns, std::string_view a, int64_t a_row, std::string_view b, int64_t b_row,
            std::string_view c, int64_t c_row, std::string_view k) {
    text.open("for (ptrdiff_t i = 0; i < rows; ++i)");
    text.line("for (ptrdiff_t j = 0; j < {}; ++j) {}[i * {} + j] = {}({} + i * {}, 1, {} + j, {}, {});", columns, c,
              c_row, dot_function(f_, s_.wide), a, a_row, b, b_row, k);
    text.close();
  }

  void write_block(Text& text) {
    const int64_t total = s_.keys.total(), size = s_.query.size;
    const bool limited = is_limited();
    if (limited) write_ranges(text);
    // --- scores
    const bool whole = !limited || s_.has_scores;
    int64_t q_step = s_.query.step();
    text.line("const {} *const q_at = q + {} + row * {};", stored(s_.query.type), at(s_.query, "head"), q_step);
    std::string q = "q_at";
    if (s_.query.type != s_.wide) {
      text.line("{}(q_at, {}, rows, {}, queries);", rows_function(f_, s_.query.type, s_.wide), q_step, size);
      q = "queries", q_step = size;
    }
    if (total <= kernels::kGemmDotColumns) {
      dots(text, total, q, q_step, "keys", total, "scores", s_.score_step, std::to_string(size));
    } else if (whole) {
      text.line("{}", product(q, q_step, "keys", "", total, "scores", s_.score_step, std::to_string(total),
                              std::to_string(size)));
    } else {
      text.line("{}", product(q, q_step, "keys", " + least", total, "scores + least", s_.score_step, "most - least",
                              std::to_string(size)));
    }
    // --- probabilities
    text.open("for (ptrdiff_t i = 0; i < rows; ++i)");
    text.line("{} *const scores_i = scores + i * {};", t_, s_.score_step);
    if (limited) {
      text.line("const ptrdiff_t begin = begins[i], end = ends[i];");
    } else {
      text.line("const ptrdiff_t begin = 0, end = {};", total);
    }
    if (const std::string scale = number(s_.scale); scale != number(1)) {
      text.line("for (ptrdiff_t j = {}; j < {}; ++j) scores_i[j] *= {};", whole ? "0" : "begin",
                whole ? std::to_string(total) : "end", scale);
    }
    write_row(text, limited);
    text.close();
    // --- values
    const std::string from = limited ? " + least" : "", k = limited ? "most - least" : std::to_string(total);
    const int64_t step = s_.result.step(), width = s_.result.size;
    const int64_t value_step = s_.values.in_place ? s_.values.fresh.row_stride : width;
    const bool narrows = s_.result.type != s_.wide;
    text.line("{} *const y_at = y + {} + row * {};", stored(s_.result.type), at(s_.result, "head"), step);
    const std::string sums = narrows ? "sums" : "y_at";
    const int64_t sum_step = narrows ? width : step;
    const std::string values_at = limited ? fmt::format(" + least * {}", value_step) : "";
    if (width <= kernels::kGemmDotColumns) {
      dots(text, width, "scores" + from, s_.score_step, "values" + values_at, value_step, sums, sum_step, k);
    } else {
      text.line("{}", product("scores" + from, s_.score_step, "values", values_at, value_step, sums, sum_step,
                              std::to_string(width), k));
    }
    if (narrows) {
      text.open("for (ptrdiff_t i = 0; i < rows; ++i)");
      text.line("{}(sums + i * {}, 0, 1, {}, y_at + i * {});", rows_function(f_, s_.wide, s_.result.type), width, width,
                step);
      text.close();
    }
  }

  // One row of scores becomes probabilities.
  void write_row(Text& text, bool limited) {
    const int64_t total = s_.keys.total(), length = s_.query.length;
    const bool shows = s_.has_scores;
    const auto fill = [&](const std::string& first, const std::string& last, const std::string& value) {
      text.line("{}(scores_i, {}, {}, {});", fill_function(f_, s_.wide), first, last, value);
    };
    const bool own_head = joined() && group() > 1;
    const bool needs_head = (s_.has_mask && s_.mask_strides[1] != 0) || s_.has_sinks || shows;
    const bool needs_query = (s_.has_mask && s_.mask_strides[2] != 0) || shows;
    if (needs_head) {
      text.line("const ptrdiff_t head_i = head{};", own_head ? fmt::format(" + (row + i) / {}", length) : "");
    }
    if (needs_query)
      text.line("const ptrdiff_t query_i = row + i{};",
                own_head ? fmt::format(" - (row + i) / {0} * {0}", length) : "");
    const auto show = [&](Stage stage) {
      if (!shows || s_.stage != stage) return;
      text.line("{}(scores_i, 0, 1, {}, shown + ((b * {} + head_i) * {} + query_i) * {});",
                rows_function(f_, s_.wide, s_.query.type), total, s_.query.heads, length, total);
    };
    const auto fill_rest = [&](const std::string& first, const std::string& last, const std::string& value) {
      fill(first, "begin", value);
      fill("end", last, value);
    };
    show(Stage::kProduct);
    if (s_.softcap > 0) {
      const std::string cap = cap_function(f_, s_.wide);
      if (shows) {
        text.line("{}(scores_i, {}, {});", cap, total, number(s_.softcap));
      } else {
        text.line("{}(scores_i + begin, end - begin, {});", cap, number(s_.softcap));
      }
    }
    show(Stage::kCapped);
    if (s_.has_mask) {
      std::string from = "mask";
      constexpr const char* kIndices[] = {"b", "head_i", "query_i"};
      for (size_t d = 0; d < 3; ++d) {
        if (s_.mask_strides[d] != 0) from += fmt::format(" + {} * {}", kIndices[d], s_.mask_strides[d]);
      }
      std::string end = "end";
      if (s_.mask_length < total) {
        text.line("const ptrdiff_t covered = end < {0} ? end : begin < {0} ? {0} : begin;", s_.mask_length);
        end = "covered";
      }
      text.line("const int attends = {}(scores_i + begin, {} + begin, {} - begin);",
                mask_function(f_, s_.wide, s_.mask_type), from, end);
      if (s_.mask_length < total) fill("covered", "end", infinity());
    }
    if (shows && (s_.stage == Stage::kBiased || s_.stage == Stage::kAttended)) {
      if (limited) fill_rest("0", std::to_string(total), s_.stage == Stage::kBiased ? infinity() : "0");
      show(s_.stage);
    }
    const std::string softmax = softmax_function(f_, s_.wide);
    std::string attends = s_.has_mask ? "attends" : limited ? "begin < end" : "";
    if (attends.empty() && total == 0) attends = "begin < end";
    if (!attends.empty()) text.open("if ({})", attends);
    if (s_.has_sink) {
      text.line("/* The score of a key without a value */");
      text.line("scores_i[end] = {};",
                s_.has_sinks ? f_.converted(s_.query.type, s_.wide, "sinks[head_i]") : std::string("0"));
    }
    text.line("{0}(scores_i + begin, scores_i + begin, scores_i + begin, end - begin{1});", softmax,
              s_.has_sink ? " + 1" : "");
    if (!attends.empty()) {
      if (s_.has_mask) {
        text.otherwise();
        fill("begin", "end", "0");
      }
      text.close();
    }
    if (limited) fill_rest(shows ? "0" : "least", shows ? std::to_string(total) : "most", "0");
    show(Stage::kProbabilities);
  }

  const State& s_;
  Functions& f_;
  std::string_view t_;
  std::string parameters_;
  size_t room_ = 0;  // elements of scratch that are taken
};

void write_attention(const Call& call, std::string& why) {
  if (call.call.kernel.run != attention::run_attention) {
    why = "its kernel is not the one that C follows";
    return;
  }
  const auto& s = *static_cast<const State*>(call.call.kernel.state);
  if (s.units() == 0 || s.query.heads == 0) return;
  Attention(s, call.writer.functions()).write(call);
}

constexpr OperatorRow kRows[] = {{"Attention", "", write_attention}, {"SinkAttention", "treadle", write_attention}};

}  // namespace

std::span<const OperatorRow> attention_operators() {
  return kRows;
}

}  // namespace treadle::c

// The products and lengths of recurrences over sequences of different lengths: RaggedGemm (ops/math/gemm.cc),
// SequenceLengths (ops/control/sequence_lengths.cc).

#include <cstring>
#include <vector>

#include "c/sums.h"
#include "c/writer.h"
#include "kernels/convert.h"
#include "kernels/gemm.h"
#include "op/op_def.h"

namespace treadle::c {

namespace {

void write_sequence_lengths(const Call& call, std::string&) {
  Writer& w = call.writer;
  Text& text = w.text();
  const Dims dims = call.dims(0);
  const int64_t count = product(dims, 0, dims.size());
  if (count == 0) return;
  text.open("for (ptrdiff_t b = 0; b < {}; ++b)", count);
  text.line("const int64_t n = {}[b];", call.in(0));
  text.line("if (n < 0 || n > {}[0]) return {};", call.in(1), w.error("SEQUENCE_LENGTH"));
  text.line("{}[b] = n;", call.out());
  text.close();
}

// The right factor with rows that are contiguous, [k, n]. Its columns are stored as rows.
std::string turned(const Call& call, ElementType wide, int64_t k, int64_t n) {
  Writer& w = call.writer;
  if (const Tensor* constant = call.constant(1)) {
    const size_t width = byte_width(wide), count = static_cast<size_t>(k * n);
    std::vector<std::byte> from(count * width), to(count * width);
    kernels::cast(constant->type(), wide, constant->raw(), from.data(), count);
    for (int64_t p = 0; p < k; ++p) {
      for (int64_t j = 0; j < n; ++j) {
        std::memcpy(to.data() + static_cast<size_t>(p * n + j) * width,
                    from.data() + static_cast<size_t>(j * k + p) * width, width);
      }
    }
    return w.table("weights", wide, to.data(), count);
  }
  const std::string name = w.variable("turned");
  w.text().line("{} *const {} = {};", stored(wide), name, room(w, wide, k * n));
  w.text().line("for (ptrdiff_t i = 0; i < {0}; ++i) {1}[i % {2} * {3} + i / {2}] = {4};", k * n, name, k, n,
                w.converted(call.type(1), wide, call.in(1) + "[i]"));
  return name;
}

void write_ragged_gemm(const Call& call, std::string& why) {
  enum Input : size_t { kA, kB, kC, kLengths };
  Writer& w = call.writer;
  Functions& f = w.functions();
  Text& text = w.text();
  const auto& attributes = call.node.attributes;
  const Dims out = call.result_dims(), lengths = call.dims(kLengths);
  const int64_t m = out[0], n = out[1], k = call.dims(kA)[1], entries = product(lengths, 0, lengths.size());
  const bool is_plain = attributes.get_int("transA") == 0 && attributes.get_int("transB") == 1 &&
                        attributes.get_float("alpha") == 1 && attributes.get_float("beta") == 1;
  if (!is_plain || (call.has_input(kC) && call.dims(kC) != Dims{n})) {
    why = "its factors or its addend are scaled or turned";
    return;
  }
  if (m * n == 0) return;
  const ElementType type = call.result(), wide = wide_type(type);
  const std::string_view t = stored(wide);
  text.open("");
  const std::string a = operand(call, kA, wide, "wide_a"), bias = operand(call, kC, wide, "wide_bias");
  std::string y = call.out();
  if (type != wide) {
    y = w.variable("wide_y");
    text.line("{} *const {} = {};", t, y, room(w, wide, m * n));
  }
  // Rows are steps of all entries; those behind the longest entry are zeros.
  const std::string rows = w.variable("rows");
  text.line("ptrdiff_t {} = 0;", rows);
  text.line("for (ptrdiff_t b = 0; b < {0}; ++b) if ({1}[b] > {2}) {2} = (ptrdiff_t){1}[b];", entries,
            call.in(kLengths), rows);
  text.line("{} *= {};", rows, entries);
  text.line("if ({0} > {1}) {0} = {1};", rows, m);
  if (n <= kernels::kGemmDotColumns) {
    const std::string b = operand(call, kB, wide, "wide_b");
    text.line("for (ptrdiff_t i = 0; i < {0} * {1}; ++i)", rows, n);
    text.line("  {0}[i] = {1}({2} + i / {3} * {4}, 1, {5} + i % {3} * {4}, 1, {4});", y, dot_function(f, wide), a, n, k,
              b);
  } else {
    const std::string b = turned(call, wide, k, n);
    text.line("({0} < {1} ? {2} : {3})({4}, {5}, 1, {6}, {7}, {8}, {7}, {0}, {7}, {5});", rows, kProductRows,
              product_function(f, wide, 1), product_function(f, wide, kProductRows), a, k, b, n, y);
  }
  if (!bias.empty()) {
    text.line("for (ptrdiff_t i = 0; i < {0} * {1}; ++i) {2}[i] = {2}[i] + {3}[i % {1}];", rows, n, y, bias);
  }
  if (type != wide) {
    text.line("for (ptrdiff_t i = 0; i < {} * {}; ++i) {}[i] = {};", rows, n, call.out(),
              w.converted(wide, type, y + "[i]"));
  }
  text.line("memset({0} + {1} * {2}, 0, (size_t)({3} - {1}) * {4});", call.out(), rows, n, m,
            static_cast<size_t>(n) * byte_width(type));
  text.close();
}

constexpr OperatorRow kRows[] = {
    {"SequenceLengths", "treadle", write_sequence_lengths},
    {"RaggedGemm", "treadle", write_ragged_gemm},
};

}  // namespace

std::span<const OperatorRow> sequence_operators() {
  return kRows;
}

}  // namespace treadle::c

#include "kernels/normalize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/in_pieces.h"
#include "kernels/convert.h"
#include "kernels/costs.h"
#include "kernels/dispatch.h"
#include "kernels/isa/tables.h"
#include "kernels/reduce.h"

namespace treadle::kernels {

namespace {

constexpr size_t kBlock = kReduceBlock;
constexpr size_t kColumns = 128;

// The row functions of a float type whose compute type is T.
template <class T>
struct Rows {
  static constexpr bool kDouble = sizeof(T) == 8;
  static constexpr ComputeType kType = kDouble ? ComputeType::kF64 : ComputeType::kF32;
  static constexpr ElementType kStored = kDouble ? ElementType::kDouble : ElementType::kFloat;

  const KernelTable& table = kernels();

  void reduce(Term term, const T* x, size_t n, double* accumulator, const T* shift = nullptr) const {
    table.reduce.row[static_cast<int>(term)][static_cast<int>(kType)](x, n, accumulator, shift);
  }
  const ElementwiseRows& operator[](ElementwiseOp op) const {
    return table.elementwise[static_cast<int>(op)][static_cast<int>(kType)];
  }
  void exp(const T* x, const T* shift, T* y, size_t n, double* sum) const {
    table.reduce.exp_row[kDouble ? 1 : 0](x, shift, y, n, sum);
  }
};

// A row in memory, processed in blocks of the compute type.
template <class T>
struct Blocks {
  TileConverter load;
  TileConverter store;
  T* buffer;
  StopPoll& stop;

  // Calls f(position, elements) for pieces of a row of n elements; each piece except the last is whole blocks.
  template <class F>
  void in_blocks(size_t n, F f) const {
    const auto blocks = static_cast<int64_t>((n + kBlock - 1) / kBlock);
    in_pieces(blocks, costs::kNormalizedElementNs * kBlock, stop, [&](int64_t begin, int64_t end) {
      const size_t at = static_cast<size_t>(begin) * kBlock;
      f(at, std::min(n, static_cast<size_t>(end) * kBlock) - at);
    });
  }
  // Calls f(block, elements, position). The block is the row's own memory if that has type T.
  template <class F>
  void for_each(const void* row, size_t n, F f) const {
    const std::byte* from = static_cast<const std::byte*>(row);
    in_blocks(n, [&](size_t first, size_t elements) {
      if (load.step_count == 0) return f(reinterpret_cast<const T*>(from) + first, elements, first);
      for (size_t at = first; at < first + elements; at += kBlock) {
        const size_t count = std::min(first + elements - at, kBlock);
        convert(load, from + at * load.from_width, buffer, count);
        f(buffer, count, at);
      }
    });
  }
  // Calls f with a place for results as last argument, and stores the results to `out`.
  template <class F>
  void map(const void* row, void* out, size_t n, F f) const {
    std::byte* to = static_cast<std::byte*>(out);
    for_each(row, n, [&](const T* x, size_t count, size_t at) {
      if (load.step_count == 0) return f(x, count, reinterpret_cast<T*>(to) + at);
      f(x, count, buffer);
      convert(store, buffer, to + at * store.to_width, count);
    });
  }
};

template <class T>
void softmax_row(SoftmaxKind kind, const Rows<T>& rows, const Blocks<T>& blocks, const void* x, void* y, size_t n) {
  double largest = -HUGE_VAL;
  blocks.for_each(x, n, [&](const T* block, size_t count, size_t) { rows.reduce(Term::kMax, block, count, &largest); });
  const T shift = static_cast<T>(largest);
  double sum = 0;
  if (kind == SoftmaxKind::kLogSoftmax) {
    blocks.for_each(x, n,
                    [&](const T* block, size_t count, size_t) { rows.reduce(Term::kExp, block, count, &sum, &shift); });
    const T log_sum = static_cast<T>(std::log(sum));
    blocks.map(x, y, n, [&](const T* block, size_t count, T* out) {
      rows[ElementwiseOp::kSub].vs(block, &shift, out, count, nullptr);
      rows[ElementwiseOp::kSub].vs(out, &log_sum, out, count, nullptr);
    });
    return;
  }
  const bool direct = blocks.load.step_count == 0;
  if (direct) {
    T* const out = static_cast<T*>(y);
    blocks.for_each(x, n,
                    [&](const T* block, size_t count, size_t at) { rows.exp(block, &shift, out + at, count, &sum); });
    const T factor = static_cast<T>(1 / sum);
    blocks.in_blocks(
        n, [&](size_t at, size_t count) { rows[ElementwiseOp::kMul].vs(out + at, &factor, out + at, count, nullptr); });
    return;
  }
  blocks.for_each(x, n,
                  [&](const T* block, size_t count, size_t) { rows.reduce(Term::kExp, block, count, &sum, &shift); });
  const T factor = static_cast<T>(1 / sum);
  blocks.map(x, y, n, [&](const T* block, size_t count, T* out) {
    double unused = 0;
    rows.exp(block, &shift, out, count, &unused);
    rows[ElementwiseOp::kMul].vs(out, &factor, out, count, nullptr);
  });
}

// Softmax of `columns` columns of [n, inner]; each column is one softmax.
template <class T>
void softmax_columns(SoftmaxKind kind, const Rows<T>& rows, const Blocks<T>& blocks, const std::byte* x, std::byte* y,
                     size_t n, size_t inner, size_t columns) {
  T shift[kColumns];
  T scale[kColumns];
  double sum[kColumns] = {};
  const size_t stride = inner * blocks.load.from_width;
  const auto shifted = [&](const T* row, T* out) { rows[ElementwiseOp::kSub].vv(row, shift, out, columns, nullptr); };
  std::fill_n(shift, columns, static_cast<T>(-HUGE_VAL));
  const auto goes_on = [&] { return !blocks.stop.after(costs::kNormalizedElementNs * static_cast<double>(columns)); };
  for (size_t i = 0; i < n && goes_on(); ++i) {
    blocks.for_each(x + i * stride, columns, [&](const T* row, size_t, size_t) {
      rows[ElementwiseOp::kMax].vv(row, shift, shift, columns, nullptr);
    });
  }
  for (size_t i = 0; i < n && goes_on(); ++i) {
    blocks.for_each(x + i * stride, columns, [&](const T* row, size_t, size_t) {
      T exps[kColumns];
      shifted(row, exps);
      rows[ElementwiseOp::kExp].vv(exps, nullptr, exps, columns, nullptr);
      for (size_t c = 0; c < columns; ++c) sum[c] += static_cast<double>(exps[c]);
    });
  }
  const bool log = kind == SoftmaxKind::kLogSoftmax;
  for (size_t c = 0; c < columns; ++c) scale[c] = static_cast<T>(log ? std::log(sum[c]) : 1 / sum[c]);
  for (size_t i = 0; i < n && goes_on(); ++i) {
    blocks.map(x + i * stride, y + i * stride, columns, [&](const T* row, size_t, T* out) {
      shifted(row, out);
      if (!log) rows[ElementwiseOp::kExp].vv(out, nullptr, out, columns, nullptr);
      rows[log ? ElementwiseOp::kSub : ElementwiseOp::kMul].vv(out, scale, out, columns, nullptr);
    });
  }
}

template <class T>
void softmax_of(SoftmaxKind kind, ElementType type, const void* input, void* out, size_t outer, size_t n,
                size_t inner) {
  alignas(64) T buffer[kBlock];
  const Rows<T> rows;
  StopPoll stop;
  const Blocks<T> blocks{make_converter(type, Rows<T>::kStored), make_converter(Rows<T>::kStored, type), buffer, stop};
  const size_t width = byte_width(type);
  const std::byte* x = static_cast<const std::byte*>(input);
  std::byte* y = static_cast<std::byte*>(out);
  if (n == 0) return;
  if (inner == 1 && n <= kBlock && blocks.load.step_count == 0) {
    const auto run = rows.table.reduce.softmax_rows[kind == SoftmaxKind::kLogSoftmax ? 1 : 0][Rows<T>::kDouble ? 1 : 0];
    in_pieces(static_cast<int64_t>(outer), costs::kNormalizedElementNs * static_cast<double>(n), stop,
              [&](int64_t begin, int64_t end) {
                const size_t at = static_cast<size_t>(begin) * n * width;
                run(x + at, y + at, static_cast<size_t>(end - begin), n);
              });
    return;
  }
  for (size_t o = 0; o < outer; ++o, x += n * inner * width, y += n * inner * width) {
    if (inner == 1) {
      softmax_row(kind, rows, blocks, x, y, n);
      continue;
    }
    for (size_t c = 0; c < inner; c += kColumns) {
      softmax_columns(kind, rows, blocks, x + c * width, y + c * width, n, inner, std::min(inner - c, kColumns));
    }
  }
}

// --- normalisation of rows ---

template <class T>
struct Moments {
  T mean;
  T inv_std;
};

template <class T>
Moments<T> moments(const NormRows& norm, const Rows<T>& rows, const Blocks<T>& blocks, const void* x) {
  const double count = static_cast<double>(norm.n);
  T mean = 0;
  double squares = 0;
  if (norm.kind == NormKind::kLayer) {
    double sum = 0;
    blocks.for_each(x, norm.n, [&](const T* block, size_t n, size_t) { rows.reduce(Term::kSum, block, n, &sum); });
    mean = static_cast<T>(sum / count);
  }
  const Term term = norm.kind == NormKind::kLayer ? Term::kCenteredSquare : Term::kSquare;
  blocks.for_each(x, norm.n, [&](const T* block, size_t n, size_t) { rows.reduce(term, block, n, &squares, &mean); });
  return {mean, static_cast<T>(1 / std::sqrt(squares / count + norm.epsilon))};
}

// Scales by a type narrower than T: rounds to it after every operation.
template <class T>
struct NarrowScaling {
  const NormRows& norm;
  const Rows<T>& rows;
  TileConverter to_scale_type = make_converter(Rows<T>::kStored, norm.scale_type);
  TileConverter from_scale_type = make_converter(norm.scale_type, Rows<T>::kStored);

  void round(T* values, size_t n, std::byte* rounded) const {
    convert(to_scale_type, values, rounded, n);
    convert(from_scale_type, rounded, values, n);
  }

  // Scales the elements [at, at + n) of a row.
  void operator()(T* values, size_t at, size_t n, const void* scale, const void* bias, std::byte* y) const {
    alignas(64) std::byte rounded[kBlock * sizeof(T)];
    alignas(64) T operand[kBlock];
    const size_t width = to_scale_type.to_width;
    round(values, n, rounded);
    if (scale != nullptr) {
      convert(from_scale_type, static_cast<const std::byte*>(scale) + at * width, operand, n);
      rows[ElementwiseOp::kMul].vv(values, operand, values, n, nullptr);
      round(values, n, rounded);
    }
    if (bias != nullptr) {
      convert(from_scale_type, static_cast<const std::byte*>(bias) + at * width, operand, n);
      rows[ElementwiseOp::kAdd].vv(values, operand, values, n, nullptr);
    }
    convert(to_scale_type, values, y + at * width, n);
  }
};

// Rows of one block each in the compute type. Several rows are processed together, so that their roots and quotients
// overlap.
template <class T>
void normalize_short_rows(const NormRows& norm, const Rows<T>& rows, const T* x, const T* scale, const T* bias, T* y,
                          T* mean, T* inv_std) {
  constexpr size_t kRows = 16;
  const ReduceTable& reduce = rows.table.reduce;
  const auto sums = reduce.rows[static_cast<int>(Term::kSum)][static_cast<int>(Rows<T>::kType)];
  const auto normalize = reduce.norm_row[Rows<T>::kDouble ? 1 : 0];
  const size_t n = norm.n;
  const auto elements = static_cast<double>(n);
  StopPoll stop;
  for (size_t count, first = 0; first < norm.rows; first += count, x += count * n, y += count * n) {
    count = std::min(kRows, norm.rows - first);
    if (stop.after(3 * costs::kNormalizedElementNs * static_cast<double>(count * n))) return;
    T means[kRows], inverse[kRows];
    double squares[kRows] = {};
    sums(x, count, n, means);
    for (size_t r = 0; r < count; ++r) means[r] = static_cast<T>((0 + static_cast<double>(means[r])) / elements);
    for (size_t r = 0; r < count; ++r) rows.reduce(Term::kCenteredSquare, x + r * n, n, squares + r, means + r);
    for (size_t r = 0; r < count; ++r) inverse[r] = static_cast<T>(1 / std::sqrt(squares[r] / elements + norm.epsilon));
    for (size_t r = 0; r < count; ++r) normalize(x + r * n, means + r, inverse + r, scale, bias, y + r * n, n);
    if (mean != nullptr) std::copy_n(means, count, mean + first);
    if (inv_std != nullptr) std::copy_n(inverse, count, inv_std + first);
  }
}

template <class T>
void normalize_rows(const NormRows& norm, const void* x, const void* scale, const void* bias, void* y, void* mean,
                    void* inv_std) {
  alignas(64) T buffer[kBlock];
  alignas(64) T values[kBlock];
  const Rows<T> rows;
  StopPoll stop;
  const Blocks<T> blocks{make_converter(norm.type, Rows<T>::kStored), make_converter(Rows<T>::kStored, norm.type),
                         buffer, stop};
  const NarrowScaling<T> narrow{norm, rows};
  const auto normalize = rows.table.reduce.norm_row[Rows<T>::kDouble ? 1 : 0];
  const bool direct = blocks.load.step_count == 0 && norm.scale_type == norm.type;
  if (direct && norm.kind == NormKind::kLayer && norm.n >= 1 && norm.n <= kBlock) {
    return normalize_short_rows(norm, rows, static_cast<const T*>(x), static_cast<const T*>(scale),
                                static_cast<const T*>(bias), static_cast<T*>(y), static_cast<T*>(mean),
                                static_cast<T*>(inv_std));
  }
  const std::byte* from = static_cast<const std::byte*>(x);
  std::byte* to = static_cast<std::byte*>(y);
  for (size_t r = 0; r < norm.rows; ++r) {
    const Moments<T> row = moments(norm, rows, blocks, from);
    if (mean != nullptr) static_cast<T*>(mean)[r] = row.mean;
    if (inv_std != nullptr) static_cast<T*>(inv_std)[r] = row.inv_std;
    if (direct) {
      const auto at_element = [](const void* vector, size_t i) {
        return vector ? static_cast<const T*>(vector) + i : nullptr;
      };
      blocks.in_blocks(norm.n, [&](size_t at, size_t count) {
        normalize(at_element(from, at), &row.mean, &row.inv_std, at_element(scale, at), at_element(bias, at),
                  reinterpret_cast<T*>(to) + at, count);
      });
    } else {
      for (size_t at = 0; at < norm.n && !stop.after(costs::kNormalizedElementNs * kBlock); at += kBlock) {
        const size_t count = std::min(norm.n - at, kBlock);
        convert(blocks.load, from + at * byte_width(norm.type), buffer, count);
        normalize(buffer, &row.mean, &row.inv_std, nullptr, nullptr, values, count);
        narrow(values, at, count, scale, bias, to);
      }
    }
    from += norm.n * byte_width(norm.type);
    to += norm.n * byte_width(norm.scale_type);
  }
}

}  // namespace

void softmax(SoftmaxKind kind, ElementType type, const void* input, void* out, size_t outer, size_t n, size_t inner) {
  if (compute_type(type) == ComputeType::kF64) return softmax_of<double>(kind, type, input, out, outer, n, inner);
  softmax_of<float>(kind, type, input, out, outer, n, inner);
}

void NormRows::operator()(const void* x, const void* scale, const void* bias, void* y, void* mean,
                          void* inv_std) const {
  if (compute_type(type) == ComputeType::kF64) return normalize_rows<double>(*this, x, scale, bias, y, mean, inv_std);
  normalize_rows<float>(*this, x, scale, bias, y, mean, inv_std);
}

}  // namespace treadle::kernels

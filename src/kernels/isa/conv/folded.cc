// Convolution whose filters fold (kernels/fold.h): the values of an output position are split into sums and
// differences, row by row, and each list of them is multiplied with its filters as im2col.cc does with whole rows.
//
// Table: FoldedTable. Packed weights: the factors of the splits, the output channel of each column, the panels of each
// list's product.

#include "kernels/isa/conv/folded.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "kernels/fold.h"
#include "kernels/isa/conv/epilogue.h"
#include "kernels/isa/conv/windows.h"
#include "kernels/isa/entry.h"
#include "kernels/isa/gemm_pack.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {
namespace {

// Where a row's lists lie: those that are multiplied in the matrix of all rows, others in a place for one row.
struct FoldedTable {
  Fold fold;
  struct Destination {
    int64_t at = 0;
    bool is_kept = false;
  };
  struct Product {
    GemmPlan gemm;
    int64_t values_at = 0, first_filter = 0;
    size_t packed_at = 0;
  };

  std::array<Destination, Fold::kMostLists> places;
  std::array<Product, Fold::kMostLists> products;
  int product_count = 0;
  int64_t row = 0, passing = 0;  // elements that are kept of a row, elements of its other lists
  int64_t chunk = 0, rows = 0;
  size_t order_at = 0, packed_bytes = 0, gemm_scratch_bytes = 0;
};

size_t whole_lines(size_t bytes) {
  return (bytes + kKernelAlignment - 1) / kKernelAlignment * kKernelAlignment;
}

template <class T>
void place_lists(const Fold& fold, FoldedTable& table) {
  for (int i = 0; i < fold.list_count; ++i) {
    const Fold::List& list = fold.lists[static_cast<size_t>(i)];
    FoldedTable::Destination& place = table.places[static_cast<size_t>(i)];
    place.is_kept = list.filters > 0;
    int64_t& end = place.is_kept ? table.row : table.passing;
    place.at = end;
    end += static_cast<int64_t>(whole_lines(static_cast<size_t>(list.length * fold.channels) * sizeof(T)) / sizeof(T));
  }
}

template <class T>
FoldedTable folded_table(const ConvPlan& plan, const Fold& fold) {
  const ConvGeometry g(plan.shape);
  FoldedTable table;
  table.fold = fold;
  place_lists<T>(fold, table);
  table.rows = plan.shape.batch * g.out_channel();
  table.chunk = std::clamp<int64_t>((256 << 10) / (table.row * int64_t{sizeof(T)}), 16, 64);
  table.chunk = std::min(table.chunk, std::max<int64_t>(table.rows, 1));
  table.order_at = whole_lines(static_cast<size_t>(fold.factor_count) * sizeof(T));
  table.packed_bytes = whole_lines(table.order_at + static_cast<size_t>(plan.shape.out_channels) * sizeof(int32_t));
  for (int i = 0; i < fold.list_count; ++i) {
    const Fold::List& list = fold.lists[static_cast<size_t>(i)];
    if (list.filters == 0) continue;
    FoldedTable::Product& product = table.products[static_cast<size_t>(table.product_count++)];
    GemmShape s;
    s.m = table.chunk;
    s.n = list.filters;
    s.k = list.length * fold.channels;
    s.a_row = table.row;
    s.b_row = 1;
    s.b_col = s.k;
    s.b_packed = true;
    s.c_row = plan.shape.out_channels;
    product.gemm = TREADLE_ISA_NAMESPACE::prepare_gemm(plan.type, s);
    product.values_at = table.places[static_cast<size_t>(i)].at;
    product.first_filter = list.first_filter;
    product.packed_at = table.packed_bytes;
    table.packed_bytes += whole_lines(product.gemm.packed_b_bytes);
    table.gemm_scratch_bytes = std::max(table.gemm_scratch_bytes, whole_lines(product.gemm.scratch_bytes));
  }
  return table;
}

template <class T>
void pack_folded(const ConvPlan& plan, const void* weights, void* packed, StopPoll& stop) {
  const ConvGeometry g(plan.shape);
  const Bank bank =
      fold_filters(static_cast<const T*>(weights), plan.shape.out_channels, plan.shape.in_channels, g.taps);
  if (was_stopped()) return;
  const FoldedTable table = folded_table<T>(plan, bank.fold);
  auto* to = static_cast<std::byte*>(packed);
  std::copy(bank.factors.begin(), bank.factors.end(), reinterpret_cast<T*>(to));
  std::copy(bank.order.begin(), bank.order.end(), reinterpret_cast<int32_t*>(to + table.order_at));
  for (int i = 0; i < table.product_count; ++i) {
    const FoldedTable::Product& product = table.products[static_cast<size_t>(i)];
    std::vector<T> filters;
    for (int64_t f = 0; f < product.gemm.shape.n; ++f) {
      const std::vector<double>& w = bank.weights[static_cast<size_t>(product.first_filter + f)];
      if (stop.after(kPackedNs * static_cast<double>(w.size()))) return;
      filters.insert(filters.end(), w.begin(), w.end());
    }
    pack_b(product.gemm, filters.data(), to + product.packed_at, stop);
  }
}

// The lanes from the last one to the first.
template <class T>
typename Lanes<T>::V reversed(typename Lanes<T>::V v) {
  constexpr int kCount = Lanes<T>::kCount;
  typedef T Plain __attribute__((vector_size(kVectorBytes)));
  const Plain from = reinterpret_cast<Plain>(v);
  return [&]<size_t... kLane>(std::index_sequence<kLane...>) {
    return reinterpret_cast<typename Lanes<T>::V>(
        __builtin_shufflevector(from, from, (kCount - 1 - static_cast<int>(kLane))...));
  }(std::make_index_sequence<kCount>());
}

// One channel of one split; null: no filter wants it.
template <class T, bool kWeighted>
void fold_channel(const T* x, int64_t length, int64_t alone, const T* factors, T* sums, T* differences) {
  using L = Lanes<T>;
  const auto put = [&](int64_t i, T sum, T difference) {
    if (sums != nullptr) sums[i] = sum;
    if (differences != nullptr) differences[i] = difference;
  };
  if (alone != 0) put(0, x[0], x[0]);
  const int64_t pairs = (length - alone) / 2;
  const int64_t middle = alone + pairs;
  if (middle + pairs < length) put(middle, x[middle], x[middle]);
  const T* const last = x + length - 1;
  if (pairs < L::kCount) {
    for (int64_t i = 0; i < pairs; ++i) {
      const T first = kWeighted ? factors[i] * x[alone + i] : x[alone + i];
      const T second = kWeighted ? factors[pairs + i] * last[-i] : last[-i];
      put(alone + i, first + second, first - second);
    }
    return;
  }
  // The last vector is one that ends with the pairs.
  for (int64_t at = 0; at < pairs; at += L::kCount) {
    const int64_t i = std::min(at, pairs - L::kCount);
    auto first = L::load(x + alone + i);
    auto second = reversed<T>(L::load(last - i - (L::kCount - 1)));
    if constexpr (kWeighted) {
      first = L::mul(first, L::load(factors + i));
      second = L::mul(second, L::load(factors + pairs + i));
    }
    if (sums != nullptr) L::store(sums + alone + i, L::add(first, second));
    if (differences != nullptr) L::store(differences + alone + i, first - second);
  }
}

template <class T>
class FoldedRows {
 public:
  FoldedRows(const ConvPlan& plan, const ConvOperands& operands)
      : plan_(plan),
        g_(plan.shape),
        table_(*static_cast<const FoldedTable*>(operands.table)),
        fold_(table_.fold),
        operands_(operands),
        packed_(static_cast<const std::byte*>(operands.packed_weights)),
        order_(reinterpret_cast<const int32_t*>(packed_ + table_.order_at)),
        gemm_scratch_(static_cast<std::byte*>(operands.scratch)),
        kept_(reinterpret_cast<T*>(gemm_scratch_ + table_.gemm_scratch_bytes)),
        passing_(kept_ + table_.chunk * table_.row),
        results_(passing_ + table_.passing) {}

  void run(int64_t chunk) {
    const int64_t positions = g_.out_channel(), filters = plan_.shape.out_channels;
    const int64_t first = chunk * table_.chunk, end = std::min(first + table_.chunk, table_.rows);
    for (int64_t row = first; row < end; ++row) {
      const T* x = static_cast<const T*>(operands_.x) + row / positions * plan_.shape.in_channels * g_.in_channel();
      fill_row(x, row % positions, kept_ + (row - first) * table_.row);
    }
    for (int i = 0; i < table_.product_count; ++i) {
      const FoldedTable::Product& product = table_.products[static_cast<size_t>(i)];
      run_gemm_rows(product.gemm, end - first, kept_ + product.values_at, packed_ + product.packed_at, nullptr,
                    results_ + product.first_filter, gemm_scratch_);
    }
    for (int64_t row = first; row < end;) {
      const int64_t position = row % positions, count = std::min(end - row, positions - position);
      T* y = static_cast<T*>(operands_.y) + row / positions * filters * positions + position;
      store_rows(results_ + (row - first) * filters, count, y);
      row += count;
    }
  }

 private:
  static constexpr int64_t kSize = 16 / int64_t{sizeof(T)};  // elements that are transposed at once

  // All lists of one row.
  void fill_row(const T* x, int64_t position, T* kept) {
    const auto place = [&](int32_t list) -> T* {
      if (list < 0) return nullptr;
      const FoldedTable::Destination& p = table_.places[static_cast<size_t>(list)];
      return (p.is_kept ? kept : passing_) + p.at;
    };
    const T* whole = in_place(x, position);
    int64_t whole_pitch = g_.width.in;
    if (whole == nullptr) {
      if (!im2col_row(g_, x, position, T(0), place(0), stop_)) return;
      whole = place(0);
      whole_pitch = fold_.lists[0].length;
    }
    for (int i = 0; i < fold_.split_count; ++i) {
      const Fold::Split& split = fold_.splits[static_cast<size_t>(i)];
      const int64_t length = fold_.lists[static_cast<size_t>(split.from)].length;
      fold_list(split, split.from == 0 ? whole : place(split.from), split.from == 0 ? whole_pitch : length, length,
                place(split.sums), place(split.differences));
    }
  }

  // The window in the input, where the row does not have to be copied.
  const T* in_place(const T* x, int64_t position) const {
    if (table_.places[0].is_kept || g_.width.dilation != 1 || g_.outer_axes != 0 || g_.in_plane != g_.width.in ||
        g_.height.kernel != 1 || g_.height.out != 1 || g_.height.pad != 0) {
      return nullptr;
    }
    const int64_t at = g_.width.input_at(position, 0);
    return at >= 0 && at + g_.width.kernel <= g_.width.in ? x + at : nullptr;
  }

  void fold_list(const Fold::Split& split, const T* from, int64_t pitch, int64_t length, T* sums, T* differences) {
    const int64_t alone = split.first_alone, pairs = (length - alone) / 2, folded = length - pairs;
    const T* factors = split.factors < 0 ? nullptr : reinterpret_cast<const T*>(packed_) + split.factors;
    for (int64_t c = 0; c < fold_.channels; ++c, from += pitch) {
      if (factors == nullptr) {
        fold_channel<T, false>(from, length, alone, nullptr, sums, differences);
      } else {
        fold_channel<T, true>(from, length, alone, factors, sums, differences);
        factors += 2 * pairs;
      }
      if (sums != nullptr) sums += folded;
      if (differences != nullptr) differences += folded;
    }
  }

  // Rows of results, neighbours in y, to the channels of their columns.
  void store_rows(const T* results, int64_t count, T* y) {
    const int64_t filters = plan_.shape.out_channels, columns = filters / kSize * kSize;
    int64_t r = 0;
    for (; r + kSize <= count; r += kSize) {
      for (int64_t j = 0; j < columns; j += kSize) store_block(results + r * filters + j, j, y + r);
      for (int64_t i = 0; i < kSize; ++i) store_row(results + (r + i) * filters, columns, y + r + i);
    }
    for (; r < count; ++r) store_row(results + r * filters, 0, y + r);
  }

  void store_block(const T* results, int64_t column, T* y) {
    typedef T V __attribute__((vector_size(16)));
    T block[kSize * kSize];
    transpose_block(results, plan_.shape.out_channels, block, kSize);
    const T* bias = static_cast<const T*>(operands_.bias);
    for (int64_t i = 0; i < kSize; ++i) {
      const int64_t channel = order_[column + i];
      T* to = y + channel * g_.out_channel();
      V value;
      std::memcpy(&value, block + i * kSize, sizeof value);
      if (bias != nullptr) value += bias[channel];
      if (const T* addend = beside(operands_, to)) {
        V other;
        std::memcpy(&other, addend, sizeof other);
        value += other;
      }
      if (clamps_) {
        value = value < low_ ? V{} + low_ : value;
        value = value > high_ ? V{} + high_ : value;
      }
      std::memcpy(to, &value, sizeof value);
    }
  }

  // One row's columns from `column` on.
  void store_row(const T* results, int64_t column, T* y) {
    const T* bias = static_cast<const T*>(operands_.bias);
    for (int64_t j = column; j < plan_.shape.out_channels; ++j) {
      const int64_t channel = order_[j];
      T* to = y + channel * g_.out_channel();
      T value = results[j];
      if (bias != nullptr) value += bias[channel];
      if (const T* addend = beside(operands_, to)) value += *addend;
      *to = value < low_ ? low_ : value > high_ ? high_ : value;
    }
  }

  const ConvPlan& plan_;
  ConvGeometry g_;
  const FoldedTable& table_;
  const Fold& fold_;
  const ConvOperands& operands_;
  StopPoll stop_;
  const std::byte* packed_;
  const int32_t* order_;
  std::byte* gemm_scratch_;
  T* kept_;
  T* passing_;
  T* results_;
  const T low_ = static_cast<T>(plan_.clamp.low), high_ = static_cast<T>(plan_.clamp.high);
  const bool clamps_ = clamps(plan_.clamp);
};

template <class T>
void run_folded(const ConvPlan& plan, const ConvOperands& operands, int64_t begin, int64_t end) {
  FoldedRows<T> rows(plan, operands);
  for (int64_t chunk = begin; chunk < end; ++chunk) rows.run(chunk);
}

template <class T>
void prepare_folded(ConvPlan& plan, const Fold& fold) {
  const FoldedTable table = folded_table<T>(plan, fold);
  plan.method = plan.packing = kFoldedMethod;
  plan.units = (table.rows + table.chunk - 1) / table.chunk;
  plan.packed_weight_bytes = table.packed_bytes;
  plan.scratch_bytes =
      table.gemm_scratch_bytes +
      static_cast<size_t>(table.chunk * (table.row + plan.shape.out_channels) + table.passing) * sizeof(T);
  plan.table_bytes = sizeof(FoldedTable);
  plan.run = run_folded<T>;
  plan.pack = pack_folded<T>;
  plan.make_table = nullptr;
}

}  // namespace

void fold_conv(ConvPlan& plan, const Fold& fold) {
  plan.type == ComputeType::kF64 ? prepare_folded<double>(plan, fold) : prepare_folded<float>(plan, fold);
}

void make_folded_table(const ConvPlan& plan, const Fold& fold, void* table) {
  new (table)
      FoldedTable(plan.type == ComputeType::kF64 ? folded_table<double>(plan, fold) : folded_table<float>(plan, fold));
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE

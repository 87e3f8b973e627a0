// 8-bit products. Rows of A are converted, a block at a time, to the order that the tile reads, or read in place. B is
// in panels (qgemm_pack.h). A' and B' are the matrices that the tile multiplies. Each sum then needs zero-point
// corrections; subtract
//   - (b_zero of B') * sum over the row of (a - a_zero)       if that zero point is not 0
//   - (a_zero of A') * sum over the column of B'              except for kPairs, which subtracts a_zero from A

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/in_pieces.h"
#include "kernels/costs.h"
#include "kernels/isa/entry.h"
#include "kernels/isa/qgemm_epilogue.h"
#include "kernels/isa/qgemm_pack.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {
namespace {

constexpr int64_t kBlockBytes = 24 << 10;  // converted rows, which stay in the cache while panels pass
constexpr int64_t kMostBlockRows = 96;

template <QScheme kScheme>
int64_t block_rows(const QLayout<kScheme>& layout, int64_t m) {
  const int64_t tiles = std::max<int64_t>(kBlockBytes / (kIntRows<kScheme> * std::max<int64_t>(layout.a_bytes, 1)), 1);
  return std::min({tiles * kIntRows<kScheme>, kMostBlockRows, std::max<int64_t>(m, 1)});
}

template <QScheme kScheme>
class QGemm {
 public:
  // `overflows`: the parts of weights that were cut from panels of kFitted; `ends`: the end of each panel's overflows.
  QGemm(const QGemmPlan& plan, const QGemmOperands& operands, const QGemmEpilogue& epilogue, const void* packed,
        const int32_t* ends = nullptr, const QOverflow* overflows = nullptr)
      : shape_(plan.shape),
        layout_(plan.shape),
        operands_(operands),
        panel_epilogue_(plan.shape, operands, epilogue),
        ends_(ends),
        overflows_(overflows),
        sums_rows_(has_column_zeros(plan.shape, operands.b_zero)),
        in_place_(kScheme != QScheme::kPairs && shape_.a_col == 1 && !shape_.a_signed && shape_.k % 4 == 0) {
    std::byte* scratch = static_cast<std::byte*>(operands.scratch);
    rows_ = scratch;
    row_bytes_ = in_place_ ? shape_.a_row : layout_.a_bytes;
    packed_ = static_cast<const std::byte*>(packed);
    if (packed_ == nullptr) packed_ = scratch + block_rows(layout_, shape_.m) * layout_.a_bytes;
  }

  void run(const GemmRange& range) {
    if (range.row_end <= range.row_begin || range.column_end <= range.column_begin) return;
    if (!shape_.b_packed) {
      StopPoll stop;
      pack_qpanels<kScheme>(shape_, operands_.b, const_cast<std::byte*>(packed_), range.column_begin / kIntPanel,
                            (range.column_end + kIntPanel - 1) / kIntPanel, stop);
    }
    const int64_t most = block_rows(layout_, shape_.m);
    for (int64_t i = range.row_begin; i < range.row_end; i += most) {
      run_block(i, std::min(most, range.row_end - i), range);
      if (stopped_) return;
    }
  }

 private:
  void run_block(int64_t i, int64_t rows, const GemmRange& range) {
    if (in_place_) {
      const void* first = static_cast<const uint8_t*>(operands_.a) + i * shape_.a_row;
      rows_ = static_cast<std::byte*>(const_cast<void*>(first));
    }
    for (int64_t r = 0; r < rows && !stopped_; ++r) convert_row(i + r, r);
    for (int64_t j = range.column_begin; j < range.column_end; j += kIntPanel) {
      const int64_t panel = j / kIntPanel;
      panel_epilogue_.panel(j, std::min<int64_t>(kIntPanel, range.column_end - j),
                            reinterpret_cast<const int32_t*>(packed_) + j);
      // Cuts the rows into tiles whose heights differ by at most one.
      int64_t tiles = (rows + kIntRows<kScheme> - 1) / kIntRows<kScheme>;
      for (int64_t r = 0; r < rows; --tiles) {
        if (stopped_) return;
        const int64_t height = (rows - r + tiles - 1) / tiles;
        run_tile(i, r, height, panel);
        r += height;
      }
    }
  }

  void run_tile(int64_t i, int64_t r, int64_t height, int64_t panel) {
    alignas(kKernelAlignment) int32_t sums[kIntRows<kScheme> * kIntPanel];
    const int8_t* b = reinterpret_cast<const int8_t*>(packed_) + layout_.sums_bytes + panel * layout_.panel_bytes;
    const std::byte* a = rows_ + r * row_bytes_;
    multiply(a, b, height, sums);
    if constexpr (kScheme == QScheme::kFitted) {
      const QOverflow* first = overflows_ + (panel == 0 ? 0 : ends_[panel - 1]);
      add_overflows(first, overflows_ + ends_[panel], reinterpret_cast<const uint8_t*>(a), row_bytes_, height, sums);
    }
    panel_epilogue_.rows(sums, a_rows_ + r, i + r, height);
  }

  // Multiplies a tile over all steps. Many steps are cut into pieces, whose sums are added: sums are integers, so the
  // order does not matter.
  void multiply(const std::byte* a, const int8_t* b, int64_t height, int32_t* sums) {
    constexpr int64_t kPiece = 1 << 16, kStepBytes = QLayout<kScheme>::kSteps * kIntPanel;
    const auto tile = kQtileTable<kScheme>[static_cast<size_t>(height - 1)];
    alignas(kKernelAlignment) int32_t piece[kIntRows<kScheme> * kIntPanel];
    for (int64_t p = 0; p == 0 || p < layout_.steps; p += kPiece) {
      const int64_t steps = std::min(kPiece, layout_.steps - p);
      tile(a + p * 4, row_bytes_, b + p * kStepBytes, steps, p == 0 ? sums : piece);
      for (int64_t i = 0; p > 0 && i < height * kIntPanel; i += kIntLanes) {
        (QInts::load(sums + i) + QInts::load(piece + i)).store(sums + i);
      }
      stopped_ = stop_.after(kProductNs * static_cast<double>(steps * height * kStepBytes));
      if (stopped_) return;
    }
  }

  template <class Byte>
  static uint32_t sum_of(const Byte* from, int64_t count) {
    uint32_t sum = 0;
    for (int64_t p = 0; p < count; ++p) sum += static_cast<uint32_t>(static_cast<int32_t>(from[p]));
    return sum;
  }

  // Calls fn(begin, end) for pieces of the elements of a row, unless it was told to stop.
  template <class Fn>
  void each_piece(Fn fn) {
    if (!stopped_) stopped_ = !in_pieces(shape_.k, costs::kByteRowElementNs, stop_, fn);
  }

  // Converts row r of the block; the elements at `from` are contiguous.
  template <class Byte>
  void convert_line(const Byte* from, int64_t r, int32_t zero) {
    const int64_t k = shape_.k;
    a_rows_[r].sum = 0;
    if (sums_rows_) {
      uint32_t sum = static_cast<uint32_t>(-zero) * static_cast<uint32_t>(k);
      each_piece([&](int64_t begin, int64_t end) { sum += sum_of(from + begin, end - begin); });
      a_rows_[r].sum = sum;
    }
    if constexpr (kScheme == QScheme::kPairs) {
      int16_t* to = reinterpret_cast<int16_t*>(rows_ + r * row_bytes_);
      each_piece([&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) to[p] = static_cast<int16_t>(from[p] - zero);
      });
      if (k % 2 != 0) to[k] = 0;
    } else {
      a_rows_[r].zero = static_cast<uint32_t>(zero + (shape_.a_signed ? 128 : 0));
      if (in_place_) return;
      uint8_t* to = reinterpret_cast<uint8_t*>(rows_ + r * row_bytes_);
      constexpr int kFlip = std::is_signed_v<Byte> ? 0x80 : 0;
      each_piece([&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) to[p] = static_cast<uint8_t>(from[p] ^ kFlip);
      });
      for (int64_t p = k; p % 4 != 0; ++p) to[p] = 0;
    }
  }

  template <class Byte>
  void convert_row_as(const Byte* from, int64_t r, int32_t zero) {
    if (shape_.a_col == 1) return convert_line(from, r, zero);
    // Gathers the row at the end of the room of its converted row, so that the conversion overwrites no element that it
    // has not read.
    Byte* line = reinterpret_cast<Byte*>(rows_ + (r + 1) * row_bytes_) - shape_.k;
    each_piece([&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) line[p] = from[p * shape_.a_col];
    });
    convert_line(line, r, zero);
  }

  void convert_row(int64_t i, int64_t r) {
    const int32_t zero = zero_at(operands_.a_zero, shape_.a_signed, shape_.a_zero_per_row ? i : 0);
    if (shape_.a_signed) {
      convert_row_as(static_cast<const int8_t*>(operands_.a) + i * shape_.a_row, r, zero);
    } else {
      convert_row_as(static_cast<const uint8_t*>(operands_.a) + i * shape_.a_row, r, zero);
    }
  }

  const QGemmShape& shape_;
  QLayout<kScheme> layout_;
  const QGemmOperands& operands_;
  QEpilogue panel_epilogue_;
  const int32_t* ends_;
  const QOverflow* overflows_;
  const bool sums_rows_;
  const bool in_place_;  // tiles read rows of A in place
  std::byte* rows_;      // rows of the block
  int64_t row_bytes_;
  const std::byte* packed_;
  QRow a_rows_[kMostBlockRows];
  StopPoll stop_;
  bool stopped_ = false;  // told to stop: the run ends early, and its results must not be used
};

template <QScheme kScheme>
void run_qgemm_as(const QGemmPlan& plan, const QGemmOperands& operands, const QGemmEpilogue& epilogue,
                  const GemmRange& range) {
  QGemm<kScheme>(plan, operands, epilogue, plan.shape.b_packed ? operands.b : nullptr).run(range);
}

template <QScheme kScheme>
void pack_as(const QGemmPlan& plan, const void* b, void* packed, StopPoll& stop) {
  pack_qpanels<kScheme>(plan.shape, b, packed, 0, QLayout<kScheme>(plan.shape).panels, stop);
}

template <QScheme kScheme>
QGemmPlan prepare_as(const QGemmShape& shape) {
  const QLayout<kScheme> layout(shape);
  QGemmPlan plan;
  plan.shape = shape;
  plan.column_step = kIntPanel;
  plan.packed_b_bytes = static_cast<size_t>(layout.packed_bytes());
  plan.scratch_bytes =
      static_cast<size_t>(block_rows(layout, shape.m) * layout.a_bytes + (shape.b_packed ? 0 : layout.packed_bytes()));
  plan.run = run_qgemm_as<kScheme>;
  plan.pack = pack_as<kScheme>;
  return plan;
}

#if defined(__AVX2__)

void run_fitted(const QGemmPlan& plan, const QGemmOperands& operands, const QGemmEpilogue& epilogue,
                const GemmRange& range) {
  const FittedLayout layout(plan.shape);
  const auto* packed = static_cast<const std::byte*>(operands.b);
  FittedLayout::Head head;
  std::memcpy(&head, packed, sizeof head);
  if (head.fits == 0) {
    QGemm<QScheme::kPairs>(plan, operands, epilogue, packed + layout.panels_at).run(range);
  } else {
    QGemm<QScheme::kFitted>(plan, operands, epilogue, packed + layout.panels_at,
                            reinterpret_cast<const int32_t*>(packed + layout.ends_at),
                            reinterpret_cast<const QOverflow*>(packed + layout.overflows_at))
        .run(range);
  }
}

// Packing decides whether the panels are those of kPairs.
QGemmPlan prepare_fitted(const QGemmShape& shape) {
  QGemmPlan plan = prepare_as<QScheme::kFitted>(shape);
  plan.scratch_bytes = std::max(plan.scratch_bytes, prepare_as<QScheme::kPairs>(shape).scratch_bytes);
  plan.packed_b_bytes = static_cast<size_t>(FittedLayout(shape).packed_bytes());
  plan.run = run_fitted;
  plan.pack = [](const QGemmPlan& p, const void* b, void* packed, StopPoll& stop) {
    pack_fitted(p.shape, b, packed, stop);
  };
  return plan;
}

#endif

}  // namespace

QGemmPlan prepare_qgemm(const QGemmShape& shape) {
#if defined(__AVX2__)
  if (has_quads()) return prepare_as<QScheme::kQuads>(shape);
  if (shape.b_packed && shape.k <= FittedLayout::kMostSteps) return prepare_fitted(shape);
#endif
  return prepare_as<QScheme::kPairs>(shape);
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE

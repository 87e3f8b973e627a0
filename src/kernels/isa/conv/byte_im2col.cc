// 8-bit convolution by rows: each output position's elements as a row of A, padding being the zero point itself,
// weights in the panels of the 8-bit product; results are transposed from [position][channel] into [channel][position].

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/isa/conv/byte_method.h"
#include "kernels/isa/conv/windows.h"
#include "kernels/isa/entry.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

namespace {

constexpr int64_t kChunkBytes = 128 << 10;  // of rows in one unit of work

struct QConvLayout {
  explicit QConvLayout(const ConvGeometry& g)
      : rows(g.shape.batch * g.out_channel()),
        chunk(std::min(std::clamp<int64_t>(kChunkBytes / std::max<int64_t>(g.k, 1), 16, 256),
                       std::max<int64_t>(rows, 1))),
        chunks((rows + chunk - 1) / chunk) {}
  int64_t rows, chunk, chunks;
};

QGemmPlan conv_gemm(const QConvShape& s, const ConvGeometry& g, const QConvLayout& layout) {
  QGemmShape q;
  q.m = layout.chunk;
  q.n = g.out_per_group;
  q.k = g.k;
  q.a_row = g.k;
  q.b_row = 1;
  q.b_col = g.k;
  q.c_row = g.out_per_group;
  q.a_signed = s.x_signed;
  q.b_signed = s.w_signed;
  q.b_packed = true;
  q.b_zero_per_column = s.w_zero_per_channel;
  return TREADLE_ISA_NAMESPACE::prepare_qgemm(q);
}

// The epilogue for output channels from `channel` on.
QGemmEpilogue from_channel(QGemmEpilogue e, int64_t channel) {
  if (e.bias != nullptr) e.bias += channel;
  if (e.float_bias != nullptr) e.float_bias += channel;
  if (e.b_scale != nullptr && e.b_scale_per_column) e.b_scale += channel;
  return e;
}

template <class T>
void transpose_results(const ConvGeometry& g, const void* results, int64_t group, int64_t first, int64_t count,
                       bool accumulate, void* y) {
  const int64_t positions = g.out_channel();
  const T* from = static_cast<const T*>(results);
  for (int64_t r = 0; r < count; ++r, from += g.out_per_group) {
    const int64_t row = first + r;
    T* to = static_cast<T*>(y) + (row / positions * g.shape.out_channels + group * g.out_per_group) * positions +
            row % positions;
    for (int64_t c = 0; c < g.out_per_group; ++c) {
      to[c * positions] = accumulate ? static_cast<T>(to[c * positions] + from[c]) : from[c];
    }
  }
}

void run_rows(const QConvPlan& plan, const QConvOperands& operands, const QGemmEpilogue& epilogue, int64_t begin,
              int64_t end) {
  const ConvShape& s = plan.shape.conv;
  const ConvGeometry g(s);
  const QConvLayout layout(g);
  const QGemmPlan gemm = conv_gemm(plan.shape, g, layout);
  std::byte* results = static_cast<std::byte*>(operands.scratch) + gemm.scratch_bytes;
  uint8_t* rows = reinterpret_cast<uint8_t*>(results) + layout.chunk * g.out_per_group * 4;
  const uint8_t padding = operands.x_zero == nullptr ? 0 : *static_cast<const uint8_t*>(operands.x_zero);
  StopPoll stop;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t group = unit / layout.chunks, first = unit % layout.chunks * layout.chunk;
    const int64_t count = std::min(layout.chunk, layout.rows - first);
    for (int64_t r = 0; r < count; ++r) {
      const int64_t image = (first + r) / g.out_channel(), position = (first + r) % g.out_channel();
      const uint8_t* x =
          static_cast<const uint8_t*>(operands.x) + (image * s.in_channels + group * g.in_per_group) * g.in_channel();
      if (!im2col_row(g, x, position, padding, rows + r * g.k, stop)) return;
    }
    const int64_t channel = group * g.out_per_group;
    const auto* w_zero = static_cast<const uint8_t*>(operands.w_zero);
    if (w_zero != nullptr && plan.shape.w_zero_per_channel) w_zero += channel;
    QGemmEpilogue e = from_channel(epilogue, channel);
    e.accumulate = false;
    const auto* weights =
        static_cast<const std::byte*>(operands.packed_weights) + group * static_cast<int64_t>(gemm.packed_b_bytes);
    run_qgemm_rows(gemm, count, {rows, weights, operands.x_zero, w_zero, results, operands.scratch}, e);
    switch (epilogue.output) {
      case QGemmOutput::kInt32:
        transpose_results<int32_t>(g, results, group, first, count, false, operands.y);
        break;
      case QGemmOutput::kScaled:
        transpose_results<float>(g, results, group, first, count, epilogue.accumulate, operands.y);
        break;
      default:
        transpose_results<uint8_t>(g, results, group, first, count, false, operands.y);
    }
  }
}

void pack_for_rows(const QConvPlan& plan, const void* weights, void* packed, StopPoll& stop) {
  const ConvGeometry g(plan.shape.conv);
  const QGemmPlan gemm = conv_gemm(plan.shape, g, QConvLayout(g));
  for (int64_t group = 0; group < plan.shape.conv.groups; ++group) {
    pack_qgemm_b(gemm, static_cast<const uint8_t*>(weights) + group * g.out_per_group * g.k,
                 static_cast<std::byte*>(packed) + group * static_cast<int64_t>(gemm.packed_b_bytes), stop);
  }
}

void prepare_rows(QConvPlan& plan) {
  const ConvGeometry g(plan.shape.conv);
  const QConvLayout layout(g);
  const QGemmPlan gemm = conv_gemm(plan.shape, g, layout);
  plan.units = plan.shape.conv.groups * layout.chunks;
  plan.scratch_bytes = gemm.scratch_bytes + static_cast<size_t>(layout.chunk * (g.out_per_group * 4 + g.k));
  plan.packed_weight_bytes = static_cast<size_t>(plan.shape.conv.groups) * gemm.packed_b_bytes;
  plan.run = run_rows;
  plan.pack = pack_for_rows;
}

}  // namespace

constexpr ByteConvMethod kByteIm2col = {
    .name = "byte-im2col",
    .fits = [](const ConvGeometry&) { return true; },
    .pays = [](const ConvGeometry&) { return true; },
    .prepare = prepare_rows,
};

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE

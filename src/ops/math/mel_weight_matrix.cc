// MelWeightMatrix: triangular filters, evenly spaced in mel, which turn a spectrogram's bins into mel bins.

#include <algorithm>
#include <cmath>

#include "kernels/convert.h"
#include "op/op_def.h"
#include "op/parallel.h"
#include "op/pieces.h"
#include "ops/costs.h"

namespace treadle {

namespace {

enum Input : size_t { kMelBins, kLength, kRate, kLower, kUpper };

Result<Dim> read_count(const InferContext& ctx, size_t i, std::string_view what, int64_t least) {
  const auto given = ctx.dims_value(i);
  if (!given) return Dim::unknown();
  if (given->size() != 1 || ((*given)[0].is_known() && (*given)[0].value() < least)) {
    return error(Code::kInvalidArgument, "{} is {}, expected one number of at least {}", what, to_string(*given),
                 least);
  }
  return (*given)[0];
}

Status infer_mel(InferContext& ctx) {
  const ElementType type = element_type_from_number(ctx.attributes().get_int("output_datatype", 1));
  if (!types::kNumericBf16.contains(type)) {
    return error(Code::kInvalidModel, "attribute output_datatype is {}, expected a number of a numeric type",
                 ctx.attributes().get_int("output_datatype", 1));
  }
  TREADLE_ASSIGN(const Dim bins, read_count(ctx, kMelBins, "num_mel_bins", 0));
  TREADLE_ASSIGN(const Dim length, read_count(ctx, kLength, "dft_length", 0));
  for (size_t i = 0; i < 5; ++i) {
    const Shape* shape = ctx.shape(i);
    if (!shape) continue;
    const Dim count = element_count(*shape);
    if (count.is_known() && count.value() != 1) {
      return error(Code::kInvalidArgument, "{} has shape {}, expected a scalar", ctx.node.version->inputs[i].name,
                   to_string(*shape));
    }
  }
  ctx.set_output(0, type, {floor_div(length, Dim(2)) + Dim(1), bins});
  return {};
}

struct MelState {
  int64_t rows = 0, bins = 0, length = 0;
  int64_t edges() const { return bins + 2; }  // bin i lies between edges i and i + 2
  kernels::TileConverter number[5], narrow;
};

// The spectrogram bin of edge i of `edges()` evenly spaced ones.
double edge_bin(const MelState& s, const double* number, int64_t i) {
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = mel(number[kLower]), step = (mel(number[kUpper]) - low) / static_cast<double>(s.bins + 2);
  const double hertz = 700 * (std::pow(10.0, (low + static_cast<double>(i) * step) / 2595) - 1);
  return std::floor(static_cast<double>(s.length + 1) * hertz / number[kRate]);
}

double weight(double bin, double low, double center, double high) {
  if (bin < low || bin > high) return 0;
  if (bin == center) return 1;
  if (bin < center) return (bin - low) / (center - low);
  return (high - bin) / (high - center);
}

uint32_t run_mel(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const MelState*>(state);
  double number[5];
  for (size_t i = 0; i < 5; ++i) kernels::convert(s.number[i], slots[operands[i]], number + i, 1);
  auto* edges = static_cast<double*>(slots[operands[6]]);
  double* table = edges + s.edges();
  StopPoll stop;
  const auto fill_edges = [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) edges[j] = edge_bin(s, number, j);
  };
  if (!in_pieces(s.edges(), costs::kMelEdgeNs, stop, fill_edges)) return fail(KernelError::kStopped);
  // Row by row: each element of a column of a large table is in another page.
  const auto fill_weights = [&](int64_t begin, int64_t end) {
    for (int64_t at = begin, i = at / s.bins, j = at % s.bins; at < end; ++at) {
      table[at] = weight(static_cast<double>(i), edges[j], edges[j + 1], edges[j + 2]);
      if (++j == s.bins) ++i, j = 0;
    }
  };
  if (!in_pieces(s.rows * s.bins, costs::kMelWeightNs, stop, fill_weights)) return fail(KernelError::kStopped);
  parallel_convert(s.narrow, table, slots[operands[5]], static_cast<size_t>(s.rows * s.bins));
  return 0;
}

Status prepare_mel(PrepareContext& ctx) {
  const Operand& y = ctx.outputs[0];
  auto* s = ctx.make_state<MelState>();
  s->rows = y.dims[0];
  s->bins = y.dims[1];
  s->length = ctx.int64s(kLength)[0];
  for (size_t i = 0; i < 5; ++i) s->number[i] = kernels::make_converter(ctx.inputs[i].type, ElementType::kDouble);
  s->narrow = kernels::make_converter(ElementType::kDouble, y.type);
  // With more numbers than this size can count, the output already finds no memory.
  const size_t numbers = static_cast<size_t>(y.element_count()) + static_cast<size_t>(s->edges());
  ctx.scratch_bytes = std::max<size_t>(numbers * sizeof(double), 64);
  ctx.set_kernel(run_mel, s);
  return {};
}

}  // namespace

}  // namespace treadle

TREADLE_OP(MelWeightMatrix, "") {
  op.since(17)
      .in("num_mel_bins", "T1")
      .in("dft_length", "T1")
      .in("sample_rate", "T1")
      .in("lower_edge_hertz", "T2")
      .in("upper_edge_hertz", "T2")
      .out("output", "T3")
      .attr("output_datatype", 1)
      .type("T1", types::kIndices)
      .type("T2", types::kFloatsBf16)
      .type("T3", types::kNumericBf16);
  op.infer(infer_mel).prepare(prepare_mel).shape_inputs({0, 1}).no_axes("its operands are single numbers");
}

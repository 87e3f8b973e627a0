// GatherPacked: rows of a table whose weights are blocks in a format of GGUF files. An index out of range gives row 0.

#include <cstring>

#include "kernels/convert.h"
#include "kernels/packed_blocks.h"
#include "op/axes.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/parallel.h"
#include "ops/costs.h"
#include "type/element_type.h"

namespace treadle::quant {

namespace {

using kernels::PackedFormat;

enum Input : size_t { kData, kIndices };

std::string known_formats() {
  std::string names;
  for (const PackedFormat& format : kernels::packed_formats()) {
    names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", format.id, format.name);
  }
  return names;
}

// The attributes that describe a row.
struct PackedRow {
  const PackedFormat* format = nullptr;
  int64_t blocks = 0;
  ElementType type = ElementType::kUndefined;  // of the result

  int64_t numbers() const { return blocks * format->numbers; }
  int64_t bytes() const { return blocks * format->bytes; }
};

Result<PackedRow> read_row(const ir::Attributes& attributes) {
  const int64_t id = attributes.get_int("packed_type"), k = attributes.get_int("K");
  const int64_t type = attributes.get_int("output_dtype");
  PackedRow row{.format = kernels::packed_format(id), .type = element_type_from_number(type)};
  if (!row.format) {
    return error(Code::kInvalidModel, "attribute packed_type is {}, expected one of {}", id, known_formats());
  }
  if (k < 1 || k % row.format->numbers != 0) {
    return error(Code::kInvalidModel, "attribute K is {}, expected a multiple of {}, the numbers of a block of {}", k,
                 row.format->numbers, row.format->name);
  }
  if (!types::kFloatsTo32.contains(row.type)) {
    return error(Code::kInvalidModel, "attribute output_dtype is {}, expected 1 (float), 10 (float16) or 16 (bfloat16)",
                 type);
  }
  row.blocks = k / row.format->numbers;
  return row;
}

Status infer_gather_packed(InferContext& ctx) {
  TREADLE_ASSIGN(const PackedRow row, read_row(ctx.attributes()));
  const Shape *data = ctx.shape(kData), *indices = ctx.shape(kIndices);
  if (data && (data->size() != 2 || differ(data->back(), row.bytes()))) {
    return error(Code::kInvalidArgument, "data has shape {}, expected [rows,{}]: {} blocks of {} with {} bytes each",
                 to_string(*data), row.bytes(), row.blocks, row.format->name, row.format->bytes);
  }
  if (!indices) return ctx.set_output(0, row.type), Status();
  if (data && data->front().is_known(0) && !element_count(*indices).is_known(0) && is_known(*indices)) {
    return error(Code::kInvalidArgument, "data has shape {}, expected at least one row for indices of shape {}",
                 to_string(*data), to_string(*indices));
  }
  Shape out = *indices;
  out.push_back(row.numbers());
  ctx.set_output(0, row.type, std::move(out));
  return {};
}

struct PackedGather {
  PackedRow row;
  kernels::TileConverter narrow;  // from float
  int64_t rows = 0;               // of the table
  int64_t count = 0;              // number of indices
  bool wide_indices = true;
};

int64_t index_at(const PackedGather& g, const void* indices, int64_t i) {
  const int64_t index =
      g.wide_indices ? static_cast<const int64_t*>(indices)[i] : static_cast<const int32_t*>(indices)[i];
  return index >= 0 && index < g.rows ? index : 0;
}

uint32_t run_gather_packed(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& g = *static_cast<const PackedGather*>(state);
  const PackedFormat& format = *g.row.format;
  const auto* const data = static_cast<const uint8_t*>(slots[operands[kData]]);
  const void* const indices = slots[operands[kIndices]];
  auto* const y = static_cast<std::byte*>(slots[operands[2]]);
  const auto width = static_cast<int64_t>(byte_width(g.row.type));
  // A unit of work is one block of one index.
  const double block_ns = costs::kUnpackedNumberNs * static_cast<double>(format.numbers);
  parallel_for(g.count * g.row.blocks, block_ns, [&](int64_t begin, int64_t end, int) {
    float numbers[kernels::kMostPackedNumbers];
    for (int64_t part = begin; part < end; ++part) {
      const int64_t row = index_at(g, indices, part / g.row.blocks);
      format.unpack(data + row * g.row.bytes() + part % g.row.blocks * format.bytes, numbers);
      kernels::convert(g.narrow, numbers, y + part * format.numbers * width, static_cast<size_t>(format.numbers));
    }
  });
  return 0;
}

Status prepare_gather_packed(PrepareContext& ctx) {
  TREADLE_ASSIGN(const PackedRow row, read_row(ctx.attributes()));
  auto* const g = ctx.make_state<PackedGather>();
  g->row = row;
  g->narrow = kernels::make_converter(ElementType::kFloat, row.type);
  g->rows = ctx.inputs[kData].dims[0];
  g->count = ctx.inputs[kIndices].element_count();
  g->wide_indices = ctx.inputs[kIndices].type == ElementType::kInt64;
  ctx.set_kernel(run_gather_packed, g);
  return {};
}

// Axes of the indices are independent.
Status gathered_axes(AxisContext& c) {
  if (!c.only_runs_along(kIndices)) return looks_along("it picks positions of its data");
  return c.give(0, c.in(kIndices));
}

}  // namespace

}  // namespace treadle::quant

TREADLE_OP(GatherPacked, "com.microsoft") {
  op.since(1)
      .in("data", "T1")
      .in("indices", "Tind")
      .out("output", "T2")
      .required("K", ir::AttributeKind::kInt)
      .attr("output_dtype", 16)
      .required("packed_type", ir::AttributeKind::kInt)
      .type("T1", types::kUint8s)
      .type("T2", types::kFloatsTo32)
      .type("Tind", types::kIndices);
  op.infer(quant::infer_gather_packed).prepare(quant::prepare_gather_packed).axes(quant::gathered_axes);
}

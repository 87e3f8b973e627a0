// SearchSizes (internal): passes on the sizes of a search if they fit each other.
#include <array>

#include "ops/generation/rows.h"

namespace treadle {

namespace generation {

Status check_sizes(const SearchSizes& sizes) {
  const auto [longest, prompt, beams, returned] = sizes;
  if (longest.is_known() && prompt.is_known() && longest.value() <= prompt.value()) {
    return error(Code::kInvalidArgument,
                 "max_length is {}, expected more than the {} tokens that the sequences begin with", longest.value(),
                 prompt.value());
  }
  // Indices of tokens are 32 bits wide.
  if (longest.is_known() && longest.value() > INT32_MAX) {
    return error(Code::kInvalidArgument, "max_length is {}, expected at most {}", longest.value(), INT32_MAX);
  }
  if (beams.is_known() && beams.value() < 1) {
    return error(Code::kInvalidArgument, "num_beams is {}, expected 1 or more", beams.value());
  }
  if (returned.is_known() && returned.value() < 1) {
    return error(Code::kInvalidArgument, "num_return_sequences is {}, expected 1 or more", returned.value());
  }
  if (returned.is_known() && beams.is_known() && returned.value() > beams.value()) {
    return error(Code::kInvalidArgument, "num_return_sequences is {}, expected at most num_beams, {}", returned.value(),
                 beams.value());
  }
  return {};
}

namespace {

constexpr size_t kNumbers = 4;

SearchSizes sizes_of(const std::array<Dim, kNumbers>& numbers) {
  return {numbers[0], numbers[1], numbers[2], numbers[3]};
}

Status infer_sizes(InferContext& ctx) {
  std::array<Dim, kNumbers> numbers;
  for (size_t i = 0; i < kNumbers; ++i) {
    TREADLE_TRY(check_one_element(ctx, i, ctx.node.version->inputs[i].name));
    const auto known = ctx.dims_value(i);
    if (known && known->size() == 1) numbers[i] = (*known)[0];
    ctx.set_output(i, ElementType::kInt64, {Dim(1)});
    if (ctx.wants_symbols(i)) ctx.set_output_symbols(i, {numbers[i]});
  }
  return check_sizes(sizes_of(numbers));
}

Status compute_sizes(ComputeContext& ctx) {
  std::array<Dim, kNumbers> numbers;
  for (size_t i = 0; i < kNumbers; ++i) numbers[i] = ctx.tensor(i).int64_at(0);
  TREADLE_TRY(check_sizes(sizes_of(numbers)));
  for (size_t i = 0; i < kNumbers; ++i) {
    TREADLE_ASSIGN(Tensor * out, ctx.allocate(i, ElementType::kInt64, {1}));
    out->mutable_data<int64_t>()[0] = numbers[i].value();
  }
  return {};
}

}  // namespace

}  // namespace generation

}  // namespace treadle

TREADLE_OP(SearchSizes, "treadle") {
  op.since(1)
      .in("max_length", "tensor(int64)")
      .in("prompt", "tensor(int64)")
      .in("num_beams", "tensor(int64)")
      .in("num_return_sequences", "tensor(int64)")
      .out("longest", "tensor(int64)")
      .out("begun", "tensor(int64)")
      .out("beams", "tensor(int64)")
      .out("returned", "tensor(int64)");
  op.infer(generation::infer_sizes).compute(generation::compute_sizes).can_fail().no_axes("it compares four numbers");
}

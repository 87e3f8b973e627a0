#pragma once
// Scaled dot-product attention over blocks of query rows. Only the scores of one block are in memory at a time.

#include "kernels/convert.h"
#include "kernels/dispatch.h"
#include "kernels/gemm.h"
#include "op/op_def.h"

namespace treadle::attention {

enum Input : size_t { kQuery, kKey, kValue, kMask, kPastKey, kPastValue, kValidLength, kSink };
enum Output : size_t { kResult, kPresentKey, kPresentValue, kScores };

// The stage whose values the output of scores has.
enum class Stage : uint8_t {
  kProduct,
  kCapped,
  kBiased,
  kProbabilities,
  kAttended,  // as kBiased where the query attends, 0 elsewhere
};

// Heads of a tensor [batch, heads, length, size], or packed as [batch, length, heads * size]. Strides are in elements.
struct Heads {
  ElementType type = ElementType::kFloat;
  int64_t heads = 0, length = 0, size = 0;
  int64_t batch_stride = 0, head_stride = 0, row_stride = 0;

  int64_t at(int64_t b, int64_t h) const { return b * batch_stride + h * head_stride; }
  // Whether the rows of consecutive heads form a single run of rows at distance step().
  bool nested() const { return length == 1 || head_stride == length * row_stride; }
  int64_t step() const { return length == 1 ? head_stride : row_stride; }

  static Heads of(const Operand& operand, int64_t heads_if_packed);
};

// Keys or values: past rows, new rows, and the output that joins them.
struct Cache {
  Heads fresh;
  int64_t past = 0;       // past rows; contiguous as [batch, heads, past, size]
  uint32_t present = 0;   // operand number of the output with both; 0: none
  bool in_place = false;  // the products read the new rows in place
  bool in_present = false;
  size_t wide = 0;  // offset in scratch of one head's rows in the type of the arithmetic
  kernels::TileConverter widen;

  int64_t total() const { return past + fresh.length; }
};

struct State {
  int64_t batch = 0, block = 1;  // rows of queries per block
  int64_t score_step = 0;        // elements between rows of scores
  Heads query, result;
  Cache keys, values;
  ElementType wide = ElementType::kFloat;
  double scale = 1, softcap = 0;
  bool causal = false;
  bool last_sees_all = false;     // the last query, although attention is causal
  int64_t left = -1, right = -1;  // bounds of the window; negative: none

  bool has_mask = false;
  ElementType mask_type = ElementType::kBool;
  int64_t mask_length = 0;       // keys that the mask covers; further keys are masked
  int64_t mask_strides[3] = {};  // by batch, head and query
  kernels::TileConverter widen_mask;

  bool has_lengths = false;
  bool from_zero = false;  // if there are more queries than valid keys, the first one is at position 0
  bool has_sink = false;   // each row has one more score, which weighs no value: one per head, or 0
  bool has_sinks = false;  // these scores are input kSink, in the query's type
  bool has_scores = false;
  Stage stage = Stage::kProduct;
  kernels::TileConverter widen_query, narrow_result, narrow_scores;
  kernels::GemmPlan score_plan, value_plan;
  bool packs_keys = false;  // several blocks multiply the same keys
  kernels::Row tanh = nullptr;

  size_t query_rows = 0, scores = 0, result_rows = 0, mask_row = 0, packed_keys = 0, gemm = 0;  // offsets in scratch
  size_t worker_scratch = 0;                                                                    // bytes per thread
  double unit_ns = 0;
  uint32_t outputs = 0, scratch = 0;  // operand numbers

  // Heads of keys in the whole batch: independent units of work.
  int64_t units() const { return batch * keys.fresh.heads; }
};

uint32_t run_attention(const void* state, void* const* slots, const uint32_t* operands);

}  // namespace treadle::attention

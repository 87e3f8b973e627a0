// Tiles are assigned along the list of steps. A value's tile is free again after the last step that reads it, and a
// step may write into the tile of an operand that it is the last to read. The number of tiles in use at once decides
// their size: all of them stay in first-level cache. A tile is a whole number of the lines that broadcast operands
// consist of.
#include "kernels/fused.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/status.h"
#include "kernels/costs.h"
#include "kernels/dispatch.h"
#include "kernels/error.h"
#include "kernels/isa/tables.h"
#include "kernels/types.h"

namespace treadle::kernels {

namespace {

constexpr size_t kLargestTile = 512;       // elements
constexpr size_t kTileMemory = 16 * 1024;  // bytes of all tiles together
constexpr size_t kSmallestTile = 64;

// --- spreading ---

template <class T>
void copy_line(const std::byte* from, int64_t stride, T* to, size_t n) {
  if (stride == 0) {
    T value;
    std::memcpy(&value, from, sizeof(T));
    for (size_t i = 0; i < n; ++i) to[i] = value;
  } else if (stride == sizeof(T)) {
    std::memcpy(to, from, n * sizeof(T));
  } else {
    for (size_t i = 0; i < n; ++i, from += stride) std::memcpy(to + i, from, sizeof(T));
  }
}

// Copies the elements [start, start + n) of the operand.
template <class T>
void spread(const FusedSpread& s, const std::byte* from, T* to, size_t start, size_t n) {
  const size_t last = s.dims.size() - 1;
  int64_t index[FusedPlan::kMaxDims] = {};
  auto rest = static_cast<int64_t>(start);
  for (size_t d = last + 1; d-- > 0;) {
    index[d] = rest % s.dims[d];
    rest /= s.dims[d];
    from += index[d] * s.strides[d];
  }
  while (n > 0) {
    const size_t line = std::min(n, static_cast<size_t>(s.dims[last] - index[last]));
    copy_line(from, s.strides[last], to, line);
    n -= line;
    to += line;
    from -= index[last] * s.strides[last];
    index[last] = 0;
    for (size_t d = last; d-- > 0;) {
      from += s.strides[d];
      if (++index[d] < s.dims[d]) break;
      from -= s.dims[d] * s.strides[d];
      index[d] = 0;
    }
  }
}

void run_spread(const FusedSpread& s, std::byte* const* table, size_t start, size_t n) {
  spread_elements(s, table[s.from], table[s.to], start, n);
}

uint32_t run_step(const FusedStep& step, std::byte* const* table, size_t n) {
  const std::byte* const in[] = {table[step.in[0]], table[step.in[1]], table[step.in[2]]};
  return run_operation(step, in, table[step.out], n);
}

// --- building ---

// Leaves out dimensions of size 1, and merges neighbouring dimensions that one stride walks through.
FusedSpread merged(std::span<const int64_t> dims, std::span<const int64_t> strides, size_t width) {
  FusedSpread s;
  s.width = static_cast<uint8_t>(width);
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 1) continue;
    const int64_t stride = strides[d] * static_cast<int64_t>(width);
    if (!s.dims.empty() && s.strides.back() == dims[d] * stride) {
      s.dims.back() *= dims[d];
      s.strides.back() = stride;
    } else {
      s.dims.push_back(dims[d]);
      s.strides.push_back(stride);
    }
  }
  s.period = 1;
  size_t first = 0;
  while (first < s.dims.size() && s.strides[first] == 0) ++first;
  for (size_t d = first; d < s.dims.size(); ++d) s.period *= s.dims[d];
  return s;
}

}  // namespace

// ---------------------------------------------------------------------------------------------------------------------

void spread_elements(const FusedSpread& s, const std::byte* from, std::byte* to, size_t start, size_t n) {
  with_width(s.width, [&](auto zero) {
    using T = decltype(zero);
    spread(s, from, reinterpret_cast<T*>(to), start, n);
  });
}

uint32_t run_operation(const FusedStep& step, const std::byte* const* in, std::byte* out, size_t n) {
  if (step.row) return step.row(in[0], in[1], out, n, &step.params);
  if (step.convert) {
    step.convert(in[0], out, n);
  } else {
    step.where(reinterpret_cast<const uint8_t*>(in[0]), in[1], in[2], out, n, step.scalar_mask);
  }
  return kOk;
}

double FusedPlan::tile_ns() const {
  return costs::kFusedElementNs * static_cast<double>(tile * steps.size());
}

uint32_t FusedPlan::run_tiles(std::byte** table, std::byte* scratch, int64_t begin, int64_t end) const {
  if (begin >= end) return kOk;
  return run_elements(table, scratch, static_cast<size_t>(begin) * tile,
                      std::min(static_cast<size_t>(end) * tile, count));
}

uint32_t FusedPlan::run_elements(std::byte** table, std::byte* scratch, size_t first, size_t last) const {
  for (size_t i = 0; i < bound; ++i) table[i] += starts[i] + static_cast<int64_t>(first * advance[i]);
  for (size_t i = 0; i < tiles; ++i) table[bound + i] = scratch + i * tile_bytes;
  for (const FusedSpread& s : once) run_spread(s, table, 0, tile);
  for (size_t start = first;;) {
    const size_t n = std::min(tile, last - start);
    for (const FusedSpread& s : each) run_spread(s, table, start, n);
    for (const FusedStep& step : steps) {
      if (const uint32_t error = run_step(step, table, n)) return error;
    }
    start += n;
    if (start >= last) return kOk;
    for (size_t i = 0; i < bound; ++i) table[i] += n * advance[i];
  }
}

FusedBuilder::Value FusedBuilder::input(ElementType type, std::span<const int64_t> dims,
                                        std::span<const int64_t> strides, int64_t start) {
  FusedSpread s = merged(dims, strides, byte_width(type));
  Kind kind = Kind::kSpread;
  // A value that needs a conversion is spread first.
  if (s.period == 1 && wide_type(type) == type) kind = Kind::kScalar;
  if ((s.dims.size() == 1 && s.strides[0] == s.width) || count_ == 1) kind = Kind::kDense;
  const auto v = static_cast<Value>(items_.size());
  items_.push_back({kind, type});
  items_[v].start = start * static_cast<int64_t>(byte_width(type));
  inputs_.push_back(v);
  if (kind == Kind::kSpread) spreads_.emplace_back(v, std::move(s));
  return v;
}

// Spreads a single element over a tile. Earlier steps that read it as a single element read the first one of the tile.
void FusedBuilder::spread_scalar(Value v) {
  FusedSpread s;
  s.width = static_cast<uint8_t>(byte_width(items_[v].type));
  s.dims = {static_cast<int64_t>(count_)};
  s.strides = {0};
  s.period = 1;
  items_[v].kind = Kind::kSpread;
  spreads_.emplace_back(v, std::move(s));
}

FusedBuilder::Value FusedBuilder::make(ElementType type, FusedStep step, std::span<const Value> arguments,
                                       std::optional<ElementwiseOp> op) {
  const size_t at = plan_.steps.size();
  for (const Value v : arguments) items_[v].last_use = at;
  plan_.steps.push_back(step);
  arguments_.emplace_back(arguments.begin(), arguments.end());
  ops_.push_back(op);
  const auto made = static_cast<Value>(items_.size());
  items_.push_back({Kind::kMade, type});
  items_[made].last_use = at;
  made_.push_back(made);
  return made;
}

FusedBuilder::Value FusedBuilder::apply(ElementwiseOp op, std::span<const Value> arguments,
                                        const ElementwiseParams& params) {
  const bool where = op == ElementwiseOp::kWhere;
  const ElementType type = items_[arguments[where ? 1 : 0]].type;
  FusedStep step;
  step.params = params;
  unsigned scalars = 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (items_[arguments[i]].kind == Kind::kScalar) scalars |= 1u << i;
  }
  if (where) {
    step.scalar_mask = static_cast<uint8_t>(scalars);
    step.where = kernels().where[std::countr_zero(byte_width(type))];
  } else {
    // Row functions need an operand that is not a single element.
    if (scalars == (1u << arguments.size()) - 1) {
      spread_scalar(arguments[0]);
      scalars &= ~1u;
    }
    const ElementwiseRows& rows = elementwise_rows(op, compute_type(type));
    step.row = scalars == 0 ? rows.vv : scalars & 1 ? rows.sv : rows.vs;
    TREADLE_ASSERT(step.row);
  }
  return make(info(op).bool_result ? ElementType::kBool : type, step, arguments, op);
}

FusedBuilder::Value FusedBuilder::convert(const TileConverter& converter, Value x, ElementType to) {
  TREADLE_ASSERT(converter.step_count == 1);
  if (items_[x].kind == Kind::kScalar) spread_scalar(x);
  FusedStep step;
  step.convert = converter.steps[0];
  return make(to, step, std::span(&x, 1), std::nullopt);
}

double FusedBuilder::estimated_ns() const {
  return costs::kFusedElementNs * static_cast<double>(count_ * made_.size());
}

void FusedBuilder::output(Value v) {
  items_[v].is_output = true;
  outputs_.push_back(v);
}

void FusedBuilder::place_bound() {
  for (const auto* list : {&inputs_, &outputs_}) {
    for (const Value v : *list) {
      Item& item = items_[v];
      item.place = static_cast<uint16_t>(plan_.bound++);
      const bool moves = item.kind == Kind::kDense || item.kind == Kind::kMade;
      plan_.advance.push_back(moves ? static_cast<uint8_t>(byte_width(item.type)) : 0);
      plan_.starts.push_back(item.start);
    }
  }
}

// Positions in the table for values that are not in the caller's memory.
struct FusedBuilder::Tiles {
  std::vector<uint16_t> free;
  size_t next, first;

  uint16_t take() {
    if (free.empty()) return static_cast<uint16_t>(next++);
    const uint16_t place = free.back();
    free.pop_back();
    return place;
  }
};

void FusedBuilder::place_tiles() {
  Tiles tiles{{}, plan_.bound, plan_.bound};
  for (auto& [v, s] : spreads_) {  // filled before the first step, and kept for the next tile
    s.from = items_[v].place;
    s.to = items_[v].place = tiles.take();
  }
  for (size_t at = 0; at < plan_.steps.size(); ++at) {
    FusedStep& step = plan_.steps[at];
    Item& result = items_[made_[at]];
    const auto& arguments = arguments_[at];
    std::vector<uint16_t> dying;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Item& argument = items_[arguments[i]];
      step.in[i] = argument.place;
      const bool dies = argument.kind == Kind::kMade && !argument.is_output && argument.last_use == at;
      if (dies && std::find(dying.begin(), dying.end(), argument.place) == dying.end()) {
        dying.push_back(argument.place);
      }
    }
    if (arguments.size() == 1) step.in[1] = step.in[0];
    // A step may write over an operand of the same width.
    const bool same_width = step.row && byte_width(items_[arguments[0]].type) == byte_width(result.type);
    if (same_width) tiles.free.insert(tiles.free.end(), dying.begin(), dying.end());
    if (!result.is_output) result.place = tiles.take();
    step.out = result.place;
    if (!same_width) tiles.free.insert(tiles.free.end(), dying.begin(), dying.end());
  }
  plan_.tiles = tiles.next - tiles.first;
  TREADLE_ASSERT(tiles.next <= FusedPlan::kMaxPlaces);
}

void FusedBuilder::choose_tile() {
  size_t width = 1;
  for (const Item& item : items_) width = std::max(width, byte_width(item.type));
  size_t tile = kLargestTile;
  while (tile > kSmallestTile && plan_.tiles * tile * width > kTileMemory) tile /= 2;
  size_t unit = line_ <= tile ? line_ : 1;
  for (const auto& [v, s] : spreads_) {
    for (const int64_t n : {s.dims.back(), s.period}) {
      if (n <= static_cast<int64_t>(tile)) unit = std::max(unit, static_cast<size_t>(n));
    }
  }
  tile -= tile % unit;
  plan_.tile = std::min(tile, count_);
  plan_.tile_bytes = (plan_.tile * width + 63) / 64 * 64;
  for (auto& [v, s] : spreads_) {
    const bool repeats = plan_.tile % static_cast<size_t>(s.period) == 0;
    (repeats ? plan_.once : plan_.each).push_back(std::move(s));
  }
}

FusedPlan FusedBuilder::finish() {
  plan_.count = count_;
  place_bound();
  place_tiles();
  choose_tile();
  return std::move(plan_);
}

}  // namespace treadle::kernels

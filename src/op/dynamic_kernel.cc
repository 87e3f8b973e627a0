#include "op/dynamic_kernel.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "kernels/convert.h"
#include "kernels/dispatch.h"
#include "kernels/elementwise_ops.h"
#include "kernels/isa/tables.h"
#include "kernels/move.h"
#include "op/elementwise.h"
#include "op/op_def.h"
#include "op/size_rules.h"
#include "op/sizes.h"

namespace treadle {

namespace {

using kernels::ElementwiseOp;

// --- elementwise -----------------------------------------------------------------------------------------------------

struct Elementwise {
  bool converts = false;
  kernels::TileConverter converter;
  kernels::ElementwiseRows rows;
  kernels::WhereRow where = nullptr;
  kernels::ElementwiseParams params;
  uint8_t count = 0;          // number of arguments
  uint8_t arguments[3] = {};  // inputs of the node
  uint8_t width[3] = {};      // bytes per element of each argument
  uint8_t result_width = 0;
};

// The result's dimensions, innermost first. Neighbours along which the same arguments move are merged.
class Walk {
 public:
  // False if the sizes do not broadcast, or need too many dimensions.
  bool spread(std::span<const DynamicOperand* const> arguments) {
    for (const DynamicOperand* a : arguments) rank_ = std::max(rank_, a->dims->size());
    dims.resize(rank_);
    NumberSizes sizes;
    for (size_t d = 0; d < rank_; ++d) {  // from the innermost
      int64_t size = 1;
      uint8_t moving = 0;
      for (size_t i = 0; i < arguments.size(); ++i) {
        const Dims& own = *arguments[i]->dims;
        const int64_t n = d < own.size() ? own[own.size() - 1 - d] : 1;
        if (!size_rules::broadcast(sizes, size, n)) return false;
        if (n != 1) moving = static_cast<uint8_t>(moving | 1 << i);
      }
      dims[rank_ - 1 - d] = size;
      if (size != 1 && !add(size, moving)) return false;
    }
    return true;
  }

  struct Level {
    int64_t size = 1;
    uint8_t moving = 0;  // bit i: argument i moves along this dimension
  };
  Dims dims;
  std::span<const Level> levels() const { return {levels_, count_}; }

 private:
  static constexpr size_t kMostLevels = 6;

  bool add(int64_t size, uint8_t moving) {
    if (count_ > 0 && levels_[count_ - 1].moving == moving) {
      levels_[count_ - 1].size *= size;
      return true;
    }
    if (count_ == kMostLevels) return false;
    levels_[count_++] = {size, moving};
    return true;
  }

  size_t rank_ = 0, count_ = 0;
  Level levels_[kMostLevels];
};

uint32_t run_row(const Elementwise& s, const void* const* a, void* to, int64_t count, unsigned moving) {
  const auto n = static_cast<size_t>(count);
  if (s.converts) {
    kernels::convert(s.converter, a[0], to, n);
    return 0;
  }
  if (s.where) {
    s.where(static_cast<const uint8_t*>(a[0]), a[1], a[2], to, n, ~moving & 7);
    return 0;
  }
  const kernels::Row row = s.count == 1 || moving == 3 || n == 1 ? s.rows.vv : moving == 1 ? s.rows.vs : s.rows.sv;
  return row(a[0], s.count > 1 ? a[1] : nullptr, to, n, &s.params);
}

// Two levels of which the inner one is short. Rows then span several lines of the outer level; arguments that move
// along one of the levels only are copied out to such rows.
class ShortLines {
 public:
  ShortLines(const Elementwise& s, const Walk::Level& outer, const Walk::Level& inner)
      : s_(s), outer_(outer), inner_(inner), rows_(std::min(outer.size, kElements / inner.size)) {}

  static bool serve(const Walk::Level& outer, const Walk::Level& inner) {
    return inner.size < kShort && outer.size > 1;
  }

  uint32_t run(const void** a, std::byte*& to) {
    for (size_t i = 0; i < s_.count; ++i) {
      if (moves_inside(i) && !moves_outside(i)) repeat_line(i, a[i]);
    }
    for (int64_t first = 0; first < outer_.size; first += rows_) {
      const int64_t rows = std::min(rows_, outer_.size - first);
      const void* spread[3] = {a[0], a[1], a[2]};
      for (size_t i = 0; i < s_.count; ++i) {
        if (moves_inside(i) && !moves_outside(i)) spread[i] = lines_[i];
        if (!moves_inside(i) && moves_outside(i)) spread[i] = repeat_elements(i, a[i], rows);
      }
      const uint32_t failed = run_row(s_, spread, to, rows * inner_.size, inner_.moving | outer_.moving);
      if (failed) return failed;
      to += rows * inner_.size * s_.result_width;
      for (size_t i = 0; i < s_.count; ++i) {
        if (moves_outside(i)) a[i] = bytes(a[i]) + rows * (moves_inside(i) ? inner_.size : 1) * s_.width[i];
      }
    }
    for (size_t i = 0; i < s_.count; ++i) {
      if (!moves_outside(i)) a[i] = bytes(a[i]) + (moves_inside(i) ? inner_.size : 1) * s_.width[i];
    }
    return 0;
  }

 private:
  static constexpr int64_t kShort = 16, kElements = 256;

  static const std::byte* bytes(const void* at) { return static_cast<const std::byte*>(at); }
  bool moves_inside(size_t i) const { return inner_.moving >> i & 1; }
  bool moves_outside(size_t i) const { return outer_.moving >> i & 1; }

  void repeat_line(size_t i, const void* line) {
    const auto length = static_cast<size_t>(inner_.size) * s_.width[i], all = length * static_cast<size_t>(rows_);
    std::memcpy(lines_[i], line, length);
    for (size_t done = length; done < all; done *= 2) {
      std::memcpy(lines_[i] + done, lines_[i], std::min(done, all - done));
    }
  }
  const void* repeat_elements(size_t i, const void* from, int64_t rows) {
    const auto spread = [&](auto word) {
      using Word = decltype(word);
      auto* to = reinterpret_cast<Word*>(lines_[i]);
      for (int64_t r = 0; r < rows; ++r)
        std::fill_n(to + r * inner_.size, inner_.size, static_cast<const Word*>(from)[r]);
    };
    switch (s_.width[i]) {
      case 1:
        spread(uint8_t());
        break;
      case 4:
        spread(uint32_t());
        break;
      default:
        spread(uint64_t());
    }
    return lines_[i];
  }

  const Elementwise& s_;
  const Walk::Level &outer_, &inner_;
  const int64_t rows_;  // lines of the outer level in a row
  alignas(64) std::byte lines_[3][kElements * sizeof(uint64_t)];
};

uint32_t run_levels(const Elementwise& s, std::span<const Walk::Level> levels, const void** a, std::byte*& to) {
  const Walk::Level& level = levels.back();
  if (levels.size() == 1) {
    const uint32_t failed = run_row(s, a, to, level.size, level.moving);
    for (size_t i = 0; i < s.count; ++i) {
      a[i] = static_cast<const std::byte*>(a[i]) + (level.moving >> i & 1 ? level.size : 1) * s.width[i];
    }
    to += level.size * s.result_width;
    return failed;
  }
  if (levels.size() == 2 && !s.converts && ShortLines::serve(level, levels[0])) {
    return ShortLines(s, level, levels[0]).run(a, to);
  }
  const void* begin[3] = {a[0], a[1], a[2]};
  for (int64_t k = 0; k < level.size; ++k) {
    // An argument that does not move along this dimension is read again from where it began.
    for (size_t i = 0; i < s.count; ++i) {
      if (!(level.moving >> i & 1)) a[i] = begin[i];
    }
    if (const uint32_t failed = run_levels(s, levels.first(levels.size() - 1), a, to)) return failed;
  }
  return 0;
}

bool same_sizes(const Dims& a, const Dims& b) {
  const size_t rank = a.size();
  if (rank != b.size()) return false;
  for (size_t d = 0; d < rank; ++d) {
    if (a[d] != b[d]) return false;
  }
  return true;
}

// The argument that has the sizes of the result, if each other one has the same sizes or a single element; else null.
// `moving`: as in Level.
const DynamicOperand* longest(std::span<const DynamicOperand* const> arguments, unsigned& moving) {
  const DynamicOperand* most = arguments[0];
  for (const DynamicOperand* a : arguments.subspan(1)) {
    if (a->count > most->count || (a->count == most->count && a->rank() > most->rank())) most = a;
  }
  moving = 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i]->count == 1 && arguments[i]->rank() <= most->rank()) continue;
    if (arguments[i] != most && !same_sizes(*arguments[i]->dims, *most->dims)) return nullptr;
    moving |= 1U << i;
  }
  return most;
}

uint32_t run_elementwise(const Elementwise& s, DynamicCall& call) {
  const DynamicOperand* arguments[3] = {};
  const void* a[3] = {};
  for (size_t i = 0; i < s.count; ++i) {
    arguments[i] = &call.inputs[s.arguments[i]];
    a[i] = arguments[i]->data;
  }
  unsigned moving = 0;
  if (const DynamicOperand* most = longest({arguments, s.count}, moving)) {
    const int64_t count = most->count;
    void* to = call.make(0, *most->dims, count);
    if (!to) return kNotDynamic;
    return count == 0 ? 0 : run_row(s, a, to, count, moving);
  }
  Walk walk;
  if (!walk.spread({arguments, s.count})) return kNotDynamic;
  auto* to = static_cast<std::byte*>(call.make(0, walk.dims));
  if (!to) return kNotDynamic;
  if (std::ranges::find(walk.dims, 0) != walk.dims.end()) return 0;
  if (walk.levels().empty()) return run_row(s, a, to, 1, 7);
  return run_levels(s, walk.levels(), a, to);
}

// An operand of rank 0.
Operand one_element(const ir::Value* v) {
  Operand operand;
  if (v) operand.type = v->type.element;
  return operand;
}

DynamicKernel elementwise_kernel(const DynamicContext& context) {
  const ir::Node& node = context.node;
  std::vector<Operand> in;
  for (const ir::Value* v : node.inputs) in.push_back(one_element(v));
  ElementwiseForm form;
  with_form(node, in, one_element(node.outputs[0]),
            [&](const ElementwiseForm& said) { form = in_one_type(said, node); });
  Elementwise made;
  made.result_width = static_cast<uint8_t>(byte_width(node.outputs[0]->type.element));
  if (form.kind == ElementwiseForm::Kind::kConversion) {
    made.converts = true;
    made.converter = form.converter;
    made.count = 1;
  } else if (form.kind == ElementwiseForm::Kind::kOperation && form.axis < 0 && form.op != ElementwiseOp::kClip) {
    const bool where = form.op == ElementwiseOp::kWhere;
    const ElementType type = node.inputs[form.arguments[where ? 1 : 0]]->type.element;
    if (!is_stored_as_computed(type)) return {};
    made.params = form.params;
    made.count = kernels::info(form.op).inputs;
    std::copy_n(form.arguments, 3, made.arguments);
    if (where) {
      made.where = kernels::kernels().where[std::countr_zero(byte_width(type))];
    } else {
      made.rows = kernels::elementwise_rows(form.op, compute_type(type));
    }
  } else {
    return {};
  }
  for (size_t i = 0; i < made.count; ++i) {
    made.width[i] = static_cast<uint8_t>(byte_width(node.inputs[made.arguments[i]]->type.element));
  }
  return dynamic_kernel<Elementwise, run_elementwise>(context, made);
}

bool is_known_tensor(const ir::Value* v) {
  return !v || (v->type.is_tensor() && v->type.element != ElementType::kUndefined);
}

bool is_texts(const ir::Value* v) {
  return v && is_string(v->type.element);
}

template <class Word>
void copy_words(const void* from, int64_t from_stride, void* to, int64_t to_stride, int64_t count) {
  const auto* source = static_cast<const Word*>(from);
  auto* target = static_cast<Word*>(to);
  for (int64_t i = 0; i < count; ++i) target[i * to_stride] = source[i * from_stride];
}

void copy_line(size_t width, int64_t count, const void* from, int64_t from_stride, void* to, int64_t to_stride) {
  if (from_stride == 1 && to_stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(count) * width);
    return;
  }
  switch (width) {
    case 1:
      return copy_words<uint8_t>(from, from_stride, to, to_stride, count);
    case 2:
      return copy_words<uint16_t>(from, from_stride, to, to_stride, count);
    case 4:
      return copy_words<uint32_t>(from, from_stride, to, to_stride, count);
    case 8:
      return copy_words<uint64_t>(from, from_stride, to, to_stride, count);
    default: {
      const auto bytes = static_cast<int64_t>(width);
      return kernels::copy_blocks(from, from_stride * bytes, to, to_stride * bytes, width, static_cast<size_t>(count));
    }
  }
}

// Copies line by line.
void copy_lines(size_t width, std::span<const int64_t> dims, const std::byte* from,
                std::span<const int64_t> from_strides, std::byte* to, std::span<const int64_t> to_strides) {
  if (dims.size() == 1) return copy_line(width, dims[0], from, from_strides[0], to, to_strides[0]);
  const auto bytes = static_cast<int64_t>(width);
  for (int64_t i = 0; i < dims[0]; ++i) {
    copy_lines(width, dims.subspan(1), from + i * from_strides[0] * bytes, from_strides.subspan(1),
               to + i * to_strides[0] * bytes, to_strides.subspan(1));
  }
}

}  // namespace

DynamicKernel dynamic_kernel_of(const ir::Node& node, StateArena& arena) {
  if (!std::ranges::all_of(node.inputs, is_known_tensor)) return {};
  if (!std::ranges::all_of(node.outputs, [](const ir::Value* v) { return v && is_known_tensor(v); })) return {};
  const DynamicContext context{node, arena};
  if (std::ranges::any_of(node.inputs, is_texts) || std::ranges::any_of(node.outputs, is_texts)) {
    DynamicKernel kernel = node.op->dynamic_texts ? node.op->dynamic_texts(context) : DynamicKernel();
    kernel.takes_texts = true;
    return kernel;
  }
  if (node.op->dynamic) return node.op->dynamic(context);
  return node.op->elementwise ? elementwise_kernel(context) : DynamicKernel();
}

int64_t index_at(const void* list, bool wide, int64_t k) {
  return wide ? static_cast<const int64_t*>(list)[k] : int64_t{static_cast<const int32_t*>(list)[k]};
}

void copy_strided(size_t width, std::span<const int64_t> dims, const void* from, std::span<const int64_t> from_strides,
                  void* to, std::span<const int64_t> to_strides) {
  constexpr int64_t kFewElements = 256;  // so few elements are copied faster than a copy of them is prepared
  if (dims.empty()) {
    std::memcpy(to, from, width);
    return;
  }
  const int64_t count = element_count_unchecked(dims);
  if (count == 0) return;
  if (dims.size() == 1 || count <= kFewElements) {
    return copy_lines(width, dims, static_cast<const std::byte*>(from), from_strides, static_cast<std::byte*>(to),
                      to_strides);
  }
  kernels::CopyPlan plan;
  [[maybe_unused]] const Status prepared = kernels::prepare_copy(&plan, width, dims, from_strides, to_strides);
  TREADLE_ASSERT(prepared.ok());
  plan(from, to);
}

}  // namespace treadle

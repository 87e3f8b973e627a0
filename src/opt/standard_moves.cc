// Rewrites of nodes that move elements.
#include <algorithm>
#include <numeric>
#include <optional>

#include "op/axes.h"
#include "op/registry.h"
#include "opt/bytes.h"
#include "opt/match.h"
#include "opt/standard_site.h"

namespace treadle::opt {

// --- sizes of Reshape

namespace {

// Whether the model itself writes -1 for size `i`, in a Concat.
bool is_left_open(const ir::Value* sizes, size_t i) {
  if (!is(sizes->producer, "Concat")) return false;
  int64_t from = 0;
  for (const ir::Value* part : sizes->producer->inputs) {
    if (!part->type.is_concrete() || part->type.shape.size() != 1) return false;
    const int64_t count = part->type.shape[0].value(), at = static_cast<int64_t>(i) - from;
    if (at < count) return part->is_constant() && part->constant.int64_at(at) == -1;
    from += count;
  }
  return false;
}

// The sizes operand of a Reshape to this result; empty if more than one size is unknown. If a copied size is 0, a -1
// beside it has no meaning; only the model may state both.
std::vector<int64_t> stated_sizes(const Shape& x, const Shape& y, const ir::Value* given) {
  std::vector<int64_t> sizes;
  size_t copied = 0;
  std::optional<size_t> open;
  for (size_t i = 0; i < y.size(); ++i) {
    if (y[i].is_known(0)) return {};
    const bool is_copy = !y[i].is_known() && i < x.size() && same(x[i], y[i]);
    copied += is_copy;
    if (!is_copy && !y[i].is_known()) {
      if (open) return {};
      open = i;
    }
    sizes.push_back(is_copy ? 0 : y[i].value_or(-1));
  }
  return open && copied > 0 && !is_left_open(given, *open) ? std::vector<int64_t>() : sizes;
}

bool keeps_zeros(const ir::Node& reshape) {
  return reshape.attributes.get_int("allowzero") != 0;
}

}  // namespace

bool states_sizes(Site& site) {
  ir::Node& reshape = site.node();
  if (reshape.version->since < 5 || reshape.inputs[1]->is_constant() || keeps_zeros(reshape)) return false;
  const Type &x = reshape.inputs[0]->type, &y = reshape.outputs[0]->type;
  if (!x.has_shape || !y.has_shape || y.shape.empty()) return false;
  const std::vector<int64_t> sizes = stated_sizes(x.shape, y.shape, reshape.inputs[1]);
  if (sizes.empty()) return false;
  reshape.inputs[1] = site.constant(Tensor::of_int64(sizes), "sizes");
  return true;
}

bool reshapes_once(Site& site) {
  const ir::Node& node = site.node();
  const ir::Node* const before = site.sole_producer(0, {"Reshape"});
  const OpVersion* const version = site.version_of("Reshape");
  const Type& type = node.outputs[0]->type;
  if (!before || !version || version->since < 5 || !type.is_concrete()) return false;
  const Dims dims = known_dims(type.shape);
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return false;
  site.put("Reshape", {before->inputs[0], site.constant(Tensor::of_int64(dims), "sizes")});
  return true;
}

// --- Transpose

namespace {

std::vector<int64_t> permutation(const ir::Node& transpose, int64_t rank) {
  const auto given = transpose.attributes.get_ints("perm");
  std::vector<int64_t> axes(given.begin(), given.end());
  for (int64_t i = given.empty() ? rank : 0; i-- > 0;) axes.push_back(i);
  return axes;
}

}  // namespace

bool permutes_once(Site& site) {
  ir::Node& last = site.node();
  const ir::Node* const first = site.sole_producer(0, {"Transpose"});
  const int64_t rank = first ? first->inputs[0]->type.rank() : -1;
  if (rank < 0) return false;
  const std::vector<int64_t> before = permutation(*first, rank);
  std::vector<int64_t> axes = permutation(last, rank);
  for (int64_t& axis : axes) axis = before[static_cast<size_t>(axis)];
  last.attributes.set(ir::Attribute::of("perm", std::move(axes)));
  last.inputs[0] = first->inputs[0];
  return true;
}

// --- blocks

namespace {

// Every `block`-th row and column of an image, beginning at `row` and `column`.
struct Picked {
  ir::Value* image = nullptr;
  int64_t block = 0, row = 0, column = 0;
};

// The elements that a chain of Slices picks, if it picks along each axis once.
std::optional<Picked> picked_by(const ir::Value* v) {
  int64_t starts[2] = {0, 0}, steps[2] = {1, 1};
  const ir::Node* slice = v->producer;
  for (; is(slice, "Slice"); v = slice->inputs[0], slice = v->producer) {
    const auto from = constant_ints(*slice, 1), axes = constant_ints(*slice, 3), by = constant_ints(*slice, 4);
    if (slice->version->since < 10 || !from || !axes || !by || axes->size() != by->size()) return {};
    for (size_t i = 0; i < axes->size(); ++i) {
      const int64_t axis = from_front((*axes)[i], 4) - 2;
      if (axis < 0 || axis > 1 || steps[axis] != 1 || (*from)[i] < 0 || (*by)[i] < 1) return {};
      starts[axis] = (*from)[i];
      steps[axis] = (*by)[i];
    }
  }
  if (steps[0] < 2 || steps[0] != steps[1]) return {};
  return Picked{const_cast<ir::Value*>(v), steps[0], starts[0], starts[1]};
}

}  // namespace

bool moves_blocks(Site& site) {
  ir::Node& concat = site.node();
  const Type& type = concat.outputs[0]->type;
  if (type.rank() != 4 || from_front(concat.attributes.get_int("axis"), 4) != 1 || concat.inputs.size() < 4)
    return false;
  std::vector<int64_t> order;
  std::optional<Picked> first;
  for (const ir::Value* v : concat.inputs) {
    const auto picked = site.uses().once(v) ? picked_by(v) : std::nullopt;
    if (!picked || (first && (picked->image != first->image || picked->block != first->block))) return false;
    if (!first) first = picked;
    if (picked->row >= picked->block || picked->column >= picked->block) return false;
    order.push_back(picked->row * picked->block + picked->column);
  }
  std::vector<int64_t> sorted = order, all(order.size());
  std::sort(sorted.begin(), sorted.end());
  std::iota(all.begin(), all.end(), 0);
  const Type& image = first->image->type;
  const int64_t block = first->block;
  if (sorted != all || block * block != static_cast<int64_t>(order.size())) return false;
  if (!is_float(image.element) || image.rank() != 4 || !image.shape[1].is_known()) return false;
  for (size_t axis = 2; axis < 4; ++axis) {  // the slices must pick every element
    if (!image.shape[axis].is_known() || !type.shape[axis].is_known(image.shape[axis].value() / block)) return false;
    if (image.shape[axis].value() % block != 0) return false;
  }
  ir::Attributes attributes;
  attributes.set(ir::Attribute::of("blocksize", block));
  if (order == all) {
    site.put("SpaceToDepth", {first->image}, attributes);
    return true;
  }
  std::vector<int64_t> channels;
  const int64_t count = image.shape[1].value();
  for (const int64_t position : order) {
    for (int64_t c = 0; c < count; ++c) channels.push_back(position * count + c);
  }
  ir::Value* const blocks = site.before("SpaceToDepth", {first->image}, type, "blocks", attributes);
  attributes = {};
  attributes.set(ir::Attribute::of("axis", 1));
  site.put("Gather", {blocks, site.constant(Tensor::of_int64(channels), "channels")}, attributes);
  return true;
}

}  // namespace treadle::opt

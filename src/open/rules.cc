#include "open/rules.h"

#include <cstring>

#include "op/axes.h"
#include "op/loop_view.h"
#include "open/behind.h"

namespace treadle::open {

namespace {

std::string text_of(std::span<const int64_t> numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ","));
}

class Walk {
 public:
  Walk(const Reading& now, const Reading& old, const Reading& twice, const Openings& openings)
      : now_(now), old_(old), twice_(twice), openings_(openings) {}

  Found run() {
    walk(now_.top(), old_.top(), twice_.top());
    return std::move(found_);
  }

 private:
  // The node with symbols, with the old sizes, and with twice these sizes.
  struct Pair {
    const ir::Node &now, &old, &twice;

    const ir::Value* input(size_t i) const { return i < now.inputs.size() ? now.inputs[i] : nullptr; }
    const Shape* shape(size_t i) const { return shape_of(input(i)); }
    const Shape* old_shape(size_t i) const { return i < old.inputs.size() ? shape_of(old.inputs[i]) : nullptr; }
  };

  void walk(const ir::Region& now, const ir::Region& old, const ir::Region& twice) {
    for (size_t i = 0; i < now.nodes.size(); ++i) {
      const ir::Node& node = *now.nodes[i];
      if (behind_.contains(node)) {
        behind_.add(node);
        continue;
      }
      const size_t before = found_.edits.size() + found_.obstacles.size();
      visit({node, *old.nodes[i], *twice.nodes[i]});
      around_.push_back({node, *old.nodes[i], *twice.nodes[i]});
      for (size_t r = 0; r < node.regions.size(); ++r) {
        walk(*node.regions[r], *old.nodes[i]->regions[r], *twice.nodes[i]->regions[r]);
      }
      around_.pop_back();
      if (found_.edits.size() + found_.obstacles.size() > before) behind_.add(node);
    }
  }

  void visit(const Pair& pair) {
    const size_t before = found_.edits.size() + found_.obstacles.size();
    if (is_loop(pair.now)) check_loop(pair);
    if (pair.now.op->domain.empty()) check_operator(pair, pair.now.op->name);
    const bool fails = twice_.failure(pair.twice) && !old_.failure(pair.old);
    if (fails && pair.now.op->elementwise) check_conflict(pair);
    const Status* failure = now_.failure(pair.now);
    if (failure && !old_.failure(pair.old) && found_.edits.size() + found_.obstacles.size() == before) {
      block(pair, failure->message());
    }
  }

  void check_operator(const Pair& pair, std::string_view op) {
    if (op == "LSTM" || op == "GRU" || op == "RNN") return check_recurrence(pair);
    if (op == "Concat") return check_concat(pair);
    const std::optional<Shape> now = first_operand(pair);
    const Shape* old = pair.old_shape(0);
    if (!now || !old || !openings_.opens(*now)) return;
    if (op == "Reshape") return check_reshape(pair, *now);
    if (op == "Flatten") return check_flatten(pair, *now);
    if (op == "Expand") return check_expand(pair, *now, *old);
    if (op == "Squeeze") return check_squeeze(pair, *now);
    if (op == "Slice") return check_slice(pair, *now, *old);
    if (op == "Gather") return check_gather(pair, *now, *old);
    if (op == "TopK") return check_top_k(pair, *now, *old);
  }

  // The sizes of operand 0. One that inference does not know with symbols may be plain from the numbers: it is twice as
  // large with twice the size.
  std::optional<Shape> first_operand(const Pair& pair) const {
    const Shape *now = pair.shape(0), *old = pair.old_shape(0);
    if (!now) return std::nullopt;
    const Shape* twice = shape_of(pair.twice.inputs[0]);
    Shape sizes = *now;
    const bool comparable = old && twice && old->size() == sizes.size() && twice->size() == sizes.size();
    for (size_t axis = 0; comparable && axis < sizes.size(); ++axis) {
      if (!sizes[axis].is_unknown() || !(*old)[axis].is_known() || !(*twice)[axis].is_known()) continue;
      const int64_t size = (*old)[axis].value();
      const Opening* opening = openings_.only_of_size(size);
      if ((*twice)[axis].value() == size) {
        sizes[axis] = size;
      } else if (opening && (*twice)[axis].value() == 2 * size) {
        sizes[axis] = Dim::symbol(opening->symbol);
      }
    }
    return sizes;
  }

  // --- nodes that list sizes

  void check_reshape(const Pair& pair, const Shape& in) {
    const Shape *out = shape_of(pair.now.outputs[0]), *out_old = shape_of(pair.old.outputs[0]);
    if (!out_old) return;
    auto target = now_.integers(pair.input(1));
    if (pair.now.version->since < 5) {
      const auto shape = pair.now.attributes.get_ints("shape");
      target.emplace(shape.begin(), shape.end());
    }
    const Reshaped wanted = reshaped({in, *out_old, target ? &*target : nullptr}, openings_, merged_);
    if (out && wanted.why.empty() && agree(*out, wanted.out) && !twice_.failure(pair.twice)) return;
    if (!target && !wanted.why.empty()) return;  // the model computes its sizes
    const std::string shape =
        target ? fmt::format("its shape is the constant {}", text_of(*target)) : "its shape is computed";
    if (!wanted.why.empty()) return block(pair, fmt::format("{}, and {}", shape, wanted.why));
    if (!target)
      return block(pair,
                   fmt::format("{} as {}, expected {}", shape, out ? to_string(*out) : "?", to_string(wanted.out)));
    const bool zero_is_size = pair.now.attributes.get_int("allowzero", 0) != 0;
    auto sizes = as_target(*target, in, wanted.out, zero_is_size);
    if (!sizes) return block(pair, fmt::format("{}, expected {}", shape, to_string(wanted.out)));
    if (std::ranges::equal(*sizes, *target, {}, {}, [](int64_t size) { return SizeOf{size, nullptr}; })) return;
    set_sizes(pair, std::move(*sizes), *target);
  }

  // Whether the sizes are equal, for other sizes too. They may be written in different ways.
  bool agree(const Shape& a, const Shape& b) const {
    for (size_t axis = 0; axis < a.size() && a.size() == b.size(); ++axis) {
      const auto equal = [&](int64_t times) {
        return same(openings_.at(a[axis], times), openings_.at(b[axis], times));
      };
      if (!same(a[axis], b[axis]) && !(equal(2) && equal(3))) return false;
    }
    return a.size() == b.size();
  }

  // What a Reshape of `in` states to give `out`: 0 for the size of the operand's axis, -1 for the rest.
  std::optional<std::vector<SizeOf>> as_target(std::span<const int64_t> target, const Shape& in, const Shape& out,
                                               bool zero_is_size) const {
    std::vector<SizeOf> sizes(out.size());
    std::vector<size_t> rests;
    for (size_t j = 0; j < out.size(); ++j) {
      const bool keeps = !zero_is_size && j < in.size() && same(in[j], out[j]);
      if (openings_.opens(out[j]) ? keeps : target[j] == 0 && keeps) {
        sizes[j] = {0, nullptr};
      } else if (out[j].is_known()) {
        sizes[j] = {out[j].value(), nullptr};
      } else {
        rests.push_back(j);
      }
    }
    // One size follows from the others; where there are more, they are computed.
    if (rests.size() > 1) {
      std::erase_if(rests, [&](size_t j) {
        const auto product = openings_.opens(out[j]) ? openings_.as_product(out[j]) : std::nullopt;
        if (product) sizes[j] = *product;
        return product.has_value();
      });
    }
    if (rests.size() > 1) return std::nullopt;
    for (const size_t j : rests) sizes[j] = {-1, nullptr};
    return sizes;
  }

  void check_flatten(const Pair& pair, const Shape& in) {
    const Shape *out = shape_of(pair.now.outputs[0]), *out_old = shape_of(pair.old.outputs[0]);
    if (!out || !out_old) return;
    const auto rank = static_cast<int64_t>(in.size());
    const int64_t axis = from_front(pair.now.attributes.get_int("axis", 1), rank);
    const size_t at = static_cast<size_t>(std::clamp<int64_t>(axis, 0, rank));
    if (at > 1) merged_.add((*out)[0], std::span(in).first(at));
    if (in.size() - at > 1) merged_.add((*out)[1], std::span(in).subspan(at));
  }

  void check_expand(const Pair& pair, const Shape& in, const Shape& in_old) {
    const auto target = now_.integers(pair.input(1));
    if (!target) return;
    std::vector<int64_t> sizes = *target;
    for (size_t back = 1; back <= std::min(sizes.size(), in.size()); ++back) {
      int64_t& size = sizes[sizes.size() - back];
      const size_t axis = in.size() - back;
      if (size == 1 || !openings_.opens(in[axis])) continue;
      if (!in_old[axis].is_known(size)) {
        return block(pair, fmt::format("its shape is the constant {}, which spreads size {}", text_of(*target),
                                       in[axis].to_string()));
      }
      size = 1;
    }
    if (sizes == *target) return;
    std::vector<SizeOf> numbers;
    for (const int64_t size : sizes) numbers.push_back({size, nullptr});
    set_sizes(pair, std::move(numbers), *target);
  }

  void set_sizes(const Pair& pair, std::vector<SizeOf> sizes, std::span<const int64_t> was) {
    Edit edit = edit_of(pair, Edit::Kind::kShape, 1);
    edit.sizes = std::move(sizes);
    edit.was = text_of(was);
    found_.edits.push_back(std::move(edit));
  }

  static Edit edit_of(const Pair& pair, Edit::Kind kind, size_t input) {
    Edit edit;
    edit.kind = kind;
    edit.path = pair.now.name.view();
    edit.op = pair.now.op->name;
    edit.input = input;
    return edit;
  }

  // --- nodes that pick entries

  void check_squeeze(const Pair& pair, const Shape& in) {
    std::optional<std::vector<int64_t>> axes = now_.integers(pair.input(1));
    if (!pair.input(1) && pair.now.attributes.find("axes")) {
      const auto given = pair.now.attributes.get_ints("axes");
      axes.emplace(given.begin(), given.end());
    }
    if (!axes) {
      if (!pair.input(1)) block(pair, "it takes out all axes of size 1");
      return;
    }
    for (const int64_t axis : *axes) {
      const Dim& size = in[static_cast<size_t>(from_front(axis, static_cast<int64_t>(in.size())))];
      if (openings_.opens(size)) block(pair, fmt::format("it takes out axis {}, of size {}", axis, size.to_string()));
    }
  }

  void check_slice(const Pair& pair, const Shape& in, const Shape& old) {
    const auto list = [&](size_t input, const char* name) -> std::optional<std::vector<int64_t>> {
      if (pair.now.version->since >= 10) return now_.integers(pair.input(input));
      const auto given = pair.now.attributes.get_ints(name);
      return std::vector<int64_t>(given.begin(), given.end());
    };
    const auto starts = list(1, "starts"), ends = list(2, "ends");
    auto axes = list(3, "axes");
    for (size_t i = 0; i < in.size(); ++i) {
      if (!openings_.opens(in[i]) || !old[i].is_known()) continue;
      for (size_t k = 0; k < std::max(starts ? starts->size() : 0, ends ? ends->size() : 0); ++k) {
        const int64_t axis = axes && !axes->empty() ? (k < axes->size() ? (*axes)[k] : 0) : static_cast<int64_t>(k);
        if (static_cast<size_t>(from_front(axis, static_cast<int64_t>(in.size()))) != i) continue;
        const int64_t size = old[i].value();
        if (ends && k < ends->size() && (*ends)[k] == size) {
          block(pair, fmt::format("it ends at {}, which was the end of axis {}", size, i));
        } else if (starts && k < starts->size() && size > 1 && (*starts)[k] == size - 1) {
          block(pair, fmt::format("it starts at {}, which was the last entry of axis {}", size - 1, i));
        }
      }
    }
  }

  void check_gather(const Pair& pair, const Shape& in, const Shape& old) {
    const auto indices = now_.integers(pair.input(1));
    const int64_t axis = from_front(pair.now.attributes.get_int("axis", 0), static_cast<int64_t>(in.size()));
    const Dim& size = in[static_cast<size_t>(axis)];
    const Dim& size_old = old[static_cast<size_t>(axis)];
    if (!indices || !openings_.opens(size) || !size_old.is_known()) return;
    for (const int64_t index : *indices) {
      if (index != size_old.value() - 1) continue;
      const char* which = index == 0 ? "only" : "last";
      return block(pair, fmt::format("it picks entry {}, which was the {} one of axis {}", index, which, axis));
    }
  }

  void check_top_k(const Pair& pair, const Shape& in, const Shape& old) {
    auto count = now_.integers(pair.input(1));
    if (pair.now.version->since < 10) count.emplace(1, pair.now.attributes.get_int("k"));
    const int64_t axis = from_front(pair.now.attributes.get_int("axis", -1), static_cast<int64_t>(in.size()));
    const auto at = static_cast<size_t>(axis);
    if (!count || count->size() != 1 || !openings_.opens(in[at]) || !same(old[at], count->front())) return;
    block(pair, fmt::format("it takes the {} largest, which was all of axis {}", count->front(), axis));
  }

  // --- operands that have to follow

  void check_recurrence(const Pair& pair) {
    const Shape* in = pair.shape(0);
    if (!in || in->size() != 3) return;
    const bool batch_first = pair.now.attributes.get_int("layout", 0) != 0;
    const Dim &batch = (*in)[batch_first ? 0 : 1], &time = (*in)[batch_first ? 1 : 0];
    if (openings_.opens(batch)) {
      follow(pair, 4, 0, batch);
      for (const size_t state : {5, 6}) follow(pair, state, batch_first ? 0 : 1, batch);
    }
    if (openings_.opens(time) && now_.constant(pair.input(4))) block(pair, "its sequence_lens are constant");
  }

  void check_concat(const Pair& pair) {
    const Shape* out = shape_of(pair.old.outputs[0]);
    if (!out) return;
    const int64_t along = from_front(pair.now.attributes.get_int("axis", 0), static_cast<int64_t>(out->size()));
    for (size_t axis = 0; axis < out->size(); ++axis) {
      if (static_cast<int64_t>(axis) == along) continue;
      const Dim* opened = nullptr;
      for (size_t i = 0; i < pair.now.inputs.size() && !opened; ++i) {
        const Shape* shape = pair.shape(i);
        if (shape && axis < shape->size() && openings_.opens((*shape)[axis])) opened = &(*shape)[axis];
      }
      for (size_t i = 0; opened && i < pair.now.inputs.size(); ++i) follow(pair, i, axis, *opened);
    }
  }

  void check_loop(const Pair& pair) {
    const auto now = LoopView::read(pair.now), old = LoopView::read(pair.old), twice = LoopView::read(pair.twice);
    if (!now.ok() || !old.ok() || !twice.ok() || (is_scan(pair.now) && pair.now.version->since < 9)) return;
    check_trip_count(pair, *now);
    for (size_t i = 0; i < now->states(); ++i) {
      check_state(pair, now->signature().state_input(i), now->state(i), old->state(i), twice->state(i));
    }
  }

  // As many iterations as an operand has entries are probably an iteration for each of them.
  void check_trip_count(const Pair& pair, const LoopView& loop) {
    const auto trip_count = now_.integers(loop.trip_count());
    if (!trip_count || trip_count->size() != 1) return;
    std::vector<const ir::Value*> read(pair.now.inputs.begin(), pair.now.inputs.end());
    for (const ir::Value* value : loop.captures()) read.push_back(value);
    for (const ir::Value* value : read) {
      const Shape* shape = shape_of(value);
      for (const Dim& size : shape ? *shape : Shape()) {
        if (!openings_.opens(size) || !same(openings_.at(size), trip_count->front())) continue;
        const int64_t count = trip_count->front();
        return block(pair, fmt::format("it makes {} iteration{}, as many as \"{}\" has entries", count,
                                       count == 1 ? "" : "s", value->name.view()));
      }
    }
  }

  // A state that begins with the old size, and goes on with the new one.
  void check_state(const Pair& pair, size_t input, const LoopView::State& now, const LoopView::State& old,
                   const LoopView::State& twice) {
    const Shape *initial = shape_of(now.initial), *after = shape_of(now.after);
    const Shape *before_old = shape_of(old.before), *before_twice = shape_of(twice.before);
    if (!initial || !before_old || initial->size() != before_old->size()) return;
    for (size_t axis = 0; axis < initial->size(); ++axis) {
      const Dim& size_old = (*before_old)[axis];
      if (!(*initial)[axis].is_known() || !size_old.is_known()) continue;
      const bool keeps = before_twice && before_twice->size() > axis && (*before_twice)[axis].is_known();
      const Opening* opening = openings_.only_of_size(size_old.value());
      const bool is_only = std::ranges::count_if(*before_old, [&](const Dim& dim) { return same(dim, size_old); }) == 1;
      if (keeps || (!before_twice && !(opening && is_only))) continue;
      const bool next = after && after->size() == initial->size() && openings_.opens((*after)[axis]);
      const Dim size = next ? (*after)[axis] : opening ? Dim::symbol(opening->symbol) : Dim();
      if (!size.is_unknown()) follow(pair, input, axis, size);
    }
  }

  // Operands that are aligned at their last axes, and do not fit with other sizes.
  void check_conflict(const Pair& pair) {
    for (size_t i = 0; i < pair.now.inputs.size(); ++i) {
      for (size_t j = 0; j < pair.now.inputs.size(); ++j) {
        const Shape *fixed = pair.shape(i), *opened = pair.shape(j);
        if (!fixed || !opened) continue;
        for (size_t back = 1; back <= std::min(fixed->size(), opened->size()); ++back) {
          const Dim& size = (*opened)[opened->size() - back];
          if (openings_.opens(size)) follow_constant(pair, i, fixed->size() - back, size);
        }
      }
    }
  }

  // The same as follow() for a constant, and for a state that begins with one.
  void follow_constant(const Pair& pair, size_t i, size_t axis, const Dim& size) {
    const ir::Value* value = pair.input(i);
    if (now_.constant(value)) return follow(pair, i, axis, size);
    if (around_.empty() || !is_loop(around_.back().now)) return;
    const auto loop = LoopView::read(around_.back().now);
    if (!loop.ok()) return;
    const size_t state = loop->state_before(value);
    if (state < loop->states()) return follow(around_.back(), loop->signature().state_input(state), axis, size);
    // The operand may be computed from a state; one that has the size once can be meant.
    for (size_t s = 0; s < loop->states(); ++s) {
      const ir::Value* initial = loop->state(s).initial;
      const Shape* shape = shape_of(initial);
      if (!shape || !now_.constant(initial)) continue;
      const auto has_size = [&](const Dim& dim) { return same(dim, openings_.at(size)); };
      if (std::ranges::count_if(*shape, has_size) != 1) continue;
      const auto at = static_cast<size_t>(std::ranges::find_if(*shape, has_size) - shape->begin());
      follow(around_.back(), loop->signature().state_input(s), at, size);
    }
  }

  // Input `i` has to have `size` along `axis`, and may have the old one.
  void follow(const Pair& pair, size_t i, size_t axis, const Dim& size) {
    const Shape *shape = pair.shape(i), *old = pair.old_shape(i);
    if (!shape || !old || axis >= shape->size() || !(*shape)[axis].is_known()) return;
    const int64_t had = (*shape)[axis].value();
    if (!same(openings_.at(size), had)) return;
    const auto product = openings_.as_product(size);
    const std::string has =
        fmt::format("input {} has size {} along axis {}, expected {}", i, had, axis, size.to_string());
    if (!product) return block(pair, has);
    Edit edit = edit_of(pair, Edit::Kind::kSpread, i);
    edit.sizes.resize(shape->size());
    edit.sizes[axis] = *product;
    if (had != 1) {
      const Tensor* contents = now_.constant(pair.input(i));
      auto row = contents ? only_row(*contents, axis) : std::nullopt;
      if (!row) return block(pair, has + (contents ? ": its entries there differ" : ""));
      edit.row = std::move(*row);
    }
    for (const Edit& other : found_.edits) {
      if (other.path == edit.path && other.input == edit.input) return;
    }
    found_.edits.push_back(std::move(edit));
  }

  // One entry along the axis, if all are equal.
  static std::optional<Tensor> only_row(const Tensor& all, size_t axis) {
    if (is_string(all.type())) return std::nullopt;
    Dims dims = all.dims();
    size_t outer = 1, inner = byte_width(all.type());
    for (size_t d = 0; d < dims.size(); ++d)
      (d < axis ? outer : d > axis ? inner : outer) *= d == axis ? 1 : static_cast<size_t>(dims[d]);
    const auto count = static_cast<size_t>(dims[axis]);
    dims[axis] = 1;
    auto row = Tensor::allocate(all.type(), dims);
    if (!row.ok()) return std::nullopt;
    const auto* from = static_cast<const std::byte*>(all.raw());
    auto* to = static_cast<std::byte*>(row->mutable_raw());
    for (size_t o = 0; o < outer; ++o) {
      const std::byte* first = from + o * count * inner;
      for (size_t k = 1; k < count; ++k) {
        if (std::memcmp(first, first + k * inner, inner) != 0) return std::nullopt;
      }
      std::memcpy(to + o * inner, first, inner);
    }
    return std::move(*row);
  }

  void block(const Pair& pair, std::string why) {
    found_.obstacles.push_back({std::string(pair.now.name.view()), std::string(pair.now.op->name), std::move(why)});
  }

  const Reading &now_, &old_, &twice_;
  const Openings& openings_;
  MergedAxes merged_;
  Behind behind_;
  std::vector<Pair> around_;  // the nodes in whose bodies the walk is
  Found found_;
};

}  // namespace

Found walk(const Reading& now, const Reading& old, const Reading& twice, const Openings& openings) {
  return Walk(now, old, twice, openings).run();
}

}  // namespace treadle::open

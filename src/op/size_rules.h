#pragma once
// The sizes of results, one rule for each kind of operator, as templates over what a size is:
//
//   NumberSizes  whole numbers, all of them known (op/sizes.h): dynamic kernels and preparation
//   DimSizes     numbers, symbols and unknown sizes (op/sizes.h): inference, and with it checking and planning
//   IrSizes      values that native code computes in the run (jit/ir_sizes.h)
//
// S stands for one of them. It has the types Size, List (one size per axis) and Truth (of a comparison), arithmetic on
// sizes, and two ways to demand something:
//
//   require(truth, message)   `truth` has to hold, else `message()` is the error
//   share(a, b, message)      both sizes have to be equal; `a` becomes what is known of them
//
// Both return false where a rule cannot go on; a rule returns that to its caller. S then knows what went wrong:
// DimSizes the error, NumberSizes nothing more. IrSizes never returns false: it writes a check into the code. A symbol
// that may be equal counts as equal.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>

#include "base/inline_vector.h"
#include "base/status.h"

namespace treadle::size_rules {

// --- elementwise operations, Expand

// `size` becomes that of an axis along which an operand of it meets one of `other`: sizes of 1 are spread.
template <class S>
bool broadcast(S& s, typename S::Size& size, const typename S::Size& other) {
  if (s.is_certainly(other, 1)) return true;
  if (s.is_certainly(size, 1)) return size = other, true;
  return s.share(size, other, [&] {
    return error(Code::kInvalidArgument, "sizes {} and {} do not broadcast, expected equal sizes or 1", s.text(size),
                 s.text(other));
  });
}

// --- Slice

// The elements of one axis that Slice takes: `count`, from `start` on.
template <class S>
struct Part {
  typename S::Size start, count;
};

template <class S>
Part<S> slice(S& s, const typename S::Size& size, const typename S::Size& start, const typename S::Size& end,
              int64_t step) {
  using Size = typename S::Size;
  if constexpr (S::kSymbolic) {
    if (auto count = s.simple_slice(size, start, end, step)) return {{}, *std::move(count)};
  }
  // Negative bounds count from the end. A bound outside of the axis is moved to its nearest end.
  const auto bound = [&](const Size& given, const Size& least, const Size& most) {
    return s.max(s.min(s.from_front(given, size), most), least);
  };
  const Size zero = s.number(0);
  if (step > 0) {
    const Size first = bound(start, zero, size), last = bound(end, zero, size);
    return {first, s.ceil_div(s.max(s.sub(last, first), zero), s.number(step))};
  }
  const Size most = s.sub(size, s.number(1));
  const Size first = bound(start, zero, most), last = bound(end, s.number(-1), most);
  const int64_t stride = -std::max(step, -std::numeric_limits<int64_t>::max());
  const Size count = s.ceil_div(s.max(s.sub(first, last), zero), s.number(stride));
  return {first, s.select(s.is(size, 0), zero, count)};
}

// --- Reshape

// The size that -1 stands for, and whether the sizes make up all elements. `is_rest`: which of `sizes` are -1.
template <class S, class Truths>
bool take_rest(S& s, const typename S::List& in, const Truths& is_rest, const typename S::Truth& has_rest,
               typename S::List& sizes) {
  using Size = typename S::Size;
  if (s.is_never(has_rest)) {
    if constexpr (S::kSymbolic) s.deduce_unknown(in, sizes);
    return s.require(s.equal(s.count(in), s.count(sizes)), [&] {
      return error(Code::kInvalidArgument, "an input of shape {} has {} elements and cannot become {}, expected {}",
                   s.text(in), s.text(s.count(in)), s.text(sizes), s.text(s.count(sizes)));
    });
  }
  const auto [count, product] = s.counts(in, sizes, is_rest);
  const auto is_empty = s.is(product, 0);
  if (!s.require(s.negated(s.both(has_rest, is_empty)), [&] {
        return error(Code::kInvalidArgument, "shape is {}, expected no -1 beside a size of 0: any size would fit",
                     s.text(sizes));
      })) {
    return false;
  }
  // Native code divides before it acts on what it has checked.
  const Size rest = s.floor_div(count, s.select(is_empty, s.number(1), product));
  const bool fits = s.require(s.equal(s.mul(product, s.select(has_rest, rest, s.number(1))), count), [&] {
    return error(
        Code::kInvalidArgument,
        "an input of shape {} has {} elements, expected a multiple of {}: the product of the sizes that shape states",
        s.text(in), s.text(s.count(in)), s.text(product));
  });
  for (size_t d = 0; d < sizes.size(); ++d) sizes[d] = s.select(is_rest[d], rest, sizes[d]);
  return fits;
}

// `sizes` as a model states them become sizes: 0 keeps the size of `in` unless `zero_is_size`, and -1 takes all
// elements that the others leave over. `in`: null where not even its rank is known.
template <class S>
bool reshape(S& s, const typename S::List* in, bool zero_is_size, typename S::List& sizes) {
  using Size = typename S::Size;
  const auto twice = [] {
    return error(Code::kInvalidArgument, "shape holds -1 more than once, expected it at most once");
  };
  const Size zero = s.number(0), one = s.number(1);
  InlineVector<typename S::Truth, 6> is_rest;
  Size rests = zero;  // how many -1 there are
  for (size_t d = 0; d < sizes.size(); ++d) {
    const Size given = sizes[d];
    is_rest.push_back(s.is(given, -1));
    rests = s.add(rests, s.select(is_rest[d], one, zero));
    if (s.is_certainly(rests, 2)) return s.require(s.never(), twice);
    if (!s.require(s.is_at_least(given, -1), [&] {
          return error(Code::kInvalidArgument, "a shape holds {}, expected -1 or more", s.text(given));
        })) {
      return false;
    }
    const auto keeps = zero_is_size ? s.never() : s.is(given, 0);
    sizes[d] = s.stated(given);
    if (!in || d < in->size()) {
      sizes[d] = s.select(keeps, in ? (*in)[d] : s.unknown(), sizes[d]);
    } else if (!s.require(s.negated(keeps), [&] {
                 return error(Code::kInvalidArgument,
                              "shape holds 0 at position {}, expected an axis of input {} there, whose size is kept", d,
                              s.text(*in));
               })) {
      return false;
    }
  }
  if (!s.require(s.negated(s.is_at_least(rests, 2)), twice)) return false;
  return !in || take_rest(s, *in, is_rest, s.negated(s.is(rests, 0)), sizes);
}

// --- Squeeze, Unsqueeze, reductions

// Without the axes that `goes(d)` names, which have to have size 1.
template <class S, class Goes>
bool squeeze(S& s, const typename S::List& in, const Goes& goes, typename S::List& out) {
  for (size_t d = 0; d < in.size(); ++d) {
    if (!goes(d)) {
      out.push_back(in[d]);
    } else if (!s.require(s.equal(in[d], s.number(1)), [&] {
                 return error(Code::kInvalidArgument,
                              "axis {} of shape {} has size {}, expected 1: no other axis can be squeezed", d,
                              s.text(in), s.text(in[d]));
               })) {
      return false;
    }
  }
  return true;
}

// With `more` axes of size 1, which `comes(d)` names among those of the result.
template <class S, class Comes>
void unsqueeze(S& s, const typename S::List& in, size_t more, const Comes& comes, typename S::List& out) {
  for (size_t d = 0, next = 0; d < in.size() + more; ++d) out.push_back(comes(d) ? s.number(1) : in[next++]);
}

// Without the axes that `goes(d)` names, or with size 1 in their place.
template <class S, class Goes>
void reduce(S& s, const typename S::List& in, const Goes& goes, bool keep, typename S::List& out) {
  for (size_t d = 0; d < in.size(); ++d) {
    if (!goes(d)) {
      out.push_back(in[d]);
    } else if (keep) {
      out.push_back(s.number(1));
    }
  }
}

// --- Concat

// `all`, the sizes of what comes first, with one more value behind it.
template <class S>
bool concat(S& s, typename S::List& all, const typename S::List& more, size_t axis) {
  if (all.size() != more.size()) {
    return s.require(s.never(), [&] {
      return error(Code::kInvalidArgument, "inputs have ranks {} and {}, expected equal ones", all.size(), more.size());
    });
  }
  for (size_t d = 0; d < all.size(); ++d) {
    if (d == axis) {
      if (!s.append(all[d], more[d],
                    [&] { return error(Code::kLimit, "the inputs' sizes along axis {} overflow", d); })) {
        return false;
      }
    } else if (!s.share(all[d], more[d], [&] {
                 return error(Code::kInvalidArgument, "inputs have sizes {} and {} along axis {}, expected equal ones",
                              s.text(all[d]), s.text(more[d]), d);
               })) {
      return false;
    }
  }
  return true;
}

// --- Split

// The size of each of `parts` equal parts.
template <class S>
bool split_evenly(S& s, const typename S::Size& size, int64_t parts, typename S::Size& part) {
  const typename S::Size each = s.floor_div(size, s.number(parts));
  const bool fits = s.require(s.equal(s.mul(each, s.number(parts)), size), [&] {
    return error(Code::kInvalidArgument, "the axis has size {}, expected a multiple of the {} equal parts",
                 s.text(size), parts);
  });
  part = each;  // which may be where `size` is
  return fits;
}

// The sizes of `parts` parts, the last of which are smaller where the size is no multiple of their number.
template <class S>
typename S::List split_unevenly(S& s, const typename S::Size& size, int64_t parts) {
  using Size = typename S::Size;
  const Size part = s.ceil_div(size, s.number(parts));
  typename S::List sizes;
  for (int64_t i = 0; i < parts; ++i) {
    const Size left = s.max(s.sub(size, s.mul(part, s.number(i))), s.number(0));
    sizes.push_back(i == 0 ? part : i + 1 == parts ? left : s.min(part, left));
  }
  return sizes;
}

// Sizes that a model lists, one for each of `parts` parts of an axis.
template <class S>
bool split_as_listed(S& s, const typename S::Size& size, std::span<const int64_t> listed, size_t parts) {
  if (listed.size() != parts) {
    return s.require(s.never(), [&] {
      return error(Code::kInvalidArgument, "split has {} sizes, expected one for each output: {}", listed.size(),
                   parts);
    });
  }
  auto sum = s.number(0);
  for (const int64_t part : listed) {
    if (part < 0) {
      return s.require(s.never(), [&] {
        return error(Code::kInvalidArgument, "split holds {}, expected sizes of at least 0", part);
      });
    }
    if (!s.append(sum, s.number(part), [&] {
          return error(Code::kInvalidArgument, "the sum of the sizes in split is too large, expected at most {}",
                       INT64_MAX);
        })) {
      return false;
    }
  }
  return s.require(s.equal(sum, size), [&] {
    return error(Code::kInvalidArgument, "sizes of split add up to {}, expected {}", s.text(sum), s.text(size));
  });
}

// --- Range

// How many of start, start + delta, ... come before `limit`.
template <class S>
bool range(S& s, const typename S::Size& start, const typename S::Size& limit, const typename S::Size& delta,
           typename S::Size& count) {
  using Size = typename S::Size;
  if (!s.require(s.negated(s.is(delta, 0)),
                 [&] { return error(Code::kInvalidArgument, "delta is 0, expected another number"); })) {
    return false;
  }
  const auto is_up = s.is_at_least(delta, 1);
  const Size span = s.select(is_up, s.sub(limit, start), s.sub(start, limit));
  const Size stride = s.select(is_up, delta, s.sub(s.number(0), delta));
  // Native code divides before it acts on what it has checked.
  count = s.ceil_div(s.max(span, s.number(0)), s.max(stride, s.number(1)));
  return true;
}

// --- Gather

// The axis gives way to those of the indices.
template <class List>
List gather(const List& data, size_t axis, const List& indices) {
  List out(data.begin(), data.begin() + axis);
  for (const auto& size : indices) out.push_back(size);
  for (size_t d = axis + 1; d < data.size(); ++d) out.push_back(data[d]);
  return out;
}

}  // namespace treadle::size_rules

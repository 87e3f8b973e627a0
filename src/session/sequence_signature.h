#pragma once
// What a plan knows about a sequence that the caller gives: the one shape of all elements, where the elements have one.

#include <vector>

#include "ir/graph.h"
#include "type/any_value.h"

namespace treadle::session {

struct SequenceSignature {
  enum class Kind : uint8_t {
    kAny,     // any list
    kUnlike,  // empty, or elements that differ in shape
    kAlike,   // at least one element, all tensors of `dims`
  };
  Kind kind = Kind::kAny;
  ElementType element = ElementType::kUndefined;  // of all tensors in it; kUndefined: not asked
  Dims dims;
  int64_t length = -1;  // of kAlike; -1: any

  // kUnlike, or kAlike with its length. `element`: what the model says.
  static SequenceSignature of(const Sequence& list, ElementType element);
  bool accepts(const Sequence& list) const;
  // Whether of() would know more of a list.
  bool is_open() const {
    return element != ElementType::kUndefined && (kind == Kind::kAny || (kind == Kind::kAlike && length < 0));
  }
  // What accepts lists of both: of other lengths, or any list where their elements have other shapes.
  void widen(const SequenceSignature& before);
};

// Per graph input: a list whose elements are read one by one in loops, SequenceMap among them.
std::vector<bool> sequences_in_loops(const ir::Graph& graph);

}  // namespace treadle::session

#pragma once
// A plan's knowledge about a sequence from the caller: the shape of the elements, if all have the same.

#include <vector>

#include "ir/graph.h"
#include "type/any_value.h"

namespace treadle::session {

struct SequenceSignature {
  enum class Kind : uint8_t {
    kAny,     // any list
    kUnlike,  // empty, or elements of different shapes
    kAlike,   // at least one element, and all are tensors of `dims`
  };
  Kind kind = Kind::kAny;
  ElementType element = ElementType::kUndefined;  // of all tensors in it; kUndefined: unknown
  Dims dims;
  int64_t length = -1;  // of kAlike; -1: any length

  // kUnlike, or kAlike with its length. `element`: the type in the model.
  static SequenceSignature of(const Sequence& list, ElementType element);
  bool accepts(const Sequence& list) const;
  // Whether of() would know more about a list.
  bool is_open() const {
    return element != ElementType::kUndefined && (kind == Kind::kAny || (kind == Kind::kAlike && length < 0));
  }
  // Accepts lists of both signatures: any length, or any list if their elements have different shapes.
  void widen(const SequenceSignature& before);
};

// Per graph input: whether it is a list whose elements loops (or SequenceMap) read one by one.
std::vector<bool> sequences_in_loops(const ir::Graph& graph);

}  // namespace treadle::session

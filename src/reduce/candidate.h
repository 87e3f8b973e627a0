#pragma once
// A model that a step may change, and what is known of the model that it was copied from.

#include <deque>
#include <string>
#include <string_view>
#include <unordered_set>

#include "base/name_map.h"
#include "reduce/names.h"
#include "type/tensor.h"
#include "wire/parse.h"

namespace treadle::reduce {

// What is known of the smallest model so far. Names of different bodies are not told apart: that costs attempts at
// most.
struct Facts {
  // By the name of a value, as inferred or, where nothing could be inferred, as declared.
  NameMap<const wire::TypeProto*> types;
  // What was there before any change, and may be why the command fails: names that nothing defines, first outputs of
  // nodes without readers, and initializers without readers.
  std::unordered_set<std::string_view> undefined, dead_nodes, idle_initializers;
  std::string folder;  // of external data; empty: it cannot be read

  wire::Parsed<wire::ModelProto> typed;  // which `types` points into
};

// Finds the facts of the model in `bytes`, which must outlive them. `model`: the same, parsed. `folder`: where its
// external data lies.
void learn(wire::ModelProto& model, std::string_view bytes, const std::string& folder, Facts& facts);

struct Candidate {
  explicit Candidate(const Facts& known) : facts(known) {}

  wire::ModelProto model;
  Arena arena;                 // for what the model refers to
  std::deque<Tensor> tensors;  // whose contents the model refers to
  const Facts& facts;

  const wire::TypeProto* type_of(std::string_view name) const {
    const wire::TypeProto* const* found = facts.types.find(name);
    return found ? *found : nullptr;
  }
};

}  // namespace treadle::reduce

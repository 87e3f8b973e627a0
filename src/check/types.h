#pragma once
// The part of a full check that infers: every type against what the operators take and what is declared.

#include <memory>

#include "check/checker.h"
#include "model/name_uses.h"

namespace treadle {

// A model that is text, as it was read: names are views into the text.
struct WrittenModel {
  const wire::ModelProto& model;
  std::string_view text;
};

// After errors in its structure a model is inferred as far as it goes, and what is wrong with its types is added.
// `written`: null for a binary. `uses`: what the walk over the same message has found; null if there was none.
void check_types(const wire::ModelProto& model, const std::shared_ptr<wire::MappedFile>& file,
                 const CheckOptions& options, const model::NameUses* uses, const WrittenModel* written, Report& report);

}  // namespace treadle

#pragma once
// The part of a full check that infers types, and compares them with the operators' constraints and the declarations.

#include <memory>

#include "check/checker.h"
#include "model/name_uses.h"

namespace treadle {

// A model that is text, as parsed: names are views into the text.
struct WrittenModel {
  const wire::ModelProto& model;
  std::string_view text;
};

// Adds errors about types to `report`. A model with structural errors is inferred as far as possible. `written`: null
// for a binary model. `uses`: result of the walk over the same message; null if there was none.
void check_types(const wire::ModelProto& model, const std::shared_ptr<wire::MappedFile>& file,
                 const CheckOptions& options, const model::NameUses* uses, const WrittenModel* written, Report& report);

}  // namespace treadle

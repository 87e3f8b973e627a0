#pragma once
// The part of a full check that infers: every type against what the operators take and what is declared.

#include <memory>

#include "check/checker.h"
#include "model/name_uses.h"

namespace treadle {

// `uses`: what the walk over the same message has found; null if there was none.
void check_types(const wire::ModelProto& model, const std::shared_ptr<wire::MappedFile>& file,
                 const CheckOptions& options, const model::NameUses* uses, Report& report);

}  // namespace treadle

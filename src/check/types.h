#pragma once
// The part of a full check that infers: every type against what the operators take and what is declared.

#include <memory>

#include "check/checker.h"

namespace treadle {

void check_types(const wire::ModelProto& model, const std::shared_ptr<wire::MappedFile>& file,
                 const CheckOptions& options, Report& report);

}  // namespace treadle

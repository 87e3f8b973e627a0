// Configuration entries and environment variables of onnxruntime for things that treadle does not do.
#pragma once

#include <string_view>

#include "environment.h"
#include "pairs.h"

namespace treadle::dropin {

// The folder of external data for a model given as bytes.
constexpr const char* kFolder = "session.model_external_initializers_file_folder_path";
// Whether denormal numbers are flushed: "1".
constexpr const char* kDenormals = "session.set_denormal_as_zero";
// Prefix of entries that are treadle's own options.
constexpr std::string_view kOwnPrefix = "treadle.";

// Warns for each entry of a session, or of a run, that has no effect.
void warn_of_session_entries(const Logger& logger, const OrtKeyValuePairs& entries);
void warn_of_run_entries(const Logger& logger, const OrtKeyValuePairs& entries);
// Warns of options inside the model, which onnxruntime would read.
void warn_of_model_options(const Logger& logger, const treadle_session* session);

}  // namespace treadle::dropin

// Configuration entries of onnxruntime's, and variables of the environment, that ask for what treadle does not do.
#pragma once

#include <string_view>

#include "environment.h"
#include "pairs.h"

namespace treadle::dropin {

// The folder of the external data of a model that is given as bytes.
constexpr const char* kFolder = "session.model_external_initializers_file_folder_path";
// Of the entries that are treadle's own options.
constexpr std::string_view kOwnPrefix = "treadle.";

// Tells the logger of each entry of a session, or of a run, that has no effect.
void warn_of_session_entries(const Logger& logger, const OrtKeyValuePairs& entries);
void warn_of_run_entries(const Logger& logger, const OrtKeyValuePairs& entries);
// Of options that lie in the model, where onnxruntime would read them.
void warn_of_model_options(const Logger& logger, const treadle_session* session);

}  // namespace treadle::dropin

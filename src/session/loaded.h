#pragma once
// The state of a session after loading. Apart from the graph kept for inspection, it does not change afterwards.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "opt/pipeline.h"
#include "reference/folding.h"
#include "run/native_cache.h"
#include "session/fingerprint.h"
#include "session/inputs.h"
#include "session/options.h"
#include "session/origins.h"
#include "session/weight_files.h"
#include "wire/mapped_file.h"

namespace treadle::session {

struct Loaded {
  SessionOptions options;
  opt::PassSet passes_off;
  int threads = 1;
  std::shared_ptr<wire::MappedFile> text;     // of a model that is text; for errors
  std::string path;                           // of the file; empty for bytes in memory
  std::unique_ptr<ir::Graph> graph;           // as imported, types inferred
  Fingerprint fingerprint;                    // of the graph as it was read
  std::unique_ptr<const ModelValues> values;  // if SessionOptions::observed
  Inputs inputs;
  std::vector<bool> deciding;  // parallel to the inputs: whether contents decide branches or shapes
  std::vector<bool> listed;    // parallel to the inputs: lists that loops read
  std::vector<IoInfo> outputs;
  WeightFiles files;
  opt::Remarks remarks;               // of rewrites of loops when the model was loaded
  reference::FoldLimits fold_limits;  // limits of folding
  std::vector<std::string> warnings;  // options without effect, each as a sentence
  // Rules that the model breaks or leaves open, each as a sentence. The model runs nevertheless.
  std::vector<std::string> model_warnings;
  std::shared_ptr<const run::NativeCache> native_cache;

  // The passes that the options select.
  opt::PipelineOptions pipeline() const;
  // `status` with its place in the model's file, if it has one.
  Status in_file(Status status) const;
};

// Each loads a model into `loaded`, by the options and limits of loading in it. Errors: those of reading and checking
// the model, and kInvalidArgument for options and environment variables.
Status load_file(const std::string& path, Loaded& loaded);
// `folder`: the folder of external data (empty: external data is refused). The bytes are copied.
Status load_bytes(std::span<const std::byte> bytes, const std::string& folder, Loaded& loaded);
Status load_graph(std::unique_ptr<ir::Graph> graph, Loaded& loaded);

}  // namespace treadle::session

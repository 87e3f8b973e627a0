#pragma once
// A model as loading leaves it. Nothing in it changes afterwards, but for the graph that is kept for looking at.

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "opt/pipeline.h"
#include "reference/folding.h"
#include "run/native_cache.h"
#include "session/fingerprint.h"
#include "session/inputs.h"
#include "session/options.h"
#include "session/weight_files.h"
#include "wire/mapped_file.h"

namespace treadle::session {

// The graph behind the pass that SessionOptions::dump names, as text, of the last time that it ran.
class GraphDump {
 public:
  void keep(std::string text) {
    const std::lock_guard lock(mutex_);
    text_ = std::move(text);
  }
  std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

struct Loaded {
  SessionOptions options;
  opt::PassSet passes_off;
  int threads = 1;
  std::shared_ptr<wire::MappedFile> text;  // of a model that is text, for errors
  std::string path;                        // of the file; empty for bytes
  std::unique_ptr<ir::Graph> graph;        // as imported, types inferred
  Fingerprint fingerprint;                 // of the graph as it was read
  Inputs inputs;
  std::vector<bool> deciding;  // parallel to the inputs: small contents decide branches or shapes
  std::vector<bool> listed;    // likewise: lists that loops read
  std::vector<IoInfo> outputs;
  WeightFiles files;
  opt::Remarks remarks;               // of what was done to loops when the model was loaded
  reference::FoldLimits fold_limits;  // of what is evaluated before the run
  std::vector<std::string> warnings;  // options that have no effect, each as a sentence
  // Rules that the model breaks, and what it leaves open, each as a sentence: it runs all the same.
  std::vector<std::string> model_warnings;
  std::shared_ptr<const run::NativeCache> native_cache;
  mutable GraphDump dump;

  // The passes that the options ask for.
  opt::PipelineOptions pipeline() const;
  // `status` with its place in the model's file, where it has one.
  Status in_file(Status status) const;
};

// Each fills `loaded`, whose options are given, under their limits of loading. Errors: what reading and checking the
// model finds, and kInvalidArgument for options and variables of the environment.
Status load_file(const std::string& path, Loaded& loaded);
// `folder`: where external data is looked up (empty: external data is refused). The bytes are copied.
Status load_bytes(std::span<const std::byte> bytes, const std::string& folder, Loaded& loaded);
Status load_graph(std::unique_ptr<ir::Graph> graph, Loaded& loaded);

}  // namespace treadle::session

#include "metrics.h"

#include "failure.h"

namespace backend {

namespace {

struct Described {
  TRITONSERVER_MetricKind kind;
  const char* name;
  const char* text;
};
// In the order of Measure.
constexpr std::array<Described, kMeasures> kDescribed = {{
    {TRITONSERVER_METRIC_KIND_GAUGE, "treadle_streams", "Sequences that have a stream"},
    {TRITONSERVER_METRIC_KIND_COUNTER, "treadle_streams_started", "Sequences that have begun"},
    {TRITONSERVER_METRIC_KIND_COUNTER, "treadle_streams_resumed", "Of these, those that went on from a snapshot"},
    {TRITONSERVER_METRIC_KIND_COUNTER, "treadle_streams_idle", "Streams that left after idle_s without a request"},
    {TRITONSERVER_METRIC_KIND_COUNTER, "treadle_streams_refused", "Sequences that found no room"},
    {TRITONSERVER_METRIC_KIND_COUNTER, "treadle_snapshots", "Snapshots given"},
}};

// A metric that fails does not make a request fail.
bool works(TRITONSERVER_Error* error) {
  if (!error) return true;
  TREADLE_LOG(VERBOSE, std::string("metrics: ") + TRITONSERVER_ErrorMessage(error));
  TRITONSERVER_ErrorDelete(error);
  return false;
}

bool server_has_metrics() {
  return TRITONSERVER_ParameterNew && TRITONSERVER_ParameterDelete && TRITONSERVER_MetricFamilyNew &&
         TRITONSERVER_MetricFamilyDelete && TRITONSERVER_MetricNew && TRITONSERVER_MetricDelete &&
         TRITONSERVER_MetricIncrement && TRITONSERVER_MetricSet;
}

}  // namespace

MetricFamilies::MetricFamilies() {
  if (!server_has_metrics()) return;
  for (size_t i = 0; i < kMeasures; ++i) {
    const Described& described = kDescribed[i];
    if (!works(TRITONSERVER_MetricFamilyNew(&families_[i], described.kind, described.name, described.text))) {
      families_[i] = nullptr;
    }
  }
}

MetricFamilies::~MetricFamilies() {
  for (TRITONSERVER_MetricFamily* family : families_) {
    if (family) works(TRITONSERVER_MetricFamilyDelete(family));
  }
}

Metrics::Metrics(const MetricFamilies& families, const std::string& model, uint64_t version,
                 const std::string& instance) {
  if (!server_has_metrics()) return;
  const std::string number = std::to_string(version);
  std::array labels = {
      TRITONSERVER_ParameterNew("model", TRITONSERVER_PARAMETER_STRING, model.c_str()),
      TRITONSERVER_ParameterNew("version", TRITONSERVER_PARAMETER_STRING, number.c_str()),
      TRITONSERVER_ParameterNew("instance", TRITONSERVER_PARAMETER_STRING, instance.c_str()),
  };
  std::array<const TRITONSERVER_Parameter*, 3> given = {labels[0], labels[1], labels[2]};
  for (size_t i = 0; i < kMeasures; ++i) {
    TRITONSERVER_MetricFamily* family = families.family(static_cast<Measure>(i));
    if (family && !works(TRITONSERVER_MetricNew(&metrics_[i], family, given.data(), given.size()))) {
      metrics_[i] = nullptr;
    }
  }
  for (TRITONSERVER_Parameter* label : labels) TRITONSERVER_ParameterDelete(label);
}

Metrics::~Metrics() {
  for (TRITONSERVER_Metric* metric : metrics_) {
    if (metric) works(TRITONSERVER_MetricDelete(metric));
  }
}

void Metrics::count(Measure measure) {
  if (TRITONSERVER_Metric* metric = metrics_[static_cast<size_t>(measure)])
    works(TRITONSERVER_MetricIncrement(metric, 1));
}

void Metrics::set(Measure measure, size_t value) {
  if (TRITONSERVER_Metric* metric = metrics_[static_cast<size_t>(measure)]) {
    works(TRITONSERVER_MetricSet(metric, static_cast<double>(value)));
  }
}

}  // namespace backend

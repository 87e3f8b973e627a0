#pragma once
// Metrics of streams on the server's metrics page, beside the server's own counts of requests and runs.

#include <array>
#include <string>

#include "triton_api.h"

namespace backend {

enum class Measure : uint8_t { kStreams, kStarted, kResumed, kIdle, kRefused, kSnapshots };
inline constexpr size_t kMeasures = 6;

// The families of metrics, one per server.
class MetricFamilies {
 public:
  MetricFamilies();  // empty if the server has no metrics, or has them turned off
  ~MetricFamilies();
  MetricFamilies(const MetricFamilies&) = delete;
  MetricFamilies& operator=(const MetricFamilies&) = delete;
  TRITONSERVER_MetricFamily* family(Measure measure) const { return families_[static_cast<size_t>(measure)]; }

 private:
  std::array<TRITONSERVER_MetricFamily*, kMeasures> families_{};
};

// The metrics of one model instance.
class Metrics {
 public:
  Metrics(const MetricFamilies& families, const std::string& model, uint64_t version, const std::string& instance);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;
  void count(Measure measure);
  void set(Measure measure, size_t value);

 private:
  std::array<TRITONSERVER_Metric*, kMeasures> metrics_{};
};

}  // namespace backend

#pragma once
// Requests of sequences, and whole signals: each goes to its stream in a pool, which runs requests that come together
// as the entries of a batch.
//
// A stream begins with START, from a snapshot if the request has one. It leaves with END, after idle_s without a
// request, or when its sequence starts again. A request that fails changes no stream. A START that fails begins
// nothing. An END that fails ends the stream nevertheless, as the server sends no further requests for it.

#include <chrono>
#include <list>
#include <string>
#include <unordered_map>

#include "metrics.h"
#include "work.h"

namespace backend {

// The name of a sequence: a number, or a text.
struct SequenceName {
  uint64_t number = 0;
  std::string text;
  bool is_none() const { return number == 0 && text.empty(); }
  bool operator==(const SequenceName&) const = default;
  std::string shown() const;
};
struct SequenceHash {
  size_t operator()(const SequenceName& name) const {
    return name.text.empty() ? std::hash<uint64_t>()(name.number) : std::hash<std::string>()(name.text);
  }
};

class Sequences final : public Runner {
 public:
  Sequences(TRITONBACKEND_ModelInstance* instance, const Model& model, const MetricFamilies& families,
            const std::string& name);

 protected:
  void run(std::span<Work> works) override;

 private:
  using Clock = std::chrono::steady_clock;
  struct Live {
    SequenceName name;
    int64_t id = 0;  // in the pool
    Clock::time_point last;
  };
  using Place = std::list<Live>::iterator;
  struct Step {
    Work* work = nullptr;
    Place live;
    uint32_t flags = 0;
    std::vector<treadle::Value> values;   // parallel to names_
    std::vector<treadle::Value> results;  // parallel to output_names_
    std::string snapshot;
    bool starts() const { return flags & TRITONSERVER_REQUEST_FLAG_SEQUENCE_START; }
    bool ends() const { return flags & TRITONSERVER_REQUEST_FLAG_SEQUENCE_END; }
  };

  SequenceName name_of(TRITONBACKEND_Request* request);
  treadle::Value input_value(const Work& work, const char* input, const SequenceName& name) const;
  void leave_idle(Clock::time_point now);
  bool begin(Work& work, std::vector<Step>& steps);
  void find_stream(Step& step, const SequenceName& name);
  void start_stream(Step& step, const SequenceName& name);
  void join_from_snapshot(const Live& live, const Arrived& snapshot);
  void drop(Place live);
  bool push(std::span<Step> steps);
  void push_each(std::span<Step> steps);
  void finish(Step& step);
  void flush(Step& step);
  std::vector<treadle::Value> flushed(const Step& step);
  void run_steps(std::span<Step> steps);
  void respond(Step& step);
  std::vector<int64_t> dims_on_wire(size_t output, const treadle_value* value) const;

  const Model& model_;
  Metrics metrics_;
  treadle::StreamOptions options_;
  treadle::Stream fresh_;  // the initial state of all streams
  treadle::Pool pool_;
  std::vector<std::string> output_names_;
  std::vector<int64_t> axes_;  // axes along which results of the last step and of the flush are joined; -1: they are
                               // not
  std::vector<bool> is_stacked_;
  std::vector<const char*> names_;  // of inputs that requests give
  std::vector<size_t> given_;       // indices of those that are not cut along time: a flush needs them as well
  bool is_timed_ = false;
  size_t capacity_;
  Clock::duration idle_;
  std::list<Live> live_;  // by their last request, the oldest first
  std::unordered_map<SequenceName, Place, SequenceHash> by_name_;
  int64_t next_id_ = 0;
  bool has_text_names_ = false;  // the last name was a text
};

}  // namespace backend

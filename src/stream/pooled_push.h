#pragma once
// One push of a pool whose streams run together. The pool changes only after all runs have succeeded.

#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "stream/entries.h"
#include "stream/pool.h"
#include "stream/pool_places.h"
#include "stream/pooled_model.h"

namespace treadle {

class PooledPush {
 public:
  PooledPush(StreamPool& pool, const RunOptions& options);

  // A chunk for each stream; results for each stream.
  Result<std::vector<Stream::Pushed>> each(std::span<const StreamPool::Chunk> chunks);
  // Feeds and results have an entry for each stream. `lengths`: as for StreamPool::push_batch.
  Result<Stream::Pushed> batch(std::span<const int64_t> ids, std::span<const Feed> feeds, std::span<int64_t> lengths);

 private:
  struct Row {
    PoolMember* member = nullptr;
    PoolGroup* group = nullptr;     // with whose streams it runs; null: streams that have not run yet
    size_t chunk = 0, entry = 0;    // position in the feeds
    int64_t fresh = 0, runs = 0;    // new samples; samples, waiting ones included, that run
    size_t with = 0, position = 0;  // index in `cohorts_`, and index in its rows
  };
  // The results of one run, or of several in sequence, for the first `rows` streams.
  struct Piece {
    size_t rows, runs;
    std::vector<AnyValue> results;
  };
  // Streams of one group whose chunks differ in length only.
  struct Cohort {
    PoolGroup* group;        // null: streams that have not run yet
    bool run;                // false: no sample completes a block
    std::vector<Row*> rows;  // sorted by the number of samples to run, longest first
    std::vector<Piece> pieces;
  };
  // Samples of successive streams.
  struct Range {
    int64_t from, until, entries;
  };
  // The feeds: a value for each of PooledModel::fed.
  using Chunk = std::vector<const AnyValue*>;

  Result<bool> push_group(std::span<const int64_t> ids, std::span<const Feed> feeds, Stream::Pushed& pushed);
  Status admit(std::span<const int64_t> ids);
  PoolMember& find(int64_t id, const PoolMember* before);
  static Status check_rank(const PooledModel::Fed& input, const AnyValue* value);
  int64_t samples_of(const Chunk& chunk) const;
  Result<Chunk> take_chunk(const StreamLayout& layout, std::span<const Feed> feeds, size_t entries) const;
  bool begins_separately(const PoolGroup* group) const;
  Status find_joined_group();
  void sort_in(Row& row);
  std::optional<size_t> find_cohort(const Row& row) const;
  std::vector<entries::Entry> entries_of(const Cohort& cohort) const;
  bool fits(const Cohort& cohort, const Row& row) const;
  Status run_all();
  Status run(Cohort& cohort);
  Status give_nothing(Cohort& cohort);
  Result<Piece> make(const Cohort& cohort, size_t rows, Carried& carried, int64_t from, int64_t until);
  Result<const AnyValue*> samples(const Cohort& cohort, size_t rows, size_t timed, int64_t from, int64_t until,
                                  AnyValue& made) const;
  bool is_all_that_is_fed(const Cohort& cohort, size_t rows, int64_t from, int64_t until) const;
  static bool continues(const Row& row, const Row& other, size_t behind);
  void copy_samples(const Row& row, size_t timed, const Range& range, AnyValue& to, size_t at) const;
  Status split(const Cohort& cohort, size_t from, size_t until, Carried carried);
  Status keep_waiting();
  Result<AnyValue> result_of(const Row& row, size_t output) const;
  int64_t length_of(const AnyValue& result, size_t output) const;
  int64_t length_of(const Row& row, size_t output) const;
  Status join_results(std::vector<AnyValue>& outputs, std::span<int64_t> lengths) const;
  Status join_result(size_t output, std::span<const int64_t> lengths, AnyValue& joined) const;
  Status check_lengths(size_t output, std::span<const int64_t> lengths) const;
  Result<const Tensor*> shape_of_results(size_t output) const;
  void copy_rows(size_t output, Tensor& joined) const;
  void commit();

  StreamPool& pool_;
  const PooledModel& model_;
  const StreamLayout& layout_;
  const RunOptions& options_;
  std::unordered_map<int64_t, PoolMember> fresh_;  // new streams
  std::vector<Row> rows_;
  std::vector<Chunk> chunks_;
  std::vector<Cohort> cohorts_;
  std::vector<PoolPlaces::Moved> moved_;
  std::vector<std::vector<Tensor>> waiting_;  // parallel to `rows_`: new waiting samples; empty: none
  PoolPlaces places_;
  PoolGroup* joined_group_ = nullptr;  // the group in whose runs new streams begin; null: none
  std::optional<Carried> beginning_;   // initial data of a new stream, in the joined group's sizes
  int64_t runs_ = 0;
};

}  // namespace treadle

#pragma once
// Many streams of one model, whose blocks run together as the entries of a batch.
//
// A push takes chunks of any of the streams. Those that have begun run together for as long as all of them have
// samples; then the others go on. The first block of a stream over time, and its last one, run on their own. Where the
// model has no batch, or mixes its entries, every stream runs on its own (why_single() says what stands against it).
// States stay in the batch while the same streams come in the same order, and nothing of them is copied then.

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "stream/stream.h"

namespace treadle {

struct PooledModel;

// Not for use by several threads at once.
class StreamPool {
 public:
  struct Chunk {
    int64_t id = 0;
    std::span<const Feed> feeds;
  };

  // Room for `capacity` streams, each with a batch of one. Errors: those of Stream::open.
  static Result<StreamPool> open(std::shared_ptr<const Session> session, StreamOptions options, size_t capacity);

  // A stream joins with its first chunk. Results are parallel to `chunks`. On an error all streams are as they were
  // before. Errors: kLimit when there is no room, kInvalidArgument for an id that comes twice.
  Result<std::vector<Stream::Pushed>> push(std::span<const Chunk> chunks, const RunOptions& options = {});
  // What the end of the stream's signal brings; the stream leaves.
  Result<Stream::Pushed> flush(int64_t id, const RunOptions& options = {});
  Status leave(int64_t id);
  // A stream of its own that goes on from where this one is.
  Result<Stream> fork(int64_t id);
  // A stream that goes on in the pool from where `stream` is, which was opened alike. Errors: kLimit when there is no
  // room, kInvalidArgument for an id that is there and a stream that does not fit.
  Status join(int64_t id, const Stream& stream);
  bool done(int64_t id) const;

  bool contains(int64_t id) const { return streams_.contains(id); }
  size_t size() const { return streams_.size(); }
  size_t capacity() const { return capacity_; }
  const std::vector<std::string>& output_names() const { return first_.output_names(); }
  const std::string& why_single() const;  // empty: streams run together
  int64_t runs() const { return runs_; }  // of batches, one stream alone included

 private:
  friend class PooledPush;
  // States of several streams side by side.
  struct Together {
    std::vector<int64_t> ids;
    std::vector<AnyValue> states;
  };

  StreamPool(Stream first, size_t capacity) : first_(std::move(first)), capacity_(capacity) {}
  Status check_entries(const Stream& stream) const;
  Status part();  // gives the states that are side by side back to their streams

  Stream first_;  // what a stream begins as
  size_t capacity_;
  std::shared_ptr<const PooledModel> model_;
  std::unordered_map<int64_t, Stream> streams_;
  Together together_;
  int64_t runs_ = 0;
};

}  // namespace treadle

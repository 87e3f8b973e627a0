#pragma once
// Many streams of one model, whose blocks run together as the entries of a batch.
//
// The data of streams is stored in groups of streams whose states have the same sizes. A push runs the streams of a
// group together as long as all of them have samples; then it continues with the remaining ones. If a push has exactly
// the streams of one group, in the group's order, no carried data is copied: the push is a push of one stream with as
// many entries. If the model has no batch, or mixes its entries, every stream runs by itself (why_single() gives the
// reason).

#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "stream/stream.h"

namespace treadle {

struct PooledModel;
struct PoolGroup;

// A stream of a pool, without the data that its group stores.
struct PoolMember {
  int64_t id = 0;
  PoolGroup* group = nullptr;    // null: it has not run yet
  size_t at = 0;                 // its entry there
  std::vector<Tensor> waiting;   // per timed input; empty: no waiting samples
  int64_t pending = 0;           // number of waiting samples
  uint64_t push = 0;             // number of the last push that included it
  PoolGroup* goes_to = nullptr;  // group to which the current push moves it; null: it stays
};

// Streams whose data is stored together.
struct PoolGroup {
  std::vector<int64_t> ids;
  std::vector<PoolMember*> members;  // parallel to `ids`; null: an unused entry
  size_t live = 0;                   // number of members
  size_t promised = 0;               // unused entries that the current push will fill
  Carried carried;
  Push push;  // the current push of the whole group
};

// Not for use by several threads at once.
class StreamPool {
 public:
  struct Chunk {
    int64_t id = 0;
    std::span<const Feed> feeds;
  };

  // Makes room for `capacity` streams, each with a batch of one. Errors: those of Stream::open.
  static Result<StreamPool> open(std::shared_ptr<const Session> session, StreamOptions options, size_t capacity);

  // Pushes to streams; a new id joins with its first chunk. Results are parallel to `chunks`. On an error no stream
  // changes. Errors: kLimit if there is no room, kInvalidArgument for an id that occurs twice.
  Result<std::vector<Stream::Pushed>> push(std::span<const Chunk> chunks, const RunOptions& options = {});
  // The same with the same number of samples for each stream: feeds and results have an entry of the batch for each
  // stream. `lengths`: empty, or [ids, outputs]; set to the length of each stream's own result along the axis on which
  // pushes are joined (1 if there is none); the rest is zeros. Further errors: kInvalidArgument for streams that run by
  // themselves, and, without `lengths`, for results of different sizes.
  Result<Stream::Pushed> push_batch(std::span<const int64_t> ids, std::span<const Feed> feeds,
                                    const RunOptions& options = {}, std::span<int64_t> lengths = {});
  // The results of the end of the stream's signal. The stream leaves the pool.
  Result<Stream::Pushed> flush(int64_t id, const RunOptions& options = {});
  Status leave(int64_t id);
  // A separate stream that continues from this stream's state.
  Result<Stream> fork(int64_t id) const;
  // Adds a stream that continues from the state of `stream`, which must have been opened in the same way. Errors:
  // kLimit if there is no room, kInvalidArgument for an id that exists and for a stream that does not fit.
  Status join(int64_t id, const Stream& stream);
  bool done(int64_t id) const;

  bool contains(int64_t id) const { return members_.contains(id) || separate_.contains(id); }
  size_t size() const { return members_.size() + separate_.size(); }
  size_t capacity() const { return capacity_; }
  const std::vector<std::string>& output_names() const { return first_.output_names(); }
  const std::string& why_single() const;  // empty: streams run together
  int64_t runs() const { return runs_; }  // number of runs of batches; a single stream's runs count

 private:
  friend class PooledPush;
  friend class PoolPlaces;

  StreamPool(Stream first, size_t capacity) : first_(std::move(first)), capacity_(capacity) {}
  Result<std::vector<Stream::Pushed>> push_separately(std::span<const Chunk> chunks, const RunOptions& options);
  Status check_room(size_t fresh) const;
  Status check_entries(const Stream& stream) const;
  Status add_member(int64_t id, Carried carried);

  Stream first_;  // the initial stream
  size_t capacity_;
  std::shared_ptr<const PooledModel> model_;
  std::unordered_map<int64_t, PoolMember> members_;
  std::list<PoolGroup> groups_;                   // none is empty
  std::unordered_map<int64_t, Stream> separate_;  // streams that run by themselves
  Push push_;                                     // the current push of streams from any groups
  Carried spare_;                                 // data of a replaced group; its memory is reused
  uint64_t pushes_ = 0;
  int64_t runs_ = 0;
};

}  // namespace treadle

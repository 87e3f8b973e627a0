#pragma once
// Many streams of one model, whose blocks run together as the entries of a batch.
//
// What streams carry lies side by side, in groups of streams whose states have the same sizes. A push runs the streams
// of a group together for as long as all of them have samples; then the others go on. When the streams of a push are
// those of a group, in its order, nothing that is carried is copied: the push is one of a stream with so many entries.
// Where the model has no batch, or mixes its entries, every stream runs on its own (why_single() says what stands
// against it).

#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "stream/stream.h"

namespace treadle {

struct PooledModel;
struct PoolGroup;

// A stream of a pool, but for what it carries beside others.
struct PoolMember {
  int64_t id = 0;
  PoolGroup* group = nullptr;    // null: it has not run yet
  size_t at = 0;                 // its entry there
  std::vector<Tensor> waiting;   // per timed input; empty: no samples wait
  int64_t pending = 0;           // samples that wait
  uint64_t push = 0;             // the last one that it took part in
  PoolGroup* goes_to = nullptr;  // where the push at hand is about to put it; null: it stays
};

// What streams carry side by side.
struct PoolGroup {
  std::vector<int64_t> ids;
  std::vector<PoolMember*> members;  // parallel to `ids`; null: the stream has left, or there never was one
  size_t live = 0;                   // members
  size_t promised = 0;               // entries without a member that a push is about to fill
  Carried carried;
  Push push;  // the one at hand, of the whole group
};

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
  // The same for as many samples of each stream: what is fed has an entry of the batch for each, and so have results.
  // `lengths`: empty, or room for a length of each stream and output, [ids, outputs]: how much of the result is the
  // stream's own along the axis that pushes are joined along (1 where none is); zeros fill it up. Errors, besides:
  // kInvalidArgument for streams that run on their own, and without lengths for results of unlike sizes.
  Result<Stream::Pushed> push_batch(std::span<const int64_t> ids, std::span<const Feed> feeds,
                                    const RunOptions& options = {}, std::span<int64_t> lengths = {});
  // What the end of the stream's signal brings; the stream leaves.
  Result<Stream::Pushed> flush(int64_t id, const RunOptions& options = {});
  Status leave(int64_t id);
  // A stream of its own that goes on from where this one is.
  Result<Stream> fork(int64_t id) const;
  // A stream that goes on in the pool from where `stream` is, which was opened alike. Errors: kLimit when there is no
  // room, kInvalidArgument for an id that is there and a stream that does not fit.
  Status join(int64_t id, const Stream& stream);
  bool done(int64_t id) const;

  bool contains(int64_t id) const { return members_.contains(id) || alone_.contains(id); }
  size_t size() const { return members_.size() + alone_.size(); }
  size_t capacity() const { return capacity_; }
  const std::vector<std::string>& output_names() const { return first_.output_names(); }
  const std::string& why_single() const;  // empty: streams run together
  int64_t runs() const { return runs_; }  // of batches, one stream alone included

 private:
  friend class PooledPush;
  friend class PoolPlaces;

  StreamPool(Stream first, size_t capacity) : first_(std::move(first)), capacity_(capacity) {}
  Result<std::vector<Stream::Pushed>> push_alone(std::span<const Chunk> chunks, const RunOptions& options);
  Status check_room(size_t fresh) const;
  Status check_entries(const Stream& stream) const;
  Status add_member(int64_t id, Carried carried);

  Stream first_;  // what a stream begins as
  size_t capacity_;
  std::shared_ptr<const PooledModel> model_;
  std::unordered_map<int64_t, PoolMember> members_;
  std::list<PoolGroup> groups_;                // none is empty
  std::unordered_map<int64_t, Stream> alone_;  // where streams run on their own
  Push push_;                                  // the one at hand, of streams of any groups
  Carried spare_;                              // what a group carried before it was made anew: memory for the next one
  uint64_t pushes_ = 0;
  int64_t runs_ = 0;
};

}  // namespace treadle

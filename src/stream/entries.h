#pragma once
// The data of several streams as the entries of a batch: a value has an entry for each stream along the model's batch
// axis. It holds the context, but no waiting samples.

#include <optional>
#include <span>

#include "stream/pooled_model.h"

namespace treadle::entries {

// One entry of a batch.
struct Entry {
  const Carried* carried;
  size_t at;
};

// Whether entries of both can be in one batch.
bool fit_together(const PooledModel& model, const Carried& a, const Carried& b);
// Copies at least one entry into new memory; all entries must fit together. `room`: the number of entries in all;
// further entries are undefined. `spare`: an unused value whose memory is reused if its sizes fit.
Result<Carried> gather(const PooledModel& model, std::span<const Entry> from, size_t room = 0, Carried spare = {});
// The initial data of a stream in the sizes of `other`, whose model begins_in_group. `begin`: the initial data of a
// separate stream. Nothing if declared sizes differ.
Result<std::optional<Carried>> beginning_like(const PooledModel& model, const Carried& other, const Carried& begin);
// Makes sure that put() writes to memory that no other value shares.
Status make_exclusive(Carried& carried);
// Copies `count` entries over those from `at` on. Both must fit together, and `to` exclusive.
void put(const PooledModel& model, const Entry& from, size_t count, Carried& to, size_t at);

// One entry of a result. `axis`: batch axis of a tensor, or of the elements of a sequence; kNoAxis: all entries have
// the same value.
Result<AnyValue> of_result(const AnyValue& value, int64_t axis, size_t at);

}  // namespace treadle::entries

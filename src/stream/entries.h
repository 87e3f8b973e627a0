#pragma once
// What several streams carry, side by side as the entries of a batch: values have an entry for each of them along the
// axes of their model. No samples wait in it but the context.

#include <optional>
#include <span>

#include "stream/pooled_model.h"

namespace treadle::entries {

// One entry of what is carried.
struct Entry {
  const Carried* carried;
  size_t at;
};

// Whether entries of both fit side by side.
bool alike(const PooledModel& model, const Carried& a, const Carried& b);
// The entries, which are alike, in memory of their own. There is one at least. `room`: entries in all; what those
// beyond hold is undefined. `spare`: what nobody needs, whose memory is taken where it has the right sizes.
Result<Carried> gather(const PooledModel& model, std::span<const Entry> from, size_t room = 0, Carried spare = {});
// What a stream carries that has not run, in the sizes of `other`, whose model begins_among_others. `begin`: what a
// stream of its own begins with. Nothing: other sizes are declared for it.
Result<std::optional<Carried>> beginning_like(const PooledModel& model, const Carried& other, const Carried& begin);
// Sees to it that nobody else sees what put() writes.
Status make_exclusive(Carried& carried);
// Copies `count` entries over those from `at` on. Both are alike; `to` is exclusive.
void put(const PooledModel& model, const Entry& from, size_t count, Carried& to, size_t at);

// One entry of a result; `axis`: of a tensor, or of the elements of a sequence; kNoAxis: it is alike for all.
Result<AnyValue> of_result(const AnyValue& value, int64_t axis, size_t at);

}  // namespace treadle::entries

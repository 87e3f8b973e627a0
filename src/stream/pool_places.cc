#include "stream/pool_places.h"

#include <algorithm>

#include "stream/entries.h"

namespace treadle {

PoolPlaces::~PoolPlaces() {
  forget_promises();
}

// Whole groups are rebuilt first, so that no other stream is put into their old entries.
Status PoolPlaces::find(std::vector<Moved> moved) {
  const auto is_whole = [](const Moved& one) {
    const auto comes_from_there = [&](const PoolMember* m) { return m->group == one.origin; };
    return one.origin && static_cast<size_t>(std::count_if(one.members.begin(), one.members.end(), comes_from_there)) ==
                             one.origin->live;
  };
  const auto others = std::partition(moved.begin(), moved.end(), is_whole);
  for (auto it = moved.begin(); it != moved.end(); ++it) TREADLE_TRY(find_one(std::move(*it), it < others));
  return {};
}

// Finds the entries for streams that ran together. Streams whose sizes are unchanged return to their entries. A whole
// group is rebuilt in the order of the push, so that the next push finds it so. Other streams go to a group of streams
// like them, or to a new one.
Status PoolPlaces::find_one(Moved moved, bool whole) {
  if (moved.origin && !whole && entries::fit_together(*pool_.model_, moved.origin->carried, moved.carried)) {
    TREADLE_TRY(entries::make_exclusive(moved.origin->carried));
    promise(moved, *moved.origin);
    written_.push_back({moved.origin, std::move(moved.members), std::move(moved.carried), false});
    return {};
  }
  if (Remade* like = remade_like(moved.carried)) {
    promise(moved, *like->group);
    return join(*like, moved);
  }
  PoolGroup* group = whole ? moved.origin : group_like(moved.carried);
  if (group && !whole) return add(*group, std::move(moved));
  if (!group) group = &fresh_.emplace_back();
  promise(moved, *group);
  Remade made{group, {}, {}, {}, false};
  for (const PoolMember* member : moved.members) made.ids.push_back(member->id);
  made.members = std::move(moved.members);
  made.carried = std::move(moved.carried);
  remade_.push_back(std::move(made));
  return {};
}

// Adds the streams to a group of which only a part is in the push: to unused entries, or to a larger copy of the group,
// with room for further streams.
Status PoolPlaces::add(PoolGroup& group, Moved moved) {
  const size_t count = moved.members.size();
  promise(moved, group);
  if (group.members.size() - group.live - group.promised >= count) {
    TREADLE_TRY(entries::make_exclusive(group.carried));
    written_.push_back({&group, std::move(moved.members), std::move(moved.carried), true});
    group.promised += count;
    return {};
  }
  Remade larger{&group, {}, {}, {}, true};
  std::vector<entries::Entry> entries;
  for (size_t i = 0; i < group.members.size(); ++i) {
    if (!group.members[i]) continue;
    larger.ids.push_back(group.ids[i]);
    larger.members.push_back(group.members[i]);
    entries.push_back({&group.carried, i});
  }
  TREADLE_ASSIGN(larger.carried, entries::gather(*pool_.model_, entries));
  TREADLE_TRY(grow(larger, moved, group.promised + std::max(count, group.live / 4)));
  remade_.push_back(std::move(larger));
  return {};
}

// Adds the streams to a group that is being rebuilt. The first ones make the group exactly as large as needed, because
// the next push may include all of it. If more follow one by one, its size doubles.
Status PoolPlaces::join(Remade& target, const Moved& moved) {
  const size_t there = target.members.size(), count = moved.members.size();
  size_t free = 0;
  for (size_t i = there; i > 0 && !target.members[i - 1]; --i) ++free;
  if (free < count + target.group->promised) {
    TREADLE_TRY(grow(target, moved, target.joined ? there : 0));
    target.joined = true;
    return {};
  }
  for (size_t i = 0; i < count; ++i) {
    target.ids[there - free + i] = moved.members[i]->id;
    target.members[there - free + i] = moved.members[i];
  }
  entries::put(*pool_.model_, {&moved.carried, 0}, count, target.carried, there - free);
  return {};
}

// `room`: for further streams. The new data is exclusive.
Status PoolPlaces::grow(Remade& target, const Moved& moved, size_t room) {
  std::vector<entries::Entry> entries;
  for (size_t i = 0; i < target.members.size(); ++i) entries.push_back({&target.carried, i});
  for (size_t i = 0; i < moved.members.size(); ++i) entries.push_back({&moved.carried, i});
  std::vector<int64_t> ids = target.ids;
  std::vector<PoolMember*> members = target.members;
  for (PoolMember* member : moved.members) {
    ids.push_back(member->id);
    members.push_back(member);
  }
  ids.resize(ids.size() + room);
  members.resize(members.size() + room);
  TREADLE_ASSIGN(target.carried, entries::gather(*pool_.model_, entries, members.size()));
  target.ids = std::move(ids);
  target.members = std::move(members);
  return {};
}

PoolPlaces::Remade* PoolPlaces::remade_like(const Carried& carried) {
  const auto it = std::find_if(remade_.begin(), remade_.end(), [&](const Remade& r) {
    return entries::fit_together(*pool_.model_, r.carried, carried);
  });
  return it == remade_.end() ? nullptr : &*it;
}

PoolGroup* PoolPlaces::group_like(const Carried& carried) {
  const auto is_remade = [&](const PoolGroup& group) {
    return std::any_of(remade_.begin(), remade_.end(), [&](const Remade& r) { return r.group == &group; });
  };
  for (PoolGroup& group : pool_.groups_) {
    if (!is_remade(group) && entries::fit_together(*pool_.model_, group.carried, carried)) return &group;
  }
  return nullptr;
}

void PoolPlaces::promise(const Moved& moved, PoolGroup& group) {
  promised_.insert(promised_.end(), moved.members.begin(), moved.members.end());
  for (PoolMember* member : moved.members) member->goes_to = &group;
}

void PoolPlaces::forget_promises() {
  for (const Written& w : written_) w.group->promised = 0;
  for (PoolMember* member : promised_) member->goes_to = nullptr;
  written_.clear();
  promised_.clear();
}

void PoolPlaces::leave(StreamPool& pool, PoolMember& member) {
  PoolGroup* group = std::exchange(member.group, nullptr);
  if (!group) return;
  group->members[member.at] = nullptr;
  if (--group->live > 0) return;
  pool.groups_.remove_if([&](const PoolGroup& g) { return &g == group; });
}

void PoolPlaces::take() {
  // Members give up entries that they do not keep. Their groups stay until all members have their new entries.
  for (PoolMember* member : promised_) {
    if (!member->group || member->group == member->goes_to) continue;
    member->group->members[member->at] = nullptr;
    --member->group->live;
  }
  pool_.groups_.splice(pool_.groups_.end(), fresh_);
  for (Remade& made : remade_) {
    finish(made);
    pool_.spare_ = std::move(made.carried);
  }
  for (const Written& written : written_) write(written);
  forget_promises();
  remade_.clear();
  pool_.groups_.remove_if([](const PoolGroup& group) { return group.live == 0; });
}

void PoolPlaces::finish(Remade& remade) {
  PoolGroup& group = *remade.group;
  group.ids.swap(remade.ids);
  group.members.swap(remade.members);
  std::swap(group.carried, remade.carried);
  group.live = 0;
  for (size_t i = 0; i < group.members.size(); ++i) {
    PoolMember*& member = group.members[i];
    if (member && member->goes_to && member->goes_to != &group) member = nullptr;  // it moves to another group
    if (!member) continue;
    member->group = &group;
    member->at = i;
    ++group.live;
  }
}

void PoolPlaces::write(const Written& written) {
  PoolGroup& group = *written.group;
  size_t free = 0;
  for (size_t i = 0; i < written.members.size(); ++i) {
    PoolMember& member = *written.members[i];
    if (written.moves) {
      while (group.members[free]) ++free;
      group.members[free] = &member;
      group.ids[free] = member.id;
      ++group.live;
      member.group = &group;
      member.at = free;
    }
    entries::put(*pool_.model_, {&written.carried, i}, 1, group.carried, member.at);
  }
}

}  // namespace treadle

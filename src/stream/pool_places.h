#pragma once
// Decides which entries of a pool hold the streams' new data. find() chooses entries and allocates all memory; take()
// changes the pool and never fails.

#include <list>
#include <span>
#include <vector>

#include "stream/pool.h"

namespace treadle {

class PoolPlaces {
 public:
  // The new data of members that ran together, one entry each. `origin`: their group; null: none. Besides all members
  // of a whole group, some may come from no group.
  struct Moved {
    std::vector<PoolMember*> members;
    PoolGroup* origin;
    Carried carried;
  };

  explicit PoolPlaces(StreamPool& pool) : pool_(pool) {}
  PoolPlaces(const PoolPlaces&) = delete;
  PoolPlaces& operator=(const PoolPlaces&) = delete;
  ~PoolPlaces();

  Status find(std::vector<Moved> moved);
  void take();
  // Removes the member from its entry. Never fails.
  static void leave(StreamPool& pool, PoolMember& member);

 private:
  // A group that is rebuilt.
  struct Remade {
    PoolGroup* group;
    std::vector<int64_t> ids;
    std::vector<PoolMember*> members;  // null: an unused entry
    Carried carried;
    bool joined;  // streams of another group were added
  };
  // Data to be written into entries of a group: into the members' own, or into unused ones.
  struct Written {
    PoolGroup* group;
    std::vector<PoolMember*> members;
    Carried carried;
    bool moves;  // into unused entries
  };

  Status find_one(Moved moved, bool whole);
  Remade* remade_like(const Carried& carried);
  PoolGroup* group_like(const Carried& carried);
  Status join(Remade& target, const Moved& moved);
  Status grow(Remade& target, const Moved& moved, size_t room);
  Status add(PoolGroup& group, Moved moved);
  void promise(const Moved& moved, PoolGroup& group);
  void forget_promises();
  static void finish(Remade& remade);
  void write(const Written& written);

  StreamPool& pool_;
  std::list<PoolGroup> fresh_;
  std::vector<Remade> remade_;
  std::vector<Written> written_;
  std::vector<PoolMember*> promised_;  // members that get new entries
};

}  // namespace treadle

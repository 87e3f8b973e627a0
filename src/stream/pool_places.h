#pragma once
// Where in a pool lies what streams carry from now on. find() looks for a place and gets all memory that is needed;
// take() changes the pool, and fails never.

#include <list>
#include <span>
#include <vector>

#include "stream/pool.h"

namespace treadle {

class PoolPlaces {
 public:
  // What members carry now, with an entry for each. They come from `origin` (null: from no group); where all of its
  // members do, some may come from no group.
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
  // The member gives up its place. Fails never.
  static void leave(StreamPool& pool, PoolMember& member);

 private:
  // What is to become a group, in place of what it was.
  struct Remade {
    PoolGroup* group;
    std::vector<int64_t> ids;
    std::vector<PoolMember*> members;  // null: room
    Carried carried;
    bool joined;  // by streams of another group
  };
  // What is to be written into entries of a group: those that its members have, or those that are free.
  struct Written {
    PoolGroup* group;
    std::vector<PoolMember*> members;
    Carried carried;
    bool moves;  // to entries that are free
  };

  Status find_one(Moved moved, bool whole);
  Remade* remade_like(const Carried& carried);
  PoolGroup* group_like(const Carried& carried);
  Status join(Remade& target, const Moved& moved);
  Status grow(Remade& target, const Moved& moved, size_t room);
  Status add(PoolGroup& group, Moved moved);
  void promise(const Moved& moved, PoolGroup& group);
  void forget_promises();
  static void settle(Remade& remade);
  void write(const Written& written);

  StreamPool& pool_;
  std::list<PoolGroup> fresh_;
  std::vector<Remade> remade_;
  std::vector<Written> written_;
  std::vector<PoolMember*> promised_;  // members that go somewhere
};

}  // namespace treadle

#pragma once
// Requests that stand for themselves, and requests of sequences whose states the server keeps. Requests of equal shapes
// run as the entries of one batch.

#include "work.h"

namespace backend {

class Batches final : public Runner {
 public:
  Batches(TRITONBACKEND_ModelInstance* instance, const Model& model);

 protected:
  void run(std::span<Work> works) override;

 private:
  struct Part {
    Work* work = nullptr;
    int64_t entries = 1;
    std::vector<const Arrived*> inputs;  // parallel to Model::fed; null: not given
  };
  using Group = std::vector<Part>;

  Part part_of(Work& work) const;
  bool go_together(const Part& one, const Part& other) const;
  treadle::Value gather(const Group& group, size_t input, int64_t entries) const;
  void run_group(Group group);
  std::vector<treadle::Value> results_of(const Group& group, const std::vector<const char*>& names) const;
  std::vector<const char*> wanted(const Group& group) const;
  void respond(Part& part, const std::vector<const char*>& names, const std::vector<treadle::Value>& results,
               int64_t begin, int64_t entries);

  const Model& model_;
  std::vector<std::string> fed_;
};

}  // namespace backend

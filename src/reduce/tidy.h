#pragma once
// What makes a model coherent again behind a change: names that have lost their definition, and what nobody reads now.

#include "reduce/candidate.h"

namespace treadle::reduce {

// What takes the place of a value that is no longer computed.
enum class Mend : uint8_t { kZeros, kInput };

// Drops outputs of the model that nothing defines; if all go, results that nothing reads become outputs. Then mends
// other names that nothing defines. False if the model would have no output.
bool mend(Candidate& candidate, Mend by);
// Takes out nodes, initializers and declared types that nobody reads, except those that nobody read before.
void prune(Candidate& candidate);
inline bool tidy(Candidate& candidate, Mend by = Mend::kZeros) {
  if (!mend(candidate, by)) return false;
  prune(candidate);
  return true;
}

// Results of nodes that nothing reads become outputs of the model; Constant nodes aside. `but`: names that do not.
void show_unread(Candidate& candidate, const std::unordered_set<std::string_view>& but);
// Results of nodes of the model's graph that nothing reads.
std::unordered_set<std::string_view> unread_results(wire::ModelProto& model);

// Fills in what `facts` knows of names that nothing defines, and of values that nothing reads.
void note_unread(wire::ModelProto& model, Facts& facts);

// Other names for values, wherever they are read.
class Replacements {
 public:
  explicit Replacements(Candidate& candidate) : candidate_(candidate), names_(candidate.model) {}
  const Names& names() const { return names_; }
  // `by` is visible where `definition` is, and may have a replacement itself.
  void add(const Definition& definition, std::string_view by);
  // Where an output of a body would become a value from around it, an Identity makes the output. An output of the model
  // goes if what would take its place is no result of a node, or an output already.
  void apply();

 private:
  std::string_view final_name(size_t scope, std::string_view name);
  void rename_outputs_of_model();
  void rename_outputs_of_body(size_t scope);

  Candidate& candidate_;
  Names names_;
  // By the index of a definition: its replacement, and where replacements of replacements end. Empty: it stays; not
  // known.
  std::vector<std::string_view> by_, final_;
};

}  // namespace treadle::reduce

#pragma once
// What the functions of one C file share: helper functions, tables of constants, names, and the texts around them.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "c/compile.h"
#include "c/functions.h"
#include "c/names.h"
#include "c/text.h"

namespace treadle::c {

// Memory of instructions, windows and constants begins at multiples of 64 bytes.
inline size_t aligned(size_t bytes) {
  constexpr size_t kAlignment = 64;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

class File {
 public:
  explicit File(const Options& options)
      : options_(options),
        functions_(options.prefix, options.isa, options.libm, names_),
        upper_(functions_.upper_prefix()) {}

  const Options& options() const { return options_; }
  const std::string& prefix() const { return options_.prefix; }
  const std::string& upper() const { return upper_; }  // begins macros
  Functions& functions() { return functions_; }
  Names& names() { return names_; }
  // The name of a constant table of these elements. Equal elements under the same type are one table.
  std::string table(std::string_view name, ElementType type, const void* elements, size_t count);
  // The same, as an expression for the bodies of programs: the table, or a place in `weights`.
  std::string constant(std::string_view name, ElementType type, const void* elements, size_t count);
  // The bytes of constants that are apart, and the parameter of a function that reads them: empty if none are.
  const std::string& weights() const { return weights_; }
  std::string weights_parameter(std::string_view type) const {
    return options_.weights_apart ? fmt::format("{}weights, ", type) : std::string();
  }
  std::string error(std::string_view code) const { return upper_ + "_" + std::string(code); }

  // The header's begin and end. `scratch`: bytes that a run works in. `runs`: "run" or "push". `ends`: a stream that
  // knows the end of its signal.
  void open_header(Text& text, size_t scratch, std::string_view runs, bool ends = false) const;
  static void close_header(Text& text);
  // The source: what compilers have to know, helper functions, tables, then `code`.
  std::string source(std::string_view code) const;

 private:
  const Options& options_;
  Names names_;
  Functions functions_;
  std::string upper_;
  std::string tables_, weights_;
  std::map<std::string, size_t, std::less<>> place_of_;       // in `weights_`, by contents
  std::map<std::string, std::string, std::less<>> table_of_;  // by type and contents
};

// An input or output of a program, as a member of a structure or a parameter.
struct Member {
  std::string own, name;  // in the model, and in C
  Type type;
  bool is_used = false;
};
// Writes the structure `<prefix>_<kind>` of pointers. Members that are not used are named in comments.
void write_structure(Text& text, const File& file, std::string_view kind, std::string_view qualifier,
                     const std::vector<Member>& members);

// Names of members for names of the model.
std::vector<std::string> member_names(const std::vector<std::string>& own);

// Why an instruction cannot be written.
struct Refusal {
  std::string node;    // "Sin node 'y'"
  std::string reason;  // "..." as the end of "..., because"
};
Status refused(const std::vector<Refusal>& refusals);

// A program as the body of a C function.
struct Body {
  std::string declarations, text;
  std::vector<Member> inputs, outputs;  // parallel to the program's
  size_t scratch_bytes = 0;             // of `unsigned char *memory`
  bool may_fail = false;                // the body sets `int error`
  std::vector<Refusal> refusals;        // if there are any, nothing else counts
};
// `in_structures`: inputs and outputs are members of `inputs` and `outputs`, and not parameters of their names.
Result<Body> write_body(File& file, const plan::Program& program, const std::vector<std::string>& output_names,
                        bool in_structures);

}  // namespace treadle::c

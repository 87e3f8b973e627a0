#pragma once

#include <nanobind/stl/map.h>

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gil_held.h"
#include "support.h"

namespace treadle_python {

// Names (which the fed dict keeps alive) and values, parallel.
struct Feeds {
  std::vector<Owned<treadle_value>> owned;
  std::vector<const char*> names;
  std::vector<const treadle_value*> values;

  Feeds() = default;
  ~Feeds() {
    const GilHeld held;
    owned.clear();
  }
  Feeds(const Feeds&) = delete;
  Feeds& operator=(const Feeds&) = delete;
};

// Handles that the engine fills; freed unless taken.
class Outputs {
 public:
  explicit Outputs(size_t count) : handles_(count, nullptr) {}
  ~Outputs() {
    for (treadle_value* handle : handles_) treadle_value_free(handle);
  }
  Outputs(const Outputs&) = delete;
  Outputs& operator=(const Outputs&) = delete;
  treadle_value** data() { return handles_.data(); }
  size_t size() const { return handles_.size(); }
  Owned<treadle_value> take(size_t i) { return Owned<treadle_value>(std::exchange(handles_[i], nullptr)); }

 private:
  std::vector<treadle_value*> handles_;
};

class Session {
 public:
  // `path`, or `bytes` with the folder of their external data; the others None.
  Session(nb::object path, nb::object bytes, nb::object folder, const std::map<std::string, std::string>& options,
          const std::map<std::string, int64_t>& dimensions);

  AnyList run(nb::handle names, nb::handle feed, nb::handle options) const;
  // `given`: values to write into, or None; parallel to the names.
  std::vector<Value> run_values(nb::handle names, AnyDict feed, std::vector<Value*> given, nb::handle options) const;
  // (name, type, shape); the shape is a list, or None
  using Infos = nb::typed<nb::list, nb::typed<nb::tuple, nb::str, nb::str, nb::any>>;
  Infos infos(int role) const;
  AnyDict metadata() const;
  using Counters = nb::typed<nb::dict, nb::str, int64_t>;
  Counters counters() const;
  void wait_compiled() const;
  void compile() const;
  // `feed` may be None. Text, or JSON.
  nb::str explain(nb::handle feed, bool json) const;
  // Text, JSON and trace.
  nb::typed<nb::tuple, nb::str, nb::str, nb::str> profile(nb::handle feed, size_t runs, nb::handle options) const;
  nb::str dump_graph() const;
  nb::str dump_plan(nb::handle feed) const;

  // Throws InvalidArgument for an unknown name, ValueError for missing inputs.
  void collect(nb::handle feed, Feeds& feeds, bool allow_missing) const;
  Owned<treadle_value> input_value(const char* name, nb::handle object) const;

  Owned<treadle_session> handle;

 private:
  struct Input {
    const treadle_type* type;
    bool required;
    size_t index;
  };
  std::vector<const char*> output_names(nb::handle names) const;
  [[noreturn]] void unknown_input(const char* name) const;
  [[noreturn]] void missing_inputs(nb::handle feed) const;

  std::unordered_map<std::string_view, Input> inputs_;  // names belong to the session
  size_t required_ = 0;
};

}  // namespace treadle_python

// Every function of treadle.h, with every pointer, every element of every array of pointers and every count in turn
// NULL or 0. No call ends the process. A status names the argument that is NULL, unless treadle.h says what NULL means
// there: then the call succeeds.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/apart.h"
#include "support/source_dir.h"
#include "support/temp_dir.h"
#include "support/words.h"
#include "treadle/treadle.hpp"

namespace {

using treadle::test::told_apart;
using treadle::test::Word;
using treadle::test::word_of;

// ---- Declarations of treadle.h

// Names of the parameters of each function.
using Declarations = std::map<std::string, std::vector<std::string>>;

// "void (*release)(void* context)" has the name `release`.
std::string parameter_name(const std::string& declared) {
  static const std::regex last_word(R"((\w+)\s*$)"), function(R"(\(\*(\w+)\))");
  std::smatch found;
  return std::regex_search(declared, found, function) || std::regex_search(declared, found, last_word) ? found[1].str()
                                                                                                       : "";
}

std::vector<std::string> parameter_names(const std::string& list) {
  std::vector<std::string> names;
  std::string declared;
  int depth = 0;
  for (const char c : list + ",") {
    depth += (c == '(') - (c == ')');
    if (c != ',' || depth > 0) {
      declared += c;
      continue;
    }
    names.push_back(parameter_name(declared));
    declared.clear();
  }
  return names == std::vector<std::string>{"void"} ? std::vector<std::string>() : names;
}

Declarations declarations() {
  std::ifstream header(std::string(treadle::source_dir()) + "/include/treadle/treadle.h");
  const std::string text(std::istreambuf_iterator<char>(header), {});
  static const std::regex declaration(R"(TREADLE_API [\w* ]*?(treadle_\w+)\(([^;]*)\);)");
  Declarations found;
  for (auto one = std::sregex_iterator(text.begin(), text.end(), declaration); one != std::sregex_iterator(); ++one) {
    found[(*one)[1]] = parameter_names((*one)[2]);
  }
  return found;
}

// The places where treadle.h says what NULL means, beside its rules for `options`, callbacks, contexts and empty
// arrays.
bool has_meaning(const std::string& function, const std::string& parameter) {
  static const std::map<std::string, std::set<std::string>> meanings = {
      {"treadle_sequence_create", {"element"}},
      {"treadle_optional_create", {"element", "value"}},
      {"treadle_value_from_pb", {"type"}},
      {"treadle_value_from_pb_file", {"type"}},
      {"treadle_value_to_pb", {"name"}},
      {"treadle_session_from_bytes", {"folder"}},
      {"treadle_session_run", {"output_names"}},
      {"treadle_session_bind", {"output_names"}},
      {"treadle_session_run_recorded", {"output_names"}},
      {"treadle_session_trace", {"outputs", "element of outputs"}},
      {"treadle_stream_push", {"hops"}},
      {"treadle_stream_flush", {"hops"}},
      {"treadle_pool_push_batch", {"lengths"}},
      {"treadle_model_check", {"path", "bytes"}},
      {"treadle_model_infer", {"path", "bytes"}},
      {"treadle_model_tree", {"path", "bytes"}},
      {"treadle_model_expose", {"path", "bytes"}},
      {"treadle_model_node", {"path", "bytes"}},
      {"treadle_model_reduce", {"path", "bytes"}},
      {"treadle_model_open_sizes", {"path", "bytes"}},
      {"treadle_operator_create", {"domain"}},
      {"treadle_operator_input", {"name", "type"}},
      {"treadle_operator_output", {"name", "type"}},
      {"treadle_inference_set_output", {"symbols", "element of symbols"}},
      {"treadle_call_allocate", {"tensor"}},
  };
  const auto found = meanings.find(function);
  return found != meanings.end() && found->second.contains(parameter);
}
// Elements that are an empty optional, where another value is expected.
bool may_be_empty(const std::string& function, const std::string& parameter) {
  return parameter == "values" && function != "treadle_sequence_create";
}

// ---- Arguments of calls that succeed

void check(treadle_status* status) {
  if (!status) return;
  ADD_FAILURE() << treadle_status_text(status);
  treadle_status_free(status);
}

// Results of functions of this kind: a handle, or bytes that the caller frees.
template <class T, class... Parameters, class... Arguments>
T* made(treadle_status* (*function)(Parameters...), Arguments... arguments) {
  T* result = nullptr;
  check(function(arguments..., &result));
  return result;
}
template <class... Parameters, class... Arguments>
std::string bytes_of(treadle_status* (*function)(Parameters...), Arguments... arguments) {
  char* bytes = nullptr;
  size_t size = 0;
  check(function(arguments..., &bytes, &size));
  std::string copy(bytes, size);
  treadle_free(bytes);
  return copy;
}

std::string model_of(const std::string& text) {
  return bytes_of(treadle_text_parse, TREADLE_MODEL, text.data(), text.size());
}

const std::string kHead = R"(<ir_version: 8, opset_import: ["" : 17, "nulls" : 1]>)";

treadle_operator_functions functions_of_identity() {
  treadle_operator_functions functions = {};
  functions.size = sizeof functions;
  functions.compute = [](void*, treadle_call* call) { return treadle_call_set(call, 0, treadle_call_input(call, 0)); };
  functions.infer = [](void*, treadle_inference* inference) { return treadle_inference_set_like(inference, 0, 0); };
  return functions;
}

treadle_operator* operator_with(const treadle_operator_functions& functions) {
  auto* const made_operator = made<treadle_operator>(treadle_operator_create, "nulls", "Looks", 1);
  check(treadle_operator_input(made_operator, "x", "tensor(float)", TREADLE_SINGLE));
  check(treadle_operator_output(made_operator, "y", "tensor(float)", TREADLE_SINGLE));
  check(treadle_operator_set_functions(made_operator, &functions));
  return made_operator;
}

treadle_value* floats(std::vector<int64_t> dims) {
  auto* const tensor = made<treadle_value>(treadle_tensor_create, 1, dims.data(), dims.size());
  std::memset(treadle_tensor_mutable_data(tensor), 0, treadle_tensor_bytes(tensor));
  return tensor;
}

// One handle of each type, alive as long as this object.
struct Handles {
  Handles();
  ~Handles();
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  treadle::TempDir folder;
  std::string model = model_of(kHead + "g (float[B, 1] x) => (float[B, 1] y) { y = Neg(x) }");
  std::string value_bytes, snapshot, model_path, value_path;

  treadle_options* options = made<treadle_options>(treadle_options_create);
  treadle_run_options* run_options = made<treadle_run_options>(treadle_run_options_create);
  treadle_stream_options* stream_options = made<treadle_stream_options>(treadle_stream_options_create);
  treadle_session* session = nullptr;
  treadle_session* stateful = nullptr;  // its stream has the state `h`
  treadle_stream* stream = nullptr;
  treadle_value *stepped = nullptr, *run_result = nullptr;  // what steps of the stream, and bound runs, give
  treadle_bound* bound = nullptr;
  treadle_pool* pool = nullptr;  // it has stream 7
  treadle_profile* profile = nullptr;
  treadle_trace_options* trace_options = made<treadle_trace_options>(treadle_trace_options_create);
  treadle_trace* trace = nullptr;
  treadle_report* report = nullptr;
  treadle_status* status = treadle_status_create(TREADLE_RUNTIME, "said");
  treadle_operator* op = operator_with(functions_of_identity());
  treadle_value* tensor = floats({1, 1});
  treadle_value* texts = nullptr;
  treadle_value* keys = nullptr;
  treadle_value* numbers = floats({1});
  treadle_value* sequence = nullptr;
  treadle_value* optional = nullptr;
  treadle_value* map = nullptr;

  // Arguments of an operator's functions; NULL elsewhere.
  const treadle_node* node = nullptr;
  treadle_call* call = nullptr;
  treadle_inference* inference = nullptr;
};

Handles::Handles() {
  check(treadle_options_set(options, "threads", "1"));  // children of this process have one thread
  check(treadle_options_set(options, "jit", "off"));
  session = made<treadle_session>(treadle_session_from_bytes, model.data(), model.size(), nullptr, options);
  const std::string with_state = model_of(
      kHead +
      "g (float[B, 1] x, float[B, 1] h) => (float[B, 1] y, float[B, 1] h_out) { y = Add(x, h) h_out = Neg(y) }");
  stateful = made<treadle_session>(treadle_session_from_bytes, with_state.data(), with_state.size(), nullptr, options);
  check(treadle_stream_options_pair(stream_options, "h", "h_out"));
  stream = made<treadle_stream>(treadle_stream_create, stateful, stream_options);
  pool = made<treadle_pool>(treadle_pool_create, stateful, stream_options, size_t{4});
  snapshot = bytes_of(treadle_stream_save, stream);
  const char* const name = "x";
  const int64_t id = 7;
  treadle_value* output = nullptr;
  check(treadle_pool_push(pool, nullptr, &id, 1, &name, 1, &tensor, &output));
  treadle_value_free(output);
  check(treadle_stream_bind(stream, nullptr, &name, &tensor, 1, &stepped));
  bound = made<treadle_bound>(treadle_session_bind, session, nullptr, &name, &tensor, size_t{1}, nullptr, size_t{0},
                              &run_result);
  profile = made<treadle_profile>(treadle_session_profile, session, nullptr, &name, &tensor, size_t{1}, size_t{1});
  trace = made<treadle_trace>(treadle_session_trace, session, nullptr, nullptr, &name, &tensor, size_t{1}, nullptr);
  report = made<treadle_report>(treadle_model_check, nullptr, model.data(), model.size(), TREADLE_CHECK_FULL);
  value_bytes = bytes_of(treadle_value_to_pb, tensor, "x");
  model_path = folder.write("model.onnx", model);
  value_path = folder.write("value.pb", value_bytes);
  const treadle_text text = {"x", 1};
  const int64_t one = 1;
  texts = made<treadle_value>(treadle_tensor_from_texts, &one, size_t{1}, &text, size_t{1});
  keys = made<treadle_value>(treadle_tensor_from_texts, &one, size_t{1}, &text, size_t{1});
  map = made<treadle_value>(treadle_map_create, keys, numbers);
  sequence = made<treadle_value>(treadle_sequence_create, nullptr, &map, size_t{1});
  optional = made<treadle_value>(treadle_optional_create, nullptr, tensor);
}

Handles::~Handles() {
  for (treadle_value* value : {tensor, texts, keys, numbers, sequence, optional, map, stepped, run_result}) {
    treadle_value_free(value);
  }
  treadle_operator_free(op);
  treadle_status_free(status);
  treadle_report_free(report);
  treadle_profile_free(profile);
  treadle_trace_free(trace);
  treadle_trace_options_free(trace_options);
  treadle_bound_free(bound);
  treadle_pool_free(pool);
  treadle_stream_free(stream);
  treadle_session_free(stateful);
  treadle_session_free(session);
  treadle_stream_options_free(stream_options);
  treadle_run_options_free(run_options);
  treadle_options_free(options);
}

template <class T>
struct Callback;
template <class Result, class... Parameters>
struct Callback<Result (*)(Parameters...)> {
  static Result answer(Parameters...) { return Result(); }
};

// One argument, and the memory that it points to.
class Argument {
 public:
  Argument(Handles& handles, std::string function, std::string name)
      : handles_(handles), function_(std::move(function)), name_(std::move(name)) {}

  template <class P>
  P get() {
    using Target = std::remove_pointer_t<P>;
    if constexpr (std::is_same_v<P, const char*>) {
      return text();
    } else if constexpr (std::is_same_v<P, size_t>) {
      return count();
    } else if constexpr (std::is_enum_v<P> || std::is_arithmetic_v<P>) {
      return static_cast<P>(number());
    } else if constexpr (std::is_function_v<Target>) {
      return Callback<P>::answer;
    } else if constexpr (std::is_void_v<std::remove_const_t<Target>>) {
      return const_cast<void*>(memory());
    } else if constexpr (std::is_same_v<P, const char* const*>) {
      static const char *options[] = {"libm=1"}, *of_stream[] = {"dim=B=1"};
      if (name_ == "options") return is_of("stream_write_c") ? of_stream : options;
      names_[0] = name_ == "sizes" ? "x:1=n" : name_ == "output_names" || name_ == "wanted" ? "y" : "x";
      return names_;
    } else if constexpr (std::is_pointer_v<Target>) {
      if constexpr (std::is_const_v<Target>) places_[0] = handles_.tensor;
      return reinterpret_cast<P>(places_);
    } else {
      return const_cast<P>(handle(static_cast<const Target*>(nullptr)));
    }
  }

 private:
  bool is_of(const std::string& part) const { return function_.find(part) != std::string::npos; }

  const char* text() const {
    if (name_ == "path") return is_of("_pb_file") ? handles_.value_path.c_str() : handles_.model_path.c_str();
    if (name_ == "text") return kModelText.c_str();
    static const std::map<std::string, const char*> texts = {
        {"key", "threads"},  {"value", "1"},  {"field", "domain"},       {"domain", "nulls"}, {"input", "h"},
        {"output", "h_out"}, {"folder", "."}, {"type", "tensor(float)"}, {"node", "/Neg_0"},  {"what", "nan"}};
    const auto found = texts.find(name_);
    return found == texts.end() ? "t" : found->second;
  }
  const std::string& bytes() const {
    if (is_of("value_from_pb")) return handles_.value_bytes;
    if (is_of("stream_load")) return handles_.snapshot;
    return is_of("text_parse") ? kModelText : handles_.model;
  }
  size_t count() const {
    if (name_ == "index" || name_ == "output" || name_ == "input" || name_ == "version") return 0;
    if (name_ == "bytes") return sizeof(treadle_counters);
    if (name_ == "rank" && is_of("from_texts")) return 1;
    return name_ == "size" && !is_of("set_dimension") ? bytes().size() : 1;
  }
  int number() const {
    if (name_ == "id") return is_of("pool_join") ? 8 : 7;
    static const std::set<std::string> ones = {"element", "since", "size", "threads", "hop"};
    return ones.contains(name_) ? 1 : 0;
  }
  const void* memory() {
    if (function_ == "treadle_free") return std::malloc(1);
    return name_ == "bytes" ? static_cast<const void*>(bytes().data()) : room_;
  }

  const treadle_options* handle(const treadle_options*) { return handles_.options; }
  const treadle_run_options* handle(const treadle_run_options*) { return handles_.run_options; }
  const treadle_stream_options* handle(const treadle_stream_options*) { return handles_.stream_options; }
  const treadle_session* handle(const treadle_session*) {
    return is_of("treadle_stream") || is_of("treadle_pool") ? handles_.stateful : handles_.session;
  }
  const treadle_stream* handle(const treadle_stream*) { return handles_.stream; }
  const treadle_pool* handle(const treadle_pool*) { return handles_.pool; }
  const treadle_bound* handle(const treadle_bound*) { return handles_.bound; }
  const treadle_profile* handle(const treadle_profile*) { return handles_.profile; }
  const treadle_trace_options* handle(const treadle_trace_options*) { return handles_.trace_options; }
  const treadle_trace* handle(const treadle_trace*) { return handles_.trace; }
  const treadle_report* handle(const treadle_report*) { return handles_.report; }
  const treadle_status* handle(const treadle_status*) { return handles_.status; }
  const treadle_operator* handle(const treadle_operator*) { return handles_.op; }
  const treadle_node* handle(const treadle_node*) { return handles_.node; }
  const treadle_call* handle(const treadle_call*) { return handles_.call; }
  const treadle_inference* handle(const treadle_inference*) { return handles_.inference; }
  const treadle_attribute* handle(const treadle_attribute*) {
    return handles_.node ? treadle_node_attribute(handles_.node, "t") : nullptr;
  }
  const treadle_type* handle(const treadle_type*) { return treadle_session_type(handles_.session, TREADLE_INPUT, 0); }
  const treadle_value* handle(const treadle_value*) {
    const std::map<std::string, const treadle_value*> values = {{"sequence", handles_.sequence},
                                                                {"optional", handles_.optional},
                                                                {"map", handles_.map},
                                                                {"keys", handles_.keys},
                                                                {"values", handles_.numbers}};
    if (is_of("tensor_text")) return handles_.texts;
    const auto found = values.find(name_);
    return found == values.end() ? handles_.tensor : found->second;
  }
  const treadle_text* handle(const treadle_text*) { return &text_; }
  const treadle_operator_functions* handle(const treadle_operator_functions*) { return &functions_; }
  template <class Number>
  const Number* handle(const Number*) {  // a size, an id, or capacity for a result
    room_[0] = name_ == "ids" ? 7 : 1;
    return reinterpret_cast<const Number*>(room_);
  }

  const std::string kModelText = kHead + "g (float[N] x) => (float[N] y) { y = Neg(x) }";
  Handles& handles_;
  std::string function_, name_;
  const char* names_[1] = {};
  void* places_[8] = {};
  alignas(64) int64_t room_[64] = {};
  treadle_text text_ = {"x", 1};
  treadle_operator_functions functions_ = functions_of_identity();
};

// ---- The calls

// A function of the header.
using Words = std::vector<Word>;

struct Parameter {
  bool is_pointer, is_callback, is_defaults, is_list, is_texts, is_count;
  Word (*given)(Argument& argument);
};

template <class P>
constexpr Parameter parameter() {
  using Target = std::remove_pointer_t<P>;
  return {.is_pointer = std::is_pointer_v<P>,
          .is_callback = std::is_function_v<Target>,
          .is_defaults = std::is_same_v<P, const treadle_options*> || std::is_same_v<P, const treadle_run_options*> ||
                         std::is_same_v<P, const treadle_stream_options*> ||
                         std::is_same_v<P, const treadle_trace_options*>,
          .is_list = std::is_pointer_v<P> && std::is_pointer_v<Target> && std::is_const_v<Target>,
          .is_texts = std::is_same_v<P, const treadle_text*>,
          .is_count = std::is_same_v<P, size_t>,
          .given = [](Argument& argument) { return word_of(argument.get<P>()); }};
}

struct Function {
  std::string name;
  bool tells;  // whether it returns a status
  // Whether it needs a handle that only an operator's own functions get.
  bool of_operator;
  std::vector<Parameter> parameters;
  std::function<std::string(const Words&)> said;
};

template <class P>
constexpr bool kIsOfOperator = std::is_same_v<P, const treadle_node*> || std::is_same_v<P, const treadle_attribute*> ||
                               std::is_same_v<std::remove_const_t<std::remove_pointer_t<P>>, treadle_inference> ||
                               std::is_same_v<std::remove_const_t<std::remove_pointer_t<P>>, treadle_call>;

template <class Result, class... Parameters>
std::string call(Result (*function)(Parameters...), const Words& words) {
  std::tuple<Parameters...> arguments;
  size_t at = 0;
  std::apply([&](auto&... each) { (std::memcpy(&each, &words[at++], sizeof each), ...); }, arguments);
  if constexpr (std::is_same_v<Result, treadle_status*>) {
    return treadle_status_text(std::apply(function, arguments));
  } else {
    std::apply(function, arguments);
    return "";
  }
}

template <class Result, class... Parameters>
Function function_of(const char* name, Result (*function)(Parameters...)) {
  bool of_operator = false;
  if constexpr (sizeof...(Parameters) > 0) {
    of_operator = kIsOfOperator<std::tuple_element_t<0, std::tuple<Parameters...>>>;
  }
  // That function returns a status in any case.
  const bool tells = std::is_same_v<Result, treadle_status*> && std::string(name) != "treadle_status_create";
  return {name, tells, of_operator, {parameter<Parameters>()...}, [=](const Words& words) {
            const std::string text = call(function, words);
            return tells ? text : "";
          }};
}

std::vector<Function> functions() {
  return {
#define X(name) function_of(#name, name),
#include "public_functions.inc"
#undef X
  };
}

class NullsOfHeader : public ::testing::Test {
 protected:
  // `of_operator`: test the functions with a handle in `handles` that only an operator's functions get.
  void look_at_all(Handles& handles, bool of_operator) {
    for (const Function& function : functions_) {
      if (function.of_operator != of_operator) continue;
      Argument first(handles, function.name, "");
      if (of_operator && function.parameters[0].given(first) == 0) continue;
      looked_at_.insert(function.name);
      const std::vector<std::string>& names = declared_.at(function.name);
      ASSERT_EQ(names.size(), function.parameters.size()) << function.name;
      look_at(function, names, handles);
    }
  }

  const Declarations declared_ = declarations();
  const std::vector<Function> functions_ = functions();
  std::set<std::string> looked_at_;
  int calls_ = 0;

 private:
  using Vary = std::function<void(Words&)>;

  void look_at(const Function& function, const std::vector<std::string>& names, Handles& handles) {
    // The status of the function after `vary` has changed the arguments of a call that succeeds.
    const auto told = [&](const Vary& vary) {
      ++calls_;
      return told_apart([&] {
        std::deque<Argument> arguments;
        Words words;
        for (size_t i = 0; i < names.size(); ++i) {
          words.push_back(function.parameters[i].given(arguments.emplace_back(handles, function.name, names[i])));
        }
        vary(words);
        return function.said(words);
      });
    };
    const auto survives = [&](const std::string& what, const Vary& vary) {
      EXPECT_TRUE(told(vary)) << function.name << " crashes: " << what;
    };
    // `words`: part of the message; empty: the call succeeds.
    const auto expect = [&](const std::string& what, const std::string& words, const Vary& vary) {
      const std::optional<std::string> found = told(vary);
      ASSERT_TRUE(found) << function.name << " crashes: " << what;
      if (!function.tells) return;
      if (words.empty()) {
        EXPECT_EQ(*found, "") << function.name << ": " << what;
      } else {
        EXPECT_THAT(*found, ::testing::HasSubstr(words)) << function.name << ": " << what;
      }
    };

    expect("nothing is NULL", "", [](Words&) {});
    for (size_t i = 0; i < names.size(); ++i) {
      const Parameter& parameter = function.parameters[i];
      const std::string& name = names[i];
      if (parameter.is_count) survives(name + " is 0", [i](Words& words) { words[i] = 0; });
      if (!parameter.is_pointer) continue;
      const bool has_default = parameter.is_callback || parameter.is_defaults || name == "context";
      const bool needed = !has_default && !has_meaning(function.name, name);
      expect(name + " is NULL", needed ? "argument '" + name + "' is NULL" : "", [i](Words& words) { words[i] = 0; });
      for (size_t k = 0; k < names.size(); ++k) {
        if (!function.parameters[k].is_count) continue;
        survives(name + " is NULL and " + names[k] + " 0", [i, k](Words& words) { words[i] = words[k] = 0; });
      }
      if (parameter.is_list) {
        const Vary empty = [i](Words& words) { *reinterpret_cast<void**>(words[i]) = nullptr; };
        const bool meant = has_meaning(function.name, "element of " + name);
        const std::string what = "an element of " + name + " is NULL";
        if (may_be_empty(function.name, name)) {
          survives(what, empty);
        } else {
          expect(what, meant ? "" : "element 0 of argument '" + name + "' is NULL", empty);
        }
      }
      if (parameter.is_texts) {
        expect("an element of " + name + " has no data", "element 0 of argument '" + name + "'",
               [i](Words& words) { *reinterpret_cast<treadle_text*>(words[i]) = {.data = nullptr, .size = 1}; });
      }
    }
    for (const bool counts : {false, true}) {
      survives(counts ? "every pointer is NULL and every count 0" : "every pointer is NULL", [&](Words& words) {
        for (size_t i = 0; i < words.size(); ++i) {
          const Parameter& parameter = function.parameters[i];
          if (parameter.is_pointer || (counts && parameter.is_count)) words[i] = 0;
        }
      });
    }
  }
};

TEST_F(NullsOfHeader, EveryPointerArgumentMayBeNull) {
  Handles handles;
  look_at_all(handles, false);

  static std::remove_pointer_t<decltype(this)>* test = nullptr;
  static Handles* of_operator = nullptr;
  static bool inferred = false;
  test = this;
  of_operator = &handles;
  inferred = false;
  treadle_operator_functions functions = functions_of_identity();
  functions.make_kernel = [](void*, const treadle_node* node, void**) -> treadle_status* {
    of_operator->node = node;
    test->look_at_all(*of_operator, true);
    of_operator->node = nullptr;
    return nullptr;
  };
  functions.infer = [](void*, treadle_inference* inference) -> treadle_status* {
    of_operator->inference = inference;
    if (!inferred) test->look_at_all(*of_operator, true);
    inferred = true;
    of_operator->inference = nullptr;
    return treadle_inference_set_like(inference, 0, 0);
  };
  functions.compute = [](void*, treadle_call* call) {
    of_operator->call = call;
    test->look_at_all(*of_operator, true);
    of_operator->call = nullptr;
    return treadle_call_set(call, 0, treadle_call_input(call, 0));
  };
  treadle_operator* const looks = operator_with(functions);
  check(treadle_options_add_operator(handles.options, looks));
  const std::string model =
      model_of(kHead + "g (float[1, 1] x) => (float[1, 1] y) { y = nulls.Looks <t = float[1] {1}> (x) }");
  auto* const session =
      made<treadle_session>(treadle_session_from_bytes, model.data(), model.size(), nullptr, handles.options);
  const char* const name = "x";
  treadle_value* output = nullptr;
  check(treadle_session_run(session, nullptr, &name, &handles.tensor, 1, nullptr, 0, &output));
  treadle_value_free(output);
  treadle_session_free(session);
  treadle_operator_free(looks);

  std::set<std::string> all;
  for (const auto& [function, parameters] : declared_) all.insert(function);
  EXPECT_EQ(looked_at_, all);
  std::printf("%zu functions, %d calls with something NULL or 0\n", looked_at_.size(), calls_);
}

// The status of registering and running an operator with these functions.
std::string told_of(const treadle_operator_functions& functions) {
  const auto run = [&]() -> std::string {
    treadle_operator* made_operator = nullptr;
    const auto failed = [](treadle_status* status) { return std::string(treadle_status_text(status)); };
    check(treadle_operator_create("nulls", "Looks", 1, &made_operator));
    check(treadle_operator_input(made_operator, "x", "tensor(float)", TREADLE_SINGLE));
    check(treadle_operator_output(made_operator, "y", "tensor(float)", TREADLE_SINGLE));
    if (auto* const status = treadle_operator_set_functions(made_operator, &functions)) return failed(status);
    auto* const options = made<treadle_options>(treadle_options_create);
    check(treadle_options_set(options, "threads", "1"));
    if (auto* const status = treadle_options_add_operator(options, made_operator)) return failed(status);
    const std::string model = model_of(kHead + "g (float[1, 1] x) => (float[1, 1] y) { y = nulls.Looks(x) }");
    treadle_session* session = nullptr;
    if (auto* const status = treadle_session_from_bytes(model.data(), model.size(), nullptr, options, &session)) {
      return failed(status);
    }
    const char* const name = "x";
    treadle_value *x = floats({1, 1}), *output = nullptr;
    if (auto* const status = treadle_session_run(session, nullptr, &name, &x, 1, nullptr, 0, &output)) {
      return failed(status);
    }
    treadle_session_free(session);
    treadle_options_free(options);
    treadle_operator_free(made_operator);
    return "";
  };
  return told_apart(run).value_or("a crash");
}

TEST(NullMembersOfHeader, OfFunctionsOfAnOperator) {
  static int kernels = 0;
  treadle_operator_functions whole = functions_of_identity();
  whole.context = &kernels;
  whole.make_kernel = [](void* context, const treadle_node*, void** kernel) -> treadle_status* {
    *kernel = context;
    return nullptr;
  };
  whole.free_kernel = whole.release = [](void*) {};
  const std::pair<const char*, std::string> members[] = {
      {"context", ""}, {"make_kernel", ""}, {"free_kernel", ""}, {"compute", "argument 'functions->compute' is NULL"},
      {"infer", ""},   {"release", ""}};
  static_assert(sizeof(treadle_operator_functions) == sizeof(size_t) + std::size(members) * sizeof(void*));
  EXPECT_EQ(told_of(whole), "");
  for (size_t i = 0; i < std::size(members); ++i) {
    treadle_operator_functions lacking = whole;
    std::memset(reinterpret_cast<char*>(&lacking) + sizeof(size_t) + i * sizeof(void*), 0, sizeof(void*));
    EXPECT_EQ(told_of(lacking), members[i].second) << members[i].first;
  }
  whole.size = 0;
  EXPECT_THAT(told_of(whole), ::testing::HasSubstr("functions->size is 0, expected"));
}

TEST(NullsOfCpp, AreRefused) {
  const auto refused = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const treadle::Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refused([] { treadle::Value::of<float>(nullptr, {2}); }), "argument 'data' is NULL");
  EXPECT_EQ(refused([] { treadle::Value::borrow<float>(nullptr, {2}); }), "argument 'data' is NULL");
  EXPECT_EQ(refused([] { treadle::Value().to_doubles(); }), "argument 'tensor' is NULL");
  EXPECT_EQ(refused([] { treadle::Value::sequence({treadle::Value()}); }), "element 0 of argument 'values' is NULL");
  EXPECT_NE(refused([] { treadle::infer_model(static_cast<const char*>(nullptr)); }), "");
  EXPECT_EQ(treadle::Value::of<float>(nullptr, {0}).count(), 0);
  EXPECT_EQ(treadle::Type(nullptr).text(), "");
}

}  // namespace

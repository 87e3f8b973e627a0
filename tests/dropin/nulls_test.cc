// Every function of libonnxruntime.so, with every argument and every element of every array NULL in turn, and with
// every function of the structs that a client fills in: each call ends, and where the argument or the function is
// needed, with a status that names it. Each call runs in a process of its own.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/apart.h"
#include "support/words.h"
#include "tests/dropin/handles.h"

namespace {

using namespace treadle::table_tests;
using treadle::test::from_word;
using treadle::test::told_apart;
using treadle::test::Word;
using treadle::test::word_of;

// Arguments of a call that succeeds: handles, and otherwise an array of one element or room for one result.
class Plausible {
 public:
  explicit Plausible(const Handles& handles) : handles_(handles) {}

  template <class T>
  T argument() {
    using Target = std::remove_const_t<std::remove_pointer_t<T>>;
    if constexpr (std::is_same_v<T, size_t>) {
      return 1;
    } else if constexpr (std::is_same_v<T, const char*>) {
      return "x";
    } else if constexpr (std::is_same_v<T, const char* const*> || std::is_same_v<T, const char**>) {
      return names_;
    } else if constexpr (!std::is_pointer_v<T> || std::is_function_v<Target>) {
      return T{};
    } else if constexpr (std::is_pointer_v<Target>) {
      using Element = std::remove_const_t<std::remove_pointer_t<Target>>;
      places_[0] = room_;
      if constexpr (std::is_class_v<Element>) places_[0] = handles_.first<Element*>();
      return static_cast<T>(static_cast<void*>(places_));
    } else if constexpr (std::is_class_v<Target>) {
      return handles_.first<T>();
    } else {
      room_[0] = 2;  // the size of an axis, the room for a text
      return static_cast<T>(static_cast<void*>(room_));
    }
  }

 private:
  const Handles& handles_;
  const char* names_[1] = {"x"};
  void* places_[8] = {};
  alignas(64) int64_t room_[64] = {};
};

// The arguments that a function needs, found independently of dropin/arguments.h: a place for a handle, a text or a
// number, and elements of arrays that it only reads. Room for several results may be NULL: then the call returns their
// number.
struct Parameter {
  bool is_pointer, is_data, is_count, is_allocator;
  bool is_place;           // for a handle or a text
  bool is_number_or_room;  // a place that no count follows
  bool reads_elements;
  bool belongs_to_operator;  // a handle that only an operator's own functions get
  Word (*plausible)(Plausible&);
};

template <class P>
constexpr Parameter describe() {
  using Target = std::remove_pointer_t<P>;
  using Class = std::remove_const_t<Target>;
  const bool is_data = std::is_pointer_v<P> && !std::is_function_v<Target>;
  const bool is_written = is_data && !std::is_const_v<Target> && !std::is_void_v<Target>;
  return {
      .is_pointer = std::is_pointer_v<P>,
      .is_data = is_data,
      .is_count = std::is_same_v<P, size_t> || std::is_same_v<P, size_t*>,
      .is_allocator = std::is_same_v<Class, OrtAllocator>,
      .is_place = is_written && std::is_pointer_v<Target>,
      .is_number_or_room = is_written && !std::is_pointer_v<Target> && !std::is_class_v<Target>,
      .reads_elements = is_data && std::is_pointer_v<Target> && std::is_const_v<Target>,
      .belongs_to_operator = std::is_same_v<Class, OrtKernelInfo> || std::is_same_v<Class, OrtKernelContext> ||
                             std::is_same_v<Class, OrtShapeInferContext>,
      .plausible = [](Plausible& plausible) { return word_of(plausible.argument<P>()); },
  };
}
template <class P>
constexpr Parameter kParameter = describe<P>();

// Calls of an entry of the table. Little code is compiled for each entry, since there are hundreds.
template <auto kMember>
struct Calls;
template <class Result, class... Parameters, Result (*OrtApi::*kMember)(Parameters...)>
struct Calls<kMember> {
  static constexpr bool kTells = std::is_same_v<Result, OrtStatus*>;
  static constexpr std::array<const Parameter*, sizeof...(Parameters)> kParameters = {&kParameter<Parameters>...};

  // The status of the call; null for success.
  static const OrtStatus* call(const Word* arguments) {
    return call(arguments, std::index_sequence_for<Parameters...>());
  }

 private:
  template <size_t... kPositions>
  static const OrtStatus* call([[maybe_unused]] const Word* arguments, std::index_sequence<kPositions...>) {
    if constexpr (kTells) {
      return (ort().*kMember)(from_word<Parameters>(arguments[kPositions])...);
    } else {
      (ort().*kMember)(from_word<Parameters>(arguments[kPositions])...);
      return nullptr;
    }
  }
};

struct Entry {
  std::string_view how, name;
  bool tells;
  std::span<const Parameter* const> parameters;
  const OrtStatus* (*call)(const Word* arguments);

  bool is_refused() const { return how == "refused"; }
  bool releases() const { return name.starts_with("Release"); }
  bool takes_allocator() const {
    return std::any_of(parameters.begin(), parameters.end(), [](const Parameter* p) { return p->is_allocator; });
  }
  std::string said(std::span<const Word> arguments) const {
    const OrtStatus* const status = call(arguments.data());
    return status ? ort().GetErrorMessage(status) : "";
  }
};

constexpr Entry kEntries[] = {
#define X(how, name, ...) \
  {#how, #name, Calls<&OrtApi::name>::kTells, Calls<&OrtApi::name>::kParameters, Calls<&OrtApi::name>::call},
#include "dropin/entries.inc"
#undef X
};

// Valid arguments, with the data to which they point.
class Arguments {
 public:
  Arguments(const Entry& entry, const Handles& handles) : plausible_(entry.parameters.size(), Plausible(handles)) {
    for (size_t i = 0; i < plausible_.size(); ++i) words_.push_back(entry.parameters[i]->plausible(plausible_[i]));
  }
  Word& operator[](size_t position) { return words_[position]; }
  operator std::span<const Word>() const { return words_; }

 private:
  std::vector<Plausible> plausible_;
  std::vector<Word> words_;
};

enum class Said { kNothing, kNamed, kOther };

// What a call reports when it runs in a process of its own: nothing, NULL in `argument`, or another error. Nullopt: it
// crashed.
std::optional<Said> said_apart(const std::string& argument, const std::function<std::string()>& call) {
  const std::optional<std::string> text = told_apart(call);
  if (!text) return std::nullopt;
  const bool named = text->find(argument + " (") != std::string::npos && text->ends_with(" is NULL");
  return text->empty() ? Said::kNothing : named ? Said::kNamed : Said::kOther;
}

class Nulls : public FunctionTable {
 protected:
  struct Counts {
    int functions = 0, calls = 0, named = 0;
  };

  // Functions for which NULL is a valid argument, with the positions of these arguments.
  static bool is_optional(std::string_view name, size_t position) {
    static const std::set<std::pair<std::string_view, size_t>> kOptional = {{"CreateSharedAllocator", 6},
                                                                            {"RegisterCustomOpsLibrary", 3}};
    return kOptional.contains({name, position});
  }

  void look(const Entry& entry, const Handles& handles) {
    if (entry.is_refused() || entry.releases() || entry.parameters.empty()) return;
    ++counts_.functions;
    for (size_t i = 0; i < entry.parameters.size(); ++i) {
      if (entry.parameters[i]->is_pointer) look_without(i, entry, handles);
    }
  }

  Counts counts_;

 private:
  void look_without(size_t position, const Entry& entry, const Handles& handles) {
    const Parameter& parameter = *entry.parameters[position];
    Arguments arguments(entry, handles);
    const std::string argument = "argument " + std::to_string(position + 1);
    // Without a handle for its first parameter, a function reports that.
    const bool callable = position == 0 || !entry.parameters[0]->is_pointer || arguments[0] != 0;
    if (parameter.reads_elements) {
      auto* const elements = from_word<const void**>(arguments[position]);
      const void* const whole = std::exchange(elements[0], nullptr);
      expect(entry, "element 0 of " + argument, callable, arguments);
      elements[0] = whole;
    }
    arguments[position] = 0;
    const bool before_count = position + 1 < entry.parameters.size() && entry.parameters[position + 1]->is_count;
    const bool needed = parameter.is_place || (parameter.is_number_or_room && !before_count);
    expect(entry, argument, needed && callable && !is_optional(entry.name, position + 1), arguments);
  }

  void expect(const Entry& entry, const std::string& argument, bool needed, std::span<const Word> arguments) {
    ++counts_.calls;
    const auto found = said_apart(argument, [&] { return entry.said(arguments); });
    ASSERT_TRUE(found) << entry.name << " crashes without " << argument;
    counts_.named += *found == Said::kNamed;
    if (needed && entry.tells) EXPECT_EQ(*found, Said::kNamed) << entry.name << " without " << argument;
  }
};

TEST_F(Nulls, EveryPointerArgumentMayBeNull) {
  const Handles handles;
  for (const Entry& entry : kEntries) look(entry, handles);
  std::printf("%d functions, %d calls with something NULL, %d named it\n", counts_.functions, counts_.calls,
              counts_.named);
}

// Makes a session of a model with the operator "Looks", and runs it.
void run_session_with(const OrtCustomOp& op) {
  const SessionOptions options = make<SessionOptions>(ort().CreateSessionOptions);
  OrtCustomOpDomain* made = nullptr;
  check(ort().CreateCustomOpDomain("nulls", &made));
  const std::unique_ptr<OrtCustomOpDomain, void (*)(OrtCustomOpDomain*)> domain(made, ort().ReleaseCustomOpDomain);
  check(ort().CustomOpDomain_Add(made, &op));
  check(ort().AddCustomOpDomain(options.get(), made));
  const std::string text = "<ir_version: 8, opset_import: [\"\" : 17, \"nulls\" : 1]>\n";
  const Session session = open(bytes_of(text + "g (float[1] x) => (float[1] y) { y = nulls.Looks(x) }"), options.get());
  std::vector<float> x = {1};
  const Value lent = lend(x, {1}, kFloat);
  run(session.get(), {"x"}, {lent.get()}, {"y"});
}

// Functions for operators need handles that only an operator's own functions get.
class NullsOfOperators : public Nulls {
 protected:
  void SetUp() override {
    Nulls::SetUp();
    test_ = this;
    op_.version = 22;
    op_.GetName = [](const OrtCustomOp*) { return "Looks"; };
    op_.GetExecutionProviderType = [](const OrtCustomOp*) -> const char* { return nullptr; };
    op_.GetInputType = op_.GetOutputType = [](const OrtCustomOp*, size_t) { return kFloat; };
    op_.GetInputTypeCount = op_.GetOutputTypeCount = [](const OrtCustomOp*) -> size_t { return 1; };
    op_.GetInputCharacteristic =
        op_.GetOutputCharacteristic = [](const OrtCustomOp*, size_t) { return INPUT_OUTPUT_REQUIRED; };
    op_.GetInputMemoryType = [](const OrtCustomOp*, size_t) { return OrtMemTypeDefault; };
    op_.GetVariadicInputMinArity = op_.GetVariadicInputHomogeneity = op_.GetVariadicOutputMinArity =
        op_.GetVariadicOutputHomogeneity = [](const OrtCustomOp*) { return 0; };
    op_.GetStartVersion = op_.GetEndVersion = [](const OrtCustomOp*) { return 1; };
    op_.KernelDestroy = [](void*) {};
    op_.CreateKernelV2 = [](const OrtCustomOp*, const OrtApi*, const OrtKernelInfo* info, void** out) -> OrtStatus* {
      test_->look_at_all({.info = const_cast<OrtKernelInfo*>(info)});
      *out = test_;
      return nullptr;
    };
    op_.InferOutputShapeFn = [](const OrtCustomOp*, OrtShapeInferContext* inference) -> OrtStatus* {
      if (!test_->inferred_) test_->look_at_all({.inference = inference});
      test_->inferred_ = true;
      return nullptr;
    };
    op_.KernelComputeV2 = [](void*, OrtKernelContext* context) -> OrtStatus* {
      test_->look_at_all({.context = context});
      const int64_t size = 1;
      OrtValue* made = nullptr;
      return ort().KernelContext_GetOutput(context, 0, &size, 1, &made);
    };
  }

  OrtCustomOp op_ = {};

 private:
  static inline NullsOfOperators* test_ = nullptr;
  bool inferred_ = false;

  void look_at_all(const Handles::OfOperator& of_operator) {
    Handles handles;
    handles.of_operator = of_operator;
    for (const Entry& entry : kEntries) {
      if (entry.parameters.empty() || !entry.parameters[0]->belongs_to_operator) continue;
      if (Arguments(entry, handles)[0] != 0) look(entry, handles);
    }
  }
};

TEST_F(NullsOfOperators, EveryPointerArgumentMayBeNull) {
  run_session_with(op_);
  std::printf("%d functions, %d calls with something NULL, %d named it\n", counts_.functions, counts_.calls,
              counts_.named);
}

// ---- Structs that a client fills in

// A copy of a struct whose last members are pointers; the pointer `from_last` before the last one is NULL.
template <class Struct>
Struct without_pointer(Struct whole, size_t from_last) {
  std::memset(reinterpret_cast<char*>(&whole) + sizeof whole - (from_last + 1) * sizeof(void*), 0, sizeof(void*));
  return whole;
}

class NullMembers : public FunctionTable {
 protected:
  // The status of a session that is made with the operator and run.
  static std::string told_by_session_of(const OrtCustomOp& op) {
    const auto run_session = [&]() -> std::string {
      try {
        run_session_with(op);
        return "";
      } catch (const Error& error) {
        return error.what();
      }
    };
    return told_apart(run_session).value_or("a crash");
  }
};

// Entries that are not implemented read none of their arguments, such as the options of other providers.
TEST_F(NullMembers, OfEntriesThatRefuse) {
  alignas(64) static char zeros[1024] = {};
  for (const Entry& entry : kEntries) {
    if (!entry.is_refused()) continue;
    for (void* room : {static_cast<void*>(nullptr), static_cast<void*>(zeros)}) {
      std::vector<Word> arguments;
      for (const Parameter* parameter : entry.parameters) arguments.push_back(parameter->is_data ? word_of(room) : 0);
      const std::string told = told_apart([&] { return entry.said(arguments); }).value_or("a crash");
      const std::string expected = entry.tells ? "does not implement " + std::string(entry.name) : "";
      EXPECT_THAT(told, ::testing::HasSubstr(expected)) << entry.name << (room ? " with zeros" : " with NULL");
      EXPECT_NE(told, "a crash") << entry.name;
    }
  }
}

TEST_F(NullMembers, OfAllocators) {
  const std::pair<const char*, std::set<std::string>> needed[] = {
      {"Alloc",
       {"AllocatorAlloc", "ModelMetadataGetDescription", "ModelMetadataGetDomain", "ModelMetadataGetGraphDescription",
        "ModelMetadataGetGraphName", "ModelMetadataGetProducerName", "SessionEndProfiling"}},
      {"Free", {"AllocatorFree", "CreateTensorWithDataAndDeleterAsOrtValue"}},
      {"Info", {"AllocatorGetInfo", "RegisterAllocator"}},
      {"Reserve", {}},
      {"GetStats", {}},
      {"AllocOnStream", {}},
      {"Shrink", {}}};
  static_assert(sizeof(OrtAllocator) == (1 + std::size(needed)) * sizeof(void*));
  Handles handles;
  for (size_t i = 0; i < std::size(needed); ++i) {
    const auto& [member, functions] = needed[i];
    OrtAllocator whole = *allocator();
    whole.Free = [](OrtAllocator*, void*) {};  // the memory was not allocated here
    OrtAllocator lacking = without_pointer(whole, std::size(needed) - 1 - i);
    handles.own_allocator = &lacking;
    std::set<std::string> named;
    for (const Entry& entry : kEntries) {
      if (entry.is_refused() || !entry.takes_allocator() || entry.releases()) continue;
      const Arguments arguments(entry, handles);
      const std::string told = told_apart([&] { return entry.said(arguments); }).value_or("a crash");
      EXPECT_NE(told, "a crash") << entry.name << " without OrtAllocator::" << member;
      if (told.find(std::string("OrtAllocator::") + member + " is NULL") != std::string::npos)
        named.emplace(entry.name);
    }
    EXPECT_EQ(named, functions) << member;
  }
}

TEST_F(NullMembers, OfOptionsOfAnEnvironment) {
  OrtThreadingOptions* threading = nullptr;
  OrtKeyValuePairs* entries = nullptr;
  check(ort().CreateThreadingOptions(&threading));
  ort().CreateKeyValuePairs(&entries);
  const OrtEnvCreationOptions whole = {
      .version = 24,
      .logging_severity_level = ORT_LOGGING_LEVEL_WARNING,
      .log_id = "nulls",
      .custom_logging_function = [](void*, OrtLoggingLevel, const char*, const char*, const char*, const char*) {},
      .custom_logging_param = threading,
      .threading_options = threading,
      .config_entries = entries};
  constexpr size_t kPointers = 5;
  static_assert(offsetof(OrtEnvCreationOptions, log_id) + kPointers * sizeof(void*) == sizeof(OrtEnvCreationOptions));
  for (size_t i = 0; i < kPointers; ++i) {
    const OrtEnvCreationOptions lacking = without_pointer(whole, i);
    OrtEnv* made = nullptr;
    const auto create = [&]() -> std::string {
      const OrtStatus* const status = ort().CreateEnvWithOptions(&lacking, &made);
      return status ? ort().GetErrorMessage(status) : "";
    };
    EXPECT_EQ(told_apart(create), "") << "pointer " << i << " from the last";
  }
  ort().ReleaseThreadingOptions(threading);
  ort().ReleaseKeyValuePairs(entries);
}

TEST_F(NullMembers, OfOperators) {
  OrtCustomOp whole = {};
  whole.CreateKernel = [](const OrtCustomOp*, const OrtApi*, const OrtKernelInfo*) -> void* { return nullptr; };
  whole.GetName = [](const OrtCustomOp*) { return "Looks"; };
  whole.GetExecutionProviderType = [](const OrtCustomOp*) -> const char* { return nullptr; };
  whole.GetInputType = whole.GetOutputType = [](const OrtCustomOp*, size_t) { return kFloat; };
  whole.GetInputTypeCount = whole.GetOutputTypeCount = [](const OrtCustomOp*) -> size_t { return 1; };
  whole.KernelCompute = [](void*, OrtKernelContext* context) {
    const int64_t size = 1;
    OrtValue* made = nullptr;
    check(ort().KernelContext_GetOutput(context, 0, &size, 1, &made));
  };
  whole.KernelDestroy = [](void*) {};
  whole.GetInputCharacteristic =
      whole.GetOutputCharacteristic = [](const OrtCustomOp*, size_t) { return INPUT_OUTPUT_REQUIRED; };
  whole.GetInputMemoryType = [](const OrtCustomOp*, size_t) { return OrtMemTypeDefault; };
  whole.GetVariadicInputMinArity = whole.GetVariadicInputHomogeneity = whole.GetVariadicOutputMinArity =
      whole.GetVariadicOutputHomogeneity = [](const OrtCustomOp*) { return 1; };
  whole.CreateKernelV2 = [](const OrtCustomOp*, const OrtApi*, const OrtKernelInfo*, void** out) -> OrtStatus* {
    *out = nullptr;
    return nullptr;
  };
  whole.KernelComputeV2 = [](void*, OrtKernelContext* context) -> OrtStatus* {
    const int64_t size = 1;
    OrtValue* made = nullptr;
    return ort().KernelContext_GetOutput(context, 0, &size, 1, &made);
  };
  whole.InferOutputShapeFn = [](const OrtCustomOp*, OrtShapeInferContext*) -> OrtStatus* { return nullptr; };
  whole.GetStartVersion = whole.GetEndVersion = [](const OrtCustomOp*) { return 1; };

  constexpr const char* kMembers[] = {"CreateKernel",
                                      "GetName",
                                      "GetExecutionProviderType",
                                      "GetInputType",
                                      "GetInputTypeCount",
                                      "GetOutputType",
                                      "GetOutputTypeCount",
                                      "KernelCompute",
                                      "KernelDestroy",
                                      "GetInputCharacteristic",
                                      "GetOutputCharacteristic",
                                      "GetInputMemoryType",
                                      "GetVariadicInputMinArity",
                                      "GetVariadicInputHomogeneity",
                                      "GetVariadicOutputMinArity",
                                      "GetVariadicOutputHomogeneity",
                                      "CreateKernelV2",
                                      "KernelComputeV2",
                                      "InferOutputShapeFn",
                                      "GetStartVersion",
                                      "GetEndVersion",
                                      "GetMayInplace",
                                      "ReleaseMayInplace",
                                      "GetAliasMap",
                                      "ReleaseAliasMap"};
  static_assert(sizeof(OrtCustomOp) == (1 + std::size(kMembers)) * sizeof(void*));
  const std::set<std::string> always = {"GetName",
                                        "GetInputType",
                                        "GetInputTypeCount",
                                        "GetOutputType",
                                        "GetOutputTypeCount",
                                        "GetInputCharacteristic",
                                        "GetOutputCharacteristic"};
  for (const bool variadic : {false, true}) {
    if (variadic) {
      whole.GetInputCharacteristic =
          whole.GetOutputCharacteristic = [](const OrtCustomOp*, size_t) { return INPUT_OUTPUT_VARIADIC; };
    }
    for (const uint32_t version : {13u, 22u}) {
      std::set<std::string> needed = always;
      if (version == 13) needed.insert({"CreateKernel", "KernelCompute"});
      if (version == 22 && variadic) needed.insert({"GetVariadicInputMinArity", "GetVariadicOutputMinArity"});
      for (size_t i = 0; i < std::size(kMembers); ++i) {
        OrtCustomOp lacking = without_pointer(whole, std::size(kMembers) - 1 - i);
        lacking.version = version;
        const std::string told = told_by_session_of(lacking);
        const std::string member = kMembers[i];
        SCOPED_TRACE(member + ", version " + std::to_string(version) + (variadic ? ", variadic" : ""));
        if (needed.contains(member)) {
          EXPECT_THAT(told, ::testing::HasSubstr("OrtCustomOp::" + member + " is NULL"));
        } else {
          EXPECT_EQ(told, "");
        }
      }
      // Without both forms of a kernel's functions.
      for (const bool computes : {false, true}) {
        OrtCustomOp lacking = whole;
        lacking.version = version;
        if (computes) {
          lacking.KernelCompute = nullptr;
        } else {
          lacking.CreateKernel = nullptr;
        }
        lacking.CreateKernelV2 = nullptr;
        lacking.KernelComputeV2 = nullptr;
        EXPECT_THAT(told_by_session_of(lacking), ::testing::HasSubstr(computes ? "OrtCustomOp::KernelCompute is NULL"
                                                                               : "OrtCustomOp::CreateKernel is NULL"));
      }
    }
  }
}

}  // namespace

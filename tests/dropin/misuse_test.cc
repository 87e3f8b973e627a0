// Wrong uses of the functions of libonnxruntime.so: each call ends with a status that names the mistake, or without
// effect if the function returns no status.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string>
#include <string_view>

#include "tests/dropin/handles.h"

namespace {

using namespace treadle::table_tests;
using testing::HasSubstr;

// Invalid numbers, and null pointers.
template <class T>
T absurd() {
  if constexpr (std::is_enum_v<T>) return static_cast<T>(999);
  if constexpr (std::is_same_v<T, bool>) return true;
  if constexpr (std::is_integral_v<T>) return std::is_signed_v<T> ? static_cast<T>(-7) : std::numeric_limits<T>::max();
  return T{};
}

// Out of line, because the templates below are compiled for every function of the table.
[[gnu::noinline]] std::string text_of(OrtStatus* status) {
  const std::string text = status ? ort().GetErrorMessage(status) : "";
  ort().ReleaseStatus(status);
  return text;
}

// The text of the status; "": success.
template <class Result, class... Parameters>
std::string said(Result (*function)(Parameters...), std::type_identity_t<Parameters>... arguments) {
  if constexpr (std::is_same_v<Result, OrtStatus*>) {
    return text_of(function(arguments...));
  } else {
    function(arguments...);
    return "";
  }
}

template <class Result, class... Parameters>
void call(Result (*function)(Parameters...), std::type_identity_t<Parameters>... arguments) {
  if constexpr (std::is_same_v<Result, OrtStatus*>) {
    ort().ReleaseStatus(function(arguments...));
  } else {
    function(arguments...);
  }
}

// The first argument is a handle; all others are invalid.
template <class Result, class First, class... Parameters>
void call_absurdly(Result (*function)(First, Parameters...), const Handles& handles) {
  const First first = handles.first<First>();
  if (std::is_pointer_v<First> && !first) return;
  call(function, first, Parameters{}...);
  call(function, first, absurd<Parameters>()...);
}
template <class Result>
void call_absurdly(Result (*function)(), const Handles&) {
  call(function);
}

class Misuse : public FunctionTable {
 protected:
  static void expect_named(OrtStatus* status, const char* name) {
    // CreateStatus returns a status for any input, and NULL may be released.
    static const std::set<std::string_view> kFine = {"CreateStatus", "ReleaseAvailableProviders"};
    const std::string text = text_of(status);
    if (!kFine.contains(name)) EXPECT_THAT(text, HasSubstr(name));
  }
};

TEST_F(Misuse, NoArgumentsAtAll) {
  const auto look = []<class Result, class... Parameters>(const char* name, Result (*function)(Parameters...)) {
    if constexpr (std::is_same_v<Result, OrtStatus*>) {
      expect_named(function(Parameters{}...), name);
    } else {
      function(Parameters{}...);
    }
  };
#define X(how, name, ...) look(#name, ort().name);
#include "dropin/entries.inc"
#undef X
}

TEST_F(Misuse, AbsurdArguments) {
  const auto look = [](std::string_view name, auto function) {
    if (name.starts_with("Release") || name == "AllocatorFree") return;
    const Handles handles;
    call_absurdly(function, handles);
  };
#define X(how, name, ...) look(#name, ort().name);
#include "dropin/entries.inc"
#undef X
}

TEST_F(Misuse, SaysWhichArgumentIsMissing) {
  const Session session = open(model_of("g (float[N] x) => (float[N] y) { y = Neg(x) }"));
  EXPECT_EQ(said(ort().SessionGetInputCount, session.get(), nullptr),
            "SessionGetInputCount: argument 2 (size_t*) is NULL");
  EXPECT_EQ(said(ort().Run, nullptr, nullptr, nullptr, nullptr, 0, nullptr, 0, nullptr),
            "Run: argument 1 (OrtSession*) is NULL");
  OrtValue* made = nullptr;
  EXPECT_EQ(said(ort().CreateTensorAsOrtValue, allocator(), nullptr, 2, kFloat, &made),
            "CreateTensorAsOrtValue: argument 2 (const int64_t*) is NULL");
}

// A program that was built for a later version has functions that this table lacks.
TEST_F(Misuse, FunctionsOfLaterVersions) {
  for (const uint32_t version : {32U, 33U, 48U}) EXPECT_EQ(base()->GetApi(version), base()->GetApi(1)) << version;
  EXPECT_EQ(base()->GetApi(49), nullptr);
  const auto* const entries = reinterpret_cast<OrtStatus* (*const*)()>(base()->GetApi(48));
  const size_t known = sizeof(OrtApi) / sizeof(void*);
  for (const size_t entry : {known, known + 1, known + 200}) {
    OrtStatus* const status = entries[entry]();
    ASSERT_NE(status, nullptr);
    EXPECT_EQ(ort().GetErrorCode(status), ORT_NOT_IMPLEMENTED);
    EXPECT_THAT(ort().GetErrorMessage(status), HasSubstr("function " + std::to_string(entry) + " "));
    EXPECT_THAT(ort().GetErrorMessage(status), HasSubstr("version 32"));
    ort().ReleaseStatus(status);
  }
}

class MisusedSession : public Misuse {
 protected:
  // The status of a run with inputs of these names.
  std::string run_says(const std::vector<const char*>& names, const std::vector<const OrtValue*>& values,
                       const std::vector<const char*>& outputs = {"y"}) {
    std::vector<OrtValue*> results(outputs.size());
    const std::string text = said(ort().Run, session_.get(), nullptr, names.data(), values.data(), values.size(),
                                  outputs.data(), outputs.size(), results.data());
    for (OrtValue* result : results) ort().ReleaseValue(result);
    return text;
  }

  std::vector<float> numbers_ = {1, 2};
  std::vector<int64_t> integers_ = {1, 2};
  Session session_ = open(model_of("g (float[N, 2] x, float[2] b) => (float[N, 2] y) { y = Add(x, b) }"));
  Value x_ = lend(numbers_, {1, 2}, kFloat);
  Value b_ = lend(numbers_, {2}, kFloat);
  Value wrong_ = lend(integers_, {2}, static_cast<ONNXTensorElementDataType>(7));
};

TEST_F(MisusedSession, InputsOfRuns) {
  EXPECT_EQ(run_says({"x", "b"}, {x_.get(), b_.get()}), "");
  EXPECT_THAT(run_says({"x"}, {x_.get()}), HasSubstr("'b'"));
  EXPECT_THAT(run_says({"x", "c"}, {x_.get(), b_.get()}), HasSubstr("'c'"));
  EXPECT_THAT(run_says({"x", "b"}, {x_.get(), wrong_.get()}), HasSubstr("'b'"));
  EXPECT_THAT(run_says({"x", "b"}, {b_.get(), b_.get()}), HasSubstr("'x'"));
  EXPECT_NE(run_says({"x", nullptr}, {x_.get(), b_.get()}), "");
  EXPECT_NE(run_says({"x", "b"}, {x_.get(), nullptr}), "");
  EXPECT_THAT(run_says({"x", "b"}, {x_.get(), b_.get()}, {"z"}), HasSubstr("'z'"));
  EXPECT_NE(run_says({"x", "b"}, {x_.get(), b_.get()}, {nullptr}), "");
}

TEST_F(MisusedSession, IndicesBeyondTheEnd) {
  char* name = nullptr;
  OrtTypeInfo* type = nullptr;
  OrtValue* part = nullptr;
  EXPECT_THAT(said(ort().SessionGetInputName, session_.get(), 2, allocator(), &name), HasSubstr("2"));
  EXPECT_THAT(said(ort().SessionGetOutputTypeInfo, session_.get(), 1, &type), HasSubstr("1"));
  EXPECT_NE(said(ort().GetValue, x_.get(), 0, allocator(), &part), "");
  const OrtValue* members[] = {b_.get(), b_.get()};
  const Value list = make<Value>(ort().CreateValue, members, size_t{2}, ONNX_TYPE_SEQUENCE);
  for (const int index : {-1, 2, std::numeric_limits<int>::max()}) {
    EXPECT_NE(said(ort().GetValue, list.get(), index, allocator(), &part), "") << index;
  }
}

TEST_F(MisusedSession, ValuesOfOtherKinds) {
  const OrtValue* members[] = {b_.get(), b_.get()};
  const Value list = make<Value>(ort().CreateValue, members, size_t{2}, ONNX_TYPE_SEQUENCE);
  void* data = nullptr;
  size_t size = 0;
  OrtTensorTypeAndShapeInfo* info = nullptr;
  OrtValue* made = nullptr;
  EXPECT_NE(said(ort().GetTensorMutableData, list.get(), &data), "");
  EXPECT_NE(said(ort().GetTensorTypeAndShape, list.get(), &info), "");
  EXPECT_NE(said(ort().GetStringTensorDataLength, b_.get(), &size), "");
  EXPECT_THAT(run_says({"x", "b"}, {x_.get(), list.get()}), HasSubstr("'b'"));
  const OrtValue* mixed[] = {b_.get(), wrong_.get()};
  EXPECT_NE(said(ort().CreateValue, mixed, 2, ONNX_TYPE_SEQUENCE, &made), "");
  const OrtValue* absent[] = {b_.get(), nullptr};
  EXPECT_NE(said(ort().CreateValue, absent, 2, ONNX_TYPE_SEQUENCE, &made), "");
  EXPECT_NE(said(ort().CreateValue, mixed, 1, ONNX_TYPE_MAP, &made), "");
  EXPECT_NE(said(ort().CreateValue, mixed, 2, ONNX_TYPE_TENSOR, &made), "");
}

TEST_F(MisusedSession, Texts) {
  const int64_t sizes[] = {2};
  const Value texts = make<Value>(ort().CreateTensorAsOrtValue, allocator(), sizes, size_t{1}, kString);
  const char* words[] = {"a", "b", "c"};
  const char* absent[] = {"a", nullptr};
  char text[4];
  EXPECT_NE(said(ort().FillStringTensor, texts.get(), words, 3), "");
  EXPECT_NE(said(ort().FillStringTensor, texts.get(), absent, 2), "");
  EXPECT_NE(said(ort().FillStringTensor, b_.get(), words, 2), "");
  EXPECT_NE(said(ort().FillStringTensorElement, texts.get(), "a", 2), "");
  EXPECT_NE(said(ort().GetStringTensorElement, texts.get(), 4, 5, text), "");
}

TEST_F(MisusedSession, Bindings) {
  const IoBinding binding = make<IoBinding>(ort().CreateIoBinding, session_.get());
  EXPECT_THAT(said(ort().BindInput, binding.get(), "nothing", x_.get()), HasSubstr("nothing"));
  EXPECT_NE(said(ort().BindInput, binding.get(), nullptr, x_.get()), "");
  EXPECT_NE(said(ort().RunWithBinding, session_.get(), nullptr, binding.get()), "");
}

TEST_F(Misuse, OptionsOutOfRange) {
  const SessionOptions options = make<SessionOptions>(ort().CreateSessionOptions);
  const RunOptions run = make<RunOptions>(ort().CreateRunOptions);
  EXPECT_EQ(said(ort().SetIntraOpNumThreads, options.get(), -1), "") << "as many as processors";
  EXPECT_EQ(said(ort().SetInterOpNumThreads, options.get(), -1), "");
  EXPECT_THAT(said(ort().SetSessionLogSeverityLevel, options.get(), 5), HasSubstr("5"));
  EXPECT_THAT(said(ort().RunOptionsSetRunLogSeverityLevel, run.get(), 5), HasSubstr("5"));
  EXPECT_THAT(said(ort().SetSessionExecutionMode, options.get(), static_cast<ExecutionMode>(2)), HasSubstr("2"));
  EXPECT_NE(said(ort().AddFreeDimensionOverrideByName, options.get(), nullptr, 1), "");
  EXPECT_THAT(said(ort().AddFreeDimensionOverrideByName, options.get(), "N", -1), HasSubstr("-1"));
  EXPECT_NE(said(ort().SetOptimizedModelFilePath, options.get(), nullptr), "");
  EXPECT_NE(said(ort().EnableProfiling, options.get(), nullptr), "");
  EXPECT_NE(said(ort().SetSessionLogId, options.get(), nullptr), "");
}

class Configuration : public Misuse {
 protected:
  Configuration() : options_(make<SessionOptions>(ort().CreateSessionOptions)) {
    const auto log = [](void* told, OrtLoggingLevel, const char*, const char*, const char*, const char* message) {
      static_cast<std::vector<std::string>*>(told)->emplace_back(message);
    };
    check(ort().SetUserLoggingFunction(options_.get(), log, &told_));
  }
  Session opened(const std::string& header = "") {
    const std::string text = "<ir_version: 8, opset_import: [\"\" : 17]" + header + ">\n";
    return open(bytes_of(text + "g (float[N] x) => (float[N] y) { y = Neg(x) }"), options_.get());
  }

  SessionOptions options_;
  std::vector<std::string> told_;
};

TEST_F(Configuration, EntriesWithoutEffectAreTold) {
  check(ort().AddSessionConfigEntry(options_.get(), "session.intra_op.allow_spinning", "1"));
  check(ort().AddSessionConfigEntry(options_.get(), "optimization.enable_gelu_approximation", "0"));
  check(ort().AddSessionConfigEntry(options_.get(), "treadle.jit", "off"));
  opened();
  EXPECT_THAT(told_, testing::IsEmpty());
  check(ort().AddSessionConfigEntry(options_.get(), "session.set_denormal_as_zero", "1"));
  opened();
  EXPECT_THAT(told_, testing::IsEmpty());
  check(ort().AddSessionConfigEntry(options_.get(), "session.debug_layout_transformation", "1"));
  opened();
  EXPECT_THAT(told_, testing::ElementsAre(HasSubstr("session.debug_layout_transformation")));
}

TEST_F(Configuration, EntriesOfRunsAreToldOnce) {
  const Session session = opened();
  const RunOptions options = make<RunOptions>(ort().CreateRunOptions);
  check(ort().AddRunConfigEntry(options.get(), "gpu_graph_id", "1"));
  std::vector<float> x = {1};
  const Value lent = lend(x, {1}, kFloat);
  for (int i = 0; i < 2; ++i) run(session.get(), {"x"}, {lent.get()}, {"y"}, options.get());
  EXPECT_THAT(told_, testing::ElementsAre(HasSubstr("gpu_graph_id")));
}

TEST_F(Configuration, OptionsInTheModelAreTold) {
  const std::string header = R"(, metadata_props: ["ort_config" : "{}"])";
  opened(header);
  EXPECT_THAT(told_, testing::IsEmpty());
  setenv("ORT_LOAD_CONFIG_FROM_MODEL", "1", 1);
  opened(header);
  unsetenv("ORT_LOAD_CONFIG_FROM_MODEL");
  EXPECT_THAT(told_, testing::ElementsAre(HasSubstr("ORT_LOAD_CONFIG_FROM_MODEL")));
}

}  // namespace

// The C interface as another language would use it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "support/model_bytes.h"
#include "treadle/treadle.h"

namespace {

using namespace treadle::onnx_bytes;  // NOLINT(google-build-using-namespace): builders of small models

// z = x + y, both float [N]
std::string add_model() {
  return model_bytes(graph({.nodes = {node("Add", {"x", "y"}, {"z"}, {}, "sum")},
                            .inputs = {value("x"), value("y")},
                            .outputs = {value("z")}}));
}

// A loop whose condition never becomes false.
std::string endless_model() {
  const auto body = graph({.nodes = {node("Identity", {"c"}, {"c_out"}), node("Identity", {"s"}, {"s_out"})},
                           .inputs = {value("i", 7, {}), value("c", 9, {}), value("s", 1, {})},
                           .outputs = {value("c_out", 9, {}), value("s_out", 1, {})}});
  return model_bytes(graph({.nodes = {node("Loop", {"", "go", "s0"}, {"s"}, {graph_attribute("body", body)})},
                            .inputs = {value("go", 9, {}), value("s0", 1, {})},
                            .outputs = {value("s", 1, {})}}));
}

treadle_code take_code(treadle_status* status) {
  const treadle_code code = treadle_status_code(status);
  treadle_status_free(status);
  return code;
}

#define ASSERT_STATUS_OK(expression)                          \
  do {                                                        \
    treadle_status* reported_ = (expression);                 \
    const std::string text_ = treadle_status_text(reported_); \
    treadle_status_free(reported_);                           \
    ASSERT_TRUE(text_.empty()) << text_;                      \
  } while (0)

treadle_value* floats(std::vector<float> numbers) {
  const auto count = static_cast<int64_t>(numbers.size());
  treadle_value* value = nullptr;
  EXPECT_EQ(treadle_tensor_create(1, &count, 1, &value), nullptr);
  std::memcpy(treadle_tensor_mutable_data(value), numbers.data(), numbers.size() * sizeof(float));
  return value;
}

class CApi : public ::testing::Test {
 protected:
  void open(const std::string& bytes) {
    ASSERT_STATUS_OK(treadle_session_from_bytes(bytes.data(), bytes.size(), nullptr, nullptr, &session_));
  }
  ~CApi() override { treadle_session_free(session_); }

  treadle_session* session_ = nullptr;
};

TEST_F(CApi, RunsIntoNewAndGivenHandles) {
  open(add_model());
  const std::array<const char*, 2> names = {"x", "y"};
  const std::array<const treadle_value*, 2> values = {floats({1, 2}), floats({10, 20})};
  treadle_value* output = nullptr;
  ASSERT_STATUS_OK(treadle_session_run(session_, nullptr, names.data(), values.data(), 2, nullptr, 0, &output));
  EXPECT_EQ(static_cast<const float*>(treadle_tensor_data(output))[1], 22);

  // The caller's memory, written in place.
  std::array<float, 2> memory = {};
  int released = 0;
  const int64_t size = 2;
  treadle_value* mine = nullptr;
  ASSERT_STATUS_OK(treadle_tensor_borrow(
      1, &size, 1, memory.data(), sizeof memory, true, [](void* count) { ++*static_cast<int*>(count); }, &released,
      &mine));
  const char* z = "z";
  ASSERT_STATUS_OK(treadle_session_run(session_, nullptr, names.data(), values.data(), 2, &z, 1, &mine));
  EXPECT_EQ(memory[0], 11);
  EXPECT_EQ(treadle_tensor_data(mine), memory.data());
  EXPECT_EQ(released, 0);
  treadle_value_free(mine);
  EXPECT_EQ(released, 1);
  treadle_value_free(output);
  for (const treadle_value* value : values) treadle_value_free(const_cast<treadle_value*>(value));
}

// A handle that is an input may take a result of any size; two results have two handles.
TEST_F(CApi, AResultMayGoWhereAnInputCameFrom) {
  open(add_model());
  const std::array<const char*, 2> names = {"x", "y"};
  for (const std::vector<float>& second : {std::vector<float>{20, 20}, std::vector<float>{20}}) {
    treadle_value *x = floats({1, 2}), *y = floats(second);
    const std::array<const treadle_value*, 2> values = {x, y};
    treadle_value* output = y;
    ASSERT_STATUS_OK(treadle_session_run(session_, nullptr, names.data(), values.data(), 2, nullptr, 0, &output));
    ASSERT_EQ(output, y);
    ASSERT_EQ(treadle_tensor_count(y), 2);
    EXPECT_EQ(static_cast<const float*>(treadle_tensor_data(y))[1], 22);
    treadle_value_free(x);
    treadle_value_free(y);
  }
  treadle_value *x = floats({1}), *y = floats({2}), *z = floats({0});
  const std::array<const treadle_value*, 2> values = {x, y};
  const std::array<const char*, 2> twice = {"z", "z"};
  std::array<treadle_value*, 2> outputs = {z, z};
  EXPECT_EQ(take_code(treadle_session_run(session_, nullptr, names.data(), values.data(), 2, twice.data(), 2,
                                          outputs.data())),
            TREADLE_INVALID_ARGUMENT);
  // A handle that is an input too keeps its value.
  const std::array<const char*, 3> thrice = {"z", "z", "z"};
  std::array<treadle_value*, 3> three = {x, z, z};
  EXPECT_EQ(
      take_code(treadle_session_run(session_, nullptr, names.data(), values.data(), 2, thrice.data(), 3, three.data())),
      TREADLE_INVALID_ARGUMENT);
  EXPECT_EQ(*static_cast<const float*>(treadle_tensor_data(x)), 1);
  outputs[1] = nullptr;
  ASSERT_STATUS_OK(
      treadle_session_run(session_, nullptr, names.data(), values.data(), 2, twice.data(), 2, outputs.data()));
  for (treadle_value* output : outputs) EXPECT_EQ(*static_cast<const float*>(treadle_tensor_data(output)), 3);
  for (treadle_value* value : {x, y, outputs[0], outputs[1]}) treadle_value_free(value);
}

// The same if runs of changing sizes are planned for any size.
TEST_F(CApi, ResultsStayInTheMemoryThatTheyAreGiven) {
  open(add_model());
  const std::array<const char*, 2> names = {"x", "y"};
  for (int64_t size = 1; size < 5; ++size) {
    treadle_value* x = floats(std::vector<float>(static_cast<size_t>(size), 1));
    treadle_value* y = floats(std::vector<float>(static_cast<size_t>(size), 2));
    treadle_value* z = floats(std::vector<float>(static_cast<size_t>(size), 0));
    const std::array<const treadle_value*, 2> values = {x, y};
    for (treadle_value* place : {z, z, x, y}) {
      const void* const memory = treadle_tensor_data(place);
      ASSERT_STATUS_OK(treadle_session_run(session_, nullptr, names.data(), values.data(), 2, nullptr, 0, &place));
      EXPECT_EQ(treadle_tensor_data(place), memory) << size;
    }
    EXPECT_EQ(*static_cast<const float*>(treadle_tensor_data(z)), 3);
    EXPECT_EQ(*static_cast<const float*>(treadle_tensor_data(y)), 5);
    for (treadle_value* value : {x, y, z}) treadle_value_free(value);
  }
}

TEST_F(CApi, FailuresLeaveOutputsAlone) {
  open(add_model());
  const std::array<const char*, 2> names = {"x", "nothing"};
  const std::array<const treadle_value*, 2> values = {floats({1}), floats({2})};
  treadle_value* output = nullptr;
  treadle_status* status = treadle_session_run(session_, nullptr, names.data(), values.data(), 2, nullptr, 0, &output);
  EXPECT_NE(std::string(treadle_status_message(status)).find("nothing"), std::string::npos);
  EXPECT_EQ(take_code(status), TREADLE_INVALID_ARGUMENT);
  EXPECT_EQ(output, nullptr);
  output = floats({5});
  const char* wrong = "no output";
  EXPECT_EQ(take_code(treadle_session_run(session_, nullptr, names.data(), values.data(), 1, &wrong, 1, &output)),
            TREADLE_INVALID_ARGUMENT);
  EXPECT_EQ(take_code(treadle_session_run(session_, nullptr, names.data(), values.data(), 1, nullptr, 0, &output)),
            TREADLE_INVALID_ARGUMENT);
  ASSERT_EQ(treadle_value_kind(output), TREADLE_TENSOR);
  EXPECT_EQ(*static_cast<const float*>(treadle_tensor_data(output)), 5);
  treadle_value_free(output);
  for (const treadle_value* value : values) treadle_value_free(const_cast<treadle_value*>(value));
}

TEST_F(CApi, TellsAboutTheModel) {
  open(add_model());
  ASSERT_EQ(treadle_session_count(session_, TREADLE_INPUT), 2u);
  EXPECT_STREQ(treadle_session_name(session_, TREADLE_INPUT, 1), "y");
  EXPECT_EQ(treadle_session_name(session_, TREADLE_INPUT, 2), nullptr);
  const treadle_type* type = treadle_session_type(session_, TREADLE_OUTPUT, 0);
  EXPECT_EQ(treadle_type_kind(type), TREADLE_TENSOR);
  EXPECT_EQ(treadle_type_element(type), 1);
  EXPECT_EQ(treadle_type_rank(type), 1);
  EXPECT_EQ(treadle_type_dim(type, 0), -1);
  EXPECT_EQ(treadle_type_dim(type, 7), -1);
  char* symbol = treadle_type_symbol(type, 0);
  EXPECT_STREQ(symbol, "N");
  treadle_free(symbol);
  char* text = treadle_type_text(type);
  EXPECT_STREQ(text, "tensor(float)[N]");
  treadle_free(text);
  char* producer = treadle_session_metadata(session_, "producer_name");
  EXPECT_STREQ(producer, "hand");
  treadle_free(producer);
  EXPECT_EQ(treadle_session_metadata(session_, "no such field"), nullptr);
  EXPECT_EQ(treadle_session_opset_version(session_, 0), 17);
}

TEST_F(CApi, RefusesBytesThatAreNoModel) {
  EXPECT_EQ(take_code(treadle_session_from_bytes("garbage", 7, nullptr, nullptr, &session_)), TREADLE_INVALID_FILE);
  EXPECT_EQ(take_code(treadle_session_open("/no/such/file.onnx", nullptr, &session_)), TREADLE_NO_SUCH_FILE);
  EXPECT_EQ(take_code(treadle_session_open(nullptr, nullptr, &session_)), TREADLE_INVALID_ARGUMENT);
  EXPECT_EQ(session_, nullptr);
}

TEST_F(CApi, LimitsAndCancelling) {
  open(endless_model());
  const std::array<const char*, 2> names = {"go", "s0"};
  treadle_value* go = nullptr;
  ASSERT_STATUS_OK(treadle_tensor_create(9, nullptr, 0, &go));
  *static_cast<bool*>(treadle_tensor_mutable_data(go)) = true;
  treadle_value* start = nullptr;
  ASSERT_STATUS_OK(treadle_tensor_create(1, nullptr, 0, &start));
  *static_cast<float*>(treadle_tensor_mutable_data(start)) = 3;
  const std::array<const treadle_value*, 2> values = {go, start};
  treadle_run_options* options = nullptr;
  ASSERT_STATUS_OK(treadle_run_options_create(&options));
  treadle_value* output = nullptr;
  const auto run = [&] {
    return take_code(treadle_session_run(session_, options, names.data(), values.data(), 2, nullptr, 0, &output));
  };

  treadle_run_options_limit_iterations(options, 100);
  EXPECT_EQ(run(), TREADLE_LIMIT);
  treadle_run_options_limit_iterations(options, 0);
  treadle_run_options_limit_time(options, 0.02);
  EXPECT_EQ(run(), TREADLE_LIMIT);
  treadle_run_options_limit_time(options, 0);
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    treadle_run_options_cancel(options, true);
  });
  EXPECT_EQ(run(), TREADLE_CANCELLED);
  other.join();
  treadle_run_options_cancel(options, false);
  int asked = 0;
  treadle_run_options_set_interrupt(options, [](void* count) { return ++*static_cast<int*>(count) == 2; }, &asked);
  EXPECT_EQ(run(), TREADLE_CANCELLED);
  EXPECT_EQ(asked, 2);
  treadle_run_options_set_interrupt(options, nullptr, nullptr);
  int64_t done[2] = {};  // of the last two calls
  treadle_run_options_set_progress(
      options,
      [](void* context, const treadle_progress* progress) {
        auto* const last = static_cast<int64_t*>(context);
        EXPECT_EQ(progress->total, -1) << "the loop ends by a condition";
        last[0] = last[1];
        last[1] = progress->done;
        return last[0] > 0;
      },
      done);
  EXPECT_EQ(run(), TREADLE_CANCELLED);
  EXPECT_LT(done[0], done[1]);
  treadle_run_options_set_progress(options, nullptr, nullptr);
  int begun = 0;
  treadle_run_options_set_long_work(options, [](void* count) { ++*static_cast<int*>(count); }, &begun);

  *static_cast<bool*>(treadle_tensor_mutable_data(go)) = false;
  EXPECT_EQ(run(), TREADLE_OK);
  EXPECT_EQ(begun, 1) << "the loop's duration is unknown before it runs";
  EXPECT_EQ(*static_cast<const float*>(treadle_tensor_data(output)), 3);
  treadle_value_free(output);
  treadle_run_options_free(options);
  treadle_value_free(go);
  treadle_value_free(start);
}

TEST(CApiValues, ChecksSizesAndTypes) {
  treadle_value* value = nullptr;
  const int64_t negative = -1;
  EXPECT_EQ(take_code(treadle_tensor_create(1, &negative, 1, &value)), TREADLE_INVALID_ARGUMENT);
  const int64_t huge[2] = {std::numeric_limits<int64_t>::max(), 4};
  EXPECT_EQ(take_code(treadle_tensor_create(1, huge, 2, &value)), TREADLE_LIMIT);
  EXPECT_EQ(take_code(treadle_tensor_create(99, nullptr, 0, &value)), TREADLE_INVALID_ARGUMENT);
  float number = 0;
  const int64_t two = 2;
  EXPECT_EQ(take_code(treadle_tensor_borrow(1, &two, 1, &number, sizeof number, true, nullptr, nullptr, &value)),
            TREADLE_INVALID_ARGUMENT);
  char bytes[16] = {};
  EXPECT_EQ(take_code(treadle_tensor_borrow(1, &two, 1, bytes + (reinterpret_cast<uintptr_t>(bytes) % 2 == 0), 8, true,
                                            nullptr, nullptr, &value)),
            TREADLE_INVALID_ARGUMENT);
  EXPECT_EQ(value, nullptr);
}

TEST(CApiValues, ReadOnlyAndSharedMemory) {
  const int64_t one = 1;
  float number = 1;
  treadle_value* value = nullptr;
  ASSERT_STATUS_OK(treadle_tensor_borrow(1, &one, 1, &number, sizeof number, false, nullptr, nullptr, &value));
  EXPECT_EQ(treadle_tensor_mutable_data(value), nullptr);
  EXPECT_FALSE(treadle_tensor_is_exclusive(value));
  treadle_value* clone = nullptr;
  ASSERT_STATUS_OK(treadle_value_clone(value, &clone));
  EXPECT_TRUE(treadle_tensor_is_exclusive(clone));
  treadle_value* copy = nullptr;
  ASSERT_STATUS_OK(treadle_value_copy(clone, &copy));
  EXPECT_FALSE(treadle_tensor_is_exclusive(clone));
  EXPECT_EQ(treadle_tensor_data(copy), treadle_tensor_data(clone));
  for (treadle_value* v : {value, clone, copy}) treadle_value_free(v);
}

TEST(CApiValues, SequencesOptionalsMapsAndTexts) {
  const treadle_text texts[2] = {{"a", 1}, {"b\0c", 3}};
  const int64_t two = 2;
  treadle_value* keys = nullptr;
  ASSERT_STATUS_OK(treadle_tensor_from_texts(&two, 1, texts, 2, &keys));
  EXPECT_EQ(treadle_tensor_text(keys, 1).size, 3u);
  EXPECT_EQ(treadle_tensor_text(keys, 2).data, nullptr);
  treadle_value* numbers = floats({1, 2});
  treadle_value* map = nullptr;
  ASSERT_STATUS_OK(treadle_map_create(keys, numbers, &map));
  treadle_value* values = nullptr;
  ASSERT_STATUS_OK(treadle_map_values(map, &values));
  EXPECT_EQ(treadle_tensor_count(values), 2);

  const treadle_value* elements[2] = {numbers, keys};
  treadle_value* sequence = nullptr;
  EXPECT_EQ(take_code(treadle_sequence_create(nullptr, elements, 2, &sequence)), TREADLE_INVALID_ARGUMENT);
  EXPECT_EQ(take_code(treadle_sequence_create(nullptr, nullptr, 0, &sequence)), TREADLE_INVALID_ARGUMENT);
  ASSERT_STATUS_OK(treadle_sequence_create(nullptr, elements, 1, &sequence));
  treadle_value* element = nullptr;
  EXPECT_EQ(take_code(treadle_sequence_at(sequence, 1, &element)), TREADLE_INVALID_ARGUMENT);
  ASSERT_STATUS_OK(treadle_sequence_at(sequence, 0, &element));
  EXPECT_EQ(treadle_tensor_data(element), treadle_tensor_data(numbers));

  treadle_value* optional = nullptr;
  ASSERT_STATUS_OK(treadle_optional_create(nullptr, numbers, &optional));
  EXPECT_TRUE(treadle_optional_has_value(optional));
  for (treadle_value* v : {keys, numbers, map, values, sequence, element, optional}) treadle_value_free(v);
}

TEST(CApiValues, MapsOverTheSameKeysAreATable) {
  const treadle_text texts[] = {{"a", 1}, {"b", 1}};
  const int64_t two = 2;
  treadle_value *keys = nullptr, *other_keys = nullptr, *names = nullptr, *table = nullptr;
  ASSERT_STATUS_OK(treadle_tensor_from_texts(&two, 1, texts, 2, &keys));
  ASSERT_STATUS_OK(treadle_tensor_from_texts(&two, 1, texts, 2, &other_keys));
  std::vector<treadle_value*> maps(3), rows = {floats({1, 2}), floats({3, 4}), floats({5, 6})};
  ASSERT_STATUS_OK(treadle_map_create(keys, rows[0], &maps[0]));
  ASSERT_STATUS_OK(treadle_map_create(keys, rows[1], &maps[1]));
  ASSERT_STATUS_OK(treadle_map_create(other_keys, rows[2], &maps[2]));
  treadle_value *alike = nullptr, *unlike = nullptr;
  ASSERT_STATUS_OK(treadle_sequence_create(nullptr, maps.data(), 2, &alike));
  ASSERT_STATUS_OK(treadle_sequence_create(nullptr, maps.data(), 3, &unlike));
  ASSERT_STATUS_OK(treadle_sequence_table(alike, &names, &table));
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(treadle_tensor_text(names, 1).data[0], 'b');
  ASSERT_EQ(treadle_tensor_rank(table), 2u);
  EXPECT_EQ(treadle_tensor_dims(table)[0], 2);
  const auto* numbers = static_cast<const float*>(treadle_tensor_data(table));
  EXPECT_EQ(std::vector<float>(numbers, numbers + 4), (std::vector<float>{1, 2, 3, 4}));
  treadle_value *no_names = nullptr, *no_table = nullptr;
  ASSERT_STATUS_OK(treadle_sequence_table(unlike, &no_names, &no_table));
  EXPECT_EQ(no_names, nullptr);
  EXPECT_EQ(no_table, nullptr);
  EXPECT_EQ(take_code(treadle_sequence_table(maps[0], &no_names, &no_table)), TREADLE_INVALID_ARGUMENT);
  for (treadle_value* v : {keys, other_keys, names, table, alike, unlike}) treadle_value_free(v);
  for (treadle_value* v : maps) treadle_value_free(v);
  for (treadle_value* v : rows) treadle_value_free(v);
}

TEST(CApiValues, ThereAndBackThroughProtobuf) {
  treadle_value* value = floats({1, -2.5});
  char* bytes = nullptr;
  size_t size = 0;
  ASSERT_STATUS_OK(treadle_value_to_pb(value, "name", &bytes, &size));
  treadle_value* back = nullptr;
  ASSERT_STATUS_OK(treadle_value_from_pb(bytes, size, nullptr, &back));
  std::array<double, 2> numbers = {};
  ASSERT_STATUS_OK(treadle_tensor_to_doubles(back, numbers.data()));
  EXPECT_EQ(numbers[1], -2.5);
  treadle_free(bytes);
  treadle_value_free(value);
  treadle_value_free(back);
}

TEST(CApiOptions, RefusesUnknownOptions) {
  treadle_options* options = nullptr;
  ASSERT_STATUS_OK(treadle_options_create(&options));
  EXPECT_EQ(take_code(treadle_options_set(options, "no such key", "1")), TREADLE_INVALID_ARGUMENT);
  EXPECT_EQ(take_code(treadle_options_set(options, "tier", "none")), TREADLE_INVALID_ARGUMENT);
  EXPECT_EQ(take_code(treadle_options_set(options, "threads", "two")), TREADLE_INVALID_ARGUMENT);
  ASSERT_STATUS_OK(treadle_options_set(options, "tier", "reference"));
  treadle_session* session = nullptr;
  const std::string model = add_model();
  ASSERT_STATUS_OK(treadle_session_from_bytes(model.data(), model.size(), nullptr, options, &session));
  treadle_session_free(session);
  treadle_options_free(options);
}

TEST(CApiModel, ChecksAndInfers) {
  const std::string model = add_model();
  treadle_report* report = nullptr;
  ASSERT_STATUS_OK(treadle_model_check(nullptr, model.data(), model.size(), 0, &report));
  EXPECT_EQ(treadle_report_error_count(report) + treadle_report_warning_count(report) + treadle_report_size(report),
            0u);
  treadle_report_free(report);
  const std::string wrong = model_bytes(graph({.nodes = {node("Add", {"x", "y"}, {"z"}, {}, "sum")},
                                               .inputs = {value("x", 1, {"2"}), value("y", 1, {"3"})},
                                               .outputs = {value("z", 1, {"2"})}}));
  ASSERT_STATUS_OK(treadle_model_check(nullptr, wrong.data(), wrong.size(), TREADLE_CHECK_FULL, &report));
  ASSERT_EQ(treadle_report_size(report), 1u);
  EXPECT_EQ(treadle_report_error_count(report), 1u);
  EXPECT_TRUE(treadle_report_is_error(report, 0));
  EXPECT_STREQ(treadle_report_code(report, 0), "inference");
  EXPECT_STREQ(treadle_report_path(report, 0), "/sum");
  EXPECT_STRNE(treadle_report_message(report, 0), "");
  EXPECT_EQ(treadle_report_code(report, 1), nullptr);
  char* text = treadle_report_text(report, 0);
  EXPECT_NE(std::string(text).find("/sum (Add-14)"), std::string::npos) << text;
  treadle_free(text);
  treadle_report_free(report);
  EXPECT_EQ(take_code(treadle_model_check("/no/such/file.onnx", nullptr, 0, 0, &report)), TREADLE_NO_SUCH_FILE);
  char* typed = nullptr;
  size_t size = 0;
  ASSERT_STATUS_OK(treadle_model_infer(nullptr, model.data(), model.size(), 0, &typed, &size));
  treadle_session* session = nullptr;
  ASSERT_STATUS_OK(treadle_session_from_bytes(typed, size, nullptr, nullptr, &session));
  EXPECT_EQ(treadle_type_rank(treadle_session_type(session, TREADLE_OUTPUT, 0)), 1);
  treadle_session_free(session);
  treadle_free(typed);
}

TEST(CApiOperators, AreListed) {
  bool found = false;
  for (size_t i = 0; i < treadle_operator_count(); ++i) {
    EXPECT_STRNE(treadle_operator_domain(i), "treadle");
    if (std::string(treadle_operator_name(i)) == "Loop") {
      found = true;
      EXPECT_EQ(treadle_operator_version(i, 0), 1);
    }
  }
  EXPECT_TRUE(found);
}

// y = x + w, with as many weights as two sessions share.
constexpr int64_t kManyWeights = 5000;
std::string weights_model() {
  const std::string text =
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[5000] x) => (float[5000] y) "
      "<float[5000] w = [\"location\": \"weights.bin\"]> { y = Add(x, w) }";
  char* bytes = nullptr;
  size_t size = 0;
  EXPECT_EQ(take_code(treadle_text_parse(TREADLE_MODEL, text.data(), text.size(), &bytes, &size)), TREADLE_OK);
  std::string model(bytes, size);
  treadle_free(bytes);
  return model;
}

treadle_value* lent(std::vector<float>& elements) {
  const int64_t size = std::ssize(elements);
  treadle_value* value = nullptr;
  EXPECT_EQ(take_code(treadle_tensor_borrow(1, &size, 1, elements.data(), elements.size() * sizeof(float), true,
                                            nullptr, nullptr, &value)),
            TREADLE_OK);
  return value;
}

// The first element of y for an x of zeros.
float first_result(const treadle_session* session) {
  std::vector<float> zeros(kManyWeights);
  treadle_value *x = lent(zeros), *y = nullptr;
  const char *const in = "x", *const out = "y";
  EXPECT_EQ(take_code(treadle_session_run(session, nullptr, &in, &x, 1, &out, 1, &y)), TREADLE_OK);
  const float first = static_cast<const float*>(treadle_tensor_data(y))[0];
  treadle_value_free(x);
  treadle_value_free(y);
  return first;
}

TEST(CApiWeights, GivenInitializersAreCopied) {
  const std::string model = weights_model();
  std::vector<float> weights(kManyWeights, 3);
  treadle_options* options = nullptr;
  ASSERT_EQ(take_code(treadle_options_create(&options)), TREADLE_OK);
  treadle_value* const given = lent(weights);
  ASSERT_EQ(take_code(treadle_options_set_initializer(options, "w", given)), TREADLE_OK);
  ASSERT_EQ(take_code(treadle_options_set_initializer(options, "nobody", given)), TREADLE_OK);
  treadle_session *first = nullptr, *second = nullptr;
  ASSERT_EQ(take_code(treadle_session_from_bytes(model.data(), model.size(), nullptr, options, &first)), TREADLE_OK);
  EXPECT_THAT(treadle_session_remark(first, 0), testing::HasSubstr("nobody"));
  std::fill(weights.begin(), weights.end(), 4.0F);
  ASSERT_EQ(take_code(treadle_session_from_bytes(model.data(), model.size(), nullptr, options, &second)), TREADLE_OK);
  treadle_options_free(options);
  treadle_value_free(given);
  std::fill(weights.begin(), weights.end(), 5.0F);
  EXPECT_EQ(first_result(first), 3);
  EXPECT_EQ(first_result(second), 4);
  treadle_session_free(first);
  treadle_session_free(second);
}

TEST(CApiWeights, GivenInitializersHaveTheTypeAndSizesOfTheModels) {
  const std::string model = weights_model();
  std::vector<float> few(3);
  treadle_options* options = nullptr;
  ASSERT_EQ(take_code(treadle_options_create(&options)), TREADLE_OK);
  treadle_value* const given = lent(few);
  ASSERT_EQ(take_code(treadle_options_set_initializer(options, "w", given)), TREADLE_OK);
  treadle_session* session = nullptr;
  EXPECT_EQ(take_code(treadle_session_from_bytes(model.data(), model.size(), nullptr, options, &session)),
            TREADLE_INVALID_ARGUMENT);
  treadle_value_free(given);
  treadle_options_free(options);
}

TEST(CApiWeights, ExternalDataIsReadFromMemory) {
  const std::string model = weights_model();
  std::vector<float> weights(kManyWeights, 7);
  treadle_options* options = nullptr;
  ASSERT_EQ(take_code(treadle_options_create(&options)), TREADLE_OK);
  ASSERT_EQ(take_code(treadle_options_set_external_file(options, "weights.bin", weights.data(),
                                                        weights.size() * sizeof(float))),
            TREADLE_OK);
  treadle_session* session = nullptr;
  ASSERT_EQ(take_code(treadle_session_from_bytes(model.data(), model.size(), nullptr, options, &session)), TREADLE_OK);
  treadle_options_free(options);
  weights.assign(kManyWeights, 0);
  EXPECT_EQ(first_result(session), 7);
  treadle_session_free(session);
}

}  // namespace

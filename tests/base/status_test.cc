#include "base/status.h"

#include <gtest/gtest.h>

namespace treadle {
namespace {

TEST(Status, SuccessIsOnePointerAndHasNoText) {
  EXPECT_EQ(sizeof(Status), sizeof(void*));
  Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), Code::kOk);
  EXPECT_EQ(status.message(), "");
}

TEST(Status, CarriesCodeMessageAndPlace) {
  Status status = error(Code::kRuntime, "index {} is outside 0..{}", 7, 3);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.code(), Code::kRuntime);
  EXPECT_EQ(status.message(), "index 7 is outside 0..3");
  Status located = std::move(status).in("Gather_2").in("model.onnx");
  EXPECT_NE(located.place().find("Gather_2"), std::string::npos);
  EXPECT_LT(located.place().find("model.onnx"), located.place().find("Gather_2"));
  EXPECT_NE(located.to_string().find("index 7"), std::string::npos);
}

TEST(Status, CloneIsIndependent) {
  Status status = error(Code::kLimit, "too many");
  Status copy = status.clone();
  EXPECT_EQ(copy.code(), Code::kLimit);
  EXPECT_EQ(copy.message(), status.message());
  EXPECT_TRUE(Status().clone().ok());
}

}  // namespace
}  // namespace treadle

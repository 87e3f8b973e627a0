#include "run/native_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "support/temp_dir.h"

namespace treadle::run {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

// A file in the format of shared objects: this program.
std::string whole() {
  std::ostringstream bytes;
  bytes << std::ifstream("/proc/self/exe", std::ios::binary).rdbuf();
  return bytes.str();
}

TEST(NativeLibrary, AWholeFileIsWhole) {
  EXPECT_EQ(why_not_whole("/proc/self/exe"), "");
}

TEST(NativeLibrary, AFileThatIsCutShortAnywhere) {
  TempDir dir;
  const std::string bytes = whole();
  const std::string path = dir.write("cut.so", bytes);
  for (size_t size = bytes.size() - 1; size > 0; size = size * 9 / 10) {
    std::filesystem::resize_file(path, size);
    EXPECT_THAT(why_not_whole(path), HasSubstr(size < 64 ? "is no shared object" : "is cut short")) << size;
  }
}

TEST(NativeLibrary, AFileThatWasNotWrittenToItsEnd) {
  TempDir dir;
  const std::string bytes = whole();
  const std::string path = dir.write("unfinished.so", bytes);
  for (size_t size = bytes.size() / 2; size >= 64; size /= 3) {
    std::filesystem::resize_file(path, size);
    std::filesystem::resize_file(path, bytes.size());
    EXPECT_THAT(why_not_whole(path), HasSubstr("is cut short")) << size;
  }
}

TEST(NativeLibrary, RefusesAFileThatIsNoSharedObject) {
  TempDir dir;
  EXPECT_THAT(why_not_whole(dir.write("a.so", "")), EndsWith("a.so is no shared object"));
  EXPECT_THAT(why_not_whole(dir.write("b.so", std::string(5000, 'x'))), EndsWith("b.so is no shared object"));
  EXPECT_THAT(why_not_whole(dir.path().string()), EndsWith(" is not a file"));
  EXPECT_THAT(why_not_whole("/nowhere.so"), HasSubstr("/nowhere.so cannot be opened"));
}

}  // namespace
}  // namespace treadle::run

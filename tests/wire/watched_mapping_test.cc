#include "wire/watched_mapping.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>
#include <vector>

#include "base/thread_pool.h"
#include "support/temp_dir.h"
#include "wire/mapped_file.h"

namespace treadle::wire {
namespace {

using ::testing::ExitedWithCode;
using ::testing::HasSubstr;
using ::testing::KilledBySignal;

constexpr size_t kBytes = 1'000'000;

// The sum of one byte of each page, so that each page is read.
int sum(std::string_view bytes) {
  int sum = 0;
  for (size_t i = 0; i < bytes.size(); i += 4096) sum += *static_cast<const volatile char*>(&bytes[i]);
  return sum;
}

std::shared_ptr<MappedFile> open(const std::string& path) {
  auto file = MappedFile::open(path);
  EXPECT_TRUE(file.ok()) << file.error().to_string();
  EXPECT_TRUE((*file)->is_mapped());
  return *file;
}

class WatchedMappingTest : public testing::Test {
 protected:
  std::string path() const { return (dir_.path() / "w.bin").string(); }
  void write(char each) { dir_.write("w.bin", std::string(kBytes, each)); }
  // An unwatched mapping of a file that has become empty.
  const char* unwatched_hole() {
    dir_.write("other.bin", std::string(kBytes, 1));
    const int file = ::open((dir_.path() / "other.bin").c_str(), O_RDONLY | O_CLOEXEC);
    void* mapping = mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE, file, 0);
    std::filesystem::resize_file(dir_.path() / "other.bin", 0);
    close(file);
    return static_cast<const char*>(mapping);
  }

  TempDir dir_;
};

// The pool's helper threads block signals that are the caller's business; a missing page is not one of these.
TEST_F(WatchedMappingTest, HelperThreadsMayReadMissingPages) {
  write(1);
  const auto file = open(path());
  std::filesystem::resize_file(path(), 0);
  const ThreadScope scope(2);
  const auto caller = std::this_thread::get_id();
  std::atomic<int> read = -1;
  parallel_for(2, 1e9, [&](int64_t, int64_t, int) {
    if (std::this_thread::get_id() != caller) {
      read = sum(file->bytes());
    } else {
      for (int i = 0; i < 5'000 && read < 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  EXPECT_EQ(read, 0);
  EXPECT_FALSE(file->unchanged().ok());
}

TEST_F(WatchedMappingTest, MissingPagesReadAsZeros) {
  write(1);
  const auto file = open(path());
  EXPECT_EQ(sum(file->bytes()), 245);
  EXPECT_TRUE(file->unchanged().ok());
  std::filesystem::resize_file(path(), 100 * 4096);
  EXPECT_EQ(sum(file->bytes()), 100);
  std::filesystem::resize_file(path(), 0);
  EXPECT_EQ(sum(file->bytes()), 0);
  const Status status = file->unchanged();
  EXPECT_EQ(status.code(), Code::kInvalidFile);
  EXPECT_THAT(status.message(), HasSubstr("has become shorter than the 1000000 bytes"));
  write(1);
  EXPECT_FALSE(open(path()) == file);
  EXPECT_EQ(sum(open(path())->bytes()), 245);
}

TEST_F(WatchedMappingTest, ManyMappingsAndThreads) {
  std::vector<std::shared_ptr<MappedFile>> files;
  write(1);
  for (int i = 0; i < 200; ++i) files.push_back(open(path()));
  std::filesystem::resize_file(path(), 4096);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (const auto& file : files) EXPECT_EQ(sum(file->bytes()), 1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& file : files) EXPECT_FALSE(file->unchanged().ok());
}

TEST_F(WatchedMappingTest, AChildOfAForkIsWatchedToo) {
  write(1);
  const auto file = open(path());
  const pid_t child = fork();
  if (child == 0) {
    std::filesystem::resize_file(path(), 0);
    _exit(sum(file->bytes()) == 0 && !file->unchanged().ok() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(WatchedMappingTest, ASignalFromElsewhereEndsTheProcessAsEver) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  write(1);
  const auto file = open(path());
  EXPECT_EXIT(sum({unwatched_hole(), kBytes}), KilledBySignal(SIGBUS), "");
  EXPECT_EXIT(raise(SIGBUS), KilledBySignal(SIGBUS), "");
}

TEST_F(WatchedMappingTest, ASignalFromElsewhereGoesToTheHandlerThatWasThere) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        (void)std::signal(SIGBUS, [](int) { _exit(7); });
        write(1);
        const auto file = open(path());
        std::filesystem::resize_file(path(), 0);
        if (sum(file->bytes()) != 0) _exit(1);
        sum({unwatched_hole(), kBytes});
      },
      ExitedWithCode(7), "");
}

TEST_F(WatchedMappingTest, TheSignalIsLeftAloneWhereThatIsWanted) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("TREADLE_SIGBUS", "off", 1);
        write(1);
        const auto file = open(path());
        std::filesystem::resize_file(path(), 0);
        sum(file->bytes());
      },
      KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace treadle::wire

#include "run/native_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utime.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "support/temp_dir.h"

namespace treadle::run {
namespace {

using plan::NativeBlob;
using plan::NativeRef;

Digest key_of(std::string_view name) {
  return Digester().add(name).finish();
}

NativeBlob blob_of(size_t bytes, int fill = 1) {
  NativeBlob blob;
  blob.bytes.assign(bytes, static_cast<std::byte>(fill));
  blob.entry = 16;
  blob.imports = {{"memcpy", 8}, {"floorf", 24}};
  blob.refs = {{NativeRef::Kind::kRow, 3, ElementType::kFloat}, {NativeRef::Kind::kRun, 7, {}}};
  return blob;
}

void expect_same(const std::optional<NativeBlob>& found, const NativeBlob& expected) {
  ASSERT_TRUE(found);
  EXPECT_EQ(found->bytes, expected.bytes);
  EXPECT_EQ(found->entry, expected.entry);
  EXPECT_EQ(found->refs, expected.refs);
  ASSERT_EQ(found->imports.size(), expected.imports.size());
  for (size_t i = 0; i < expected.imports.size(); ++i) {
    EXPECT_EQ(found->imports[i].name, expected.imports[i].name);
    EXPECT_EQ(found->imports[i].offset, expected.imports[i].offset);
  }
}

class NativeCacheTest : public testing::Test {
 protected:
  std::string folder() const { return dir_.path().string() + "/caches/treadle"; }
  NativeCache cache(size_t max_bytes = 0) const { return NativeCache({folder(), max_bytes}); }
  std::string file(std::string_view name) const { return folder() + "/" + to_hex(key_of(name)) + ".native"; }

  static size_t size_of(const std::string& path) { return std::filesystem::file_size(path); }
  size_t file_count() const {
    size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder())) ++count;
    return count;
  }
  std::string why_not_loaded(std::string_view name) const {
    std::string why;
    EXPECT_FALSE(cache().load(key_of(name), why));
    return why;
  }
  void store(std::string_view name, const NativeBlob& blob) const {
    std::string why;
    EXPECT_TRUE(cache().store(key_of(name), blob, why)) << why;
  }

  TempDir dir_;
};

TEST_F(NativeCacheTest, ReturnsTheStoredCode) {
  const NativeBlob blob = blob_of(5000);
  EXPECT_EQ(why_not_loaded("a"), "");
  store("a", blob);
  std::string why;
  expect_same(cache().load(key_of("a"), why), blob);
  EXPECT_EQ(why, "");
  EXPECT_EQ(why_not_loaded("another"), "");
}

TEST_F(NativeCacheTest, FolderAndFilesAreTheUsersAlone) {
  store("a", blob_of(100));
  struct stat info{};
  ASSERT_EQ(stat(folder().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  ASSERT_EQ(stat(file("a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(NativeCacheTest, AFolderThatIsOpenToOthersIsNotUsed) {
  store("a", blob_of(100));
  ASSERT_EQ(chmod(folder().c_str(), 0755), 0);
  EXPECT_NE(why_not_loaded("a").find("is not the user's alone (mode 755"), std::string::npos);
  std::string why;
  EXPECT_FALSE(cache().store(key_of("b"), blob_of(100), why));
  EXPECT_NE(why.find("mode 755"), std::string::npos);
}

TEST_F(NativeCacheTest, AFolderBehindALinkIsNotUsed) {
  ASSERT_EQ(mkdir((dir_.path().string() + "/real").c_str(), 0700), 0);
  ASSERT_EQ(symlink("real", (dir_.path().string() + "/link").c_str()), 0);
  std::string why;
  EXPECT_FALSE(NativeCache({dir_.path().string() + "/link", 0}).store(key_of("a"), blob_of(100), why));
  EXPECT_NE(why.find("cannot be opened"), std::string::npos);
}

TEST_F(NativeCacheTest, EveryDamagedByteIsFound) {
  store("a", blob_of(300));
  const size_t size = size_of(file("a"));
  for (size_t at = 0; at < size; ++at) {
    std::fstream stream(file("a"), std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(static_cast<std::streamoff>(at));
    const int before = stream.get();
    stream.seekp(static_cast<std::streamoff>(at));
    stream.put(static_cast<char>(before ^ 0x20));
    stream.flush();
    EXPECT_NE(why_not_loaded("a"), "") << at;
    stream.seekp(static_cast<std::streamoff>(at));
    stream.put(static_cast<char>(before));
  }
  EXPECT_EQ(size_of(file("a")), size);
  std::string why;
  EXPECT_TRUE(cache().load(key_of("a"), why)) << why;
}

TEST_F(NativeCacheTest, EveryCutIsFound) {
  store("a", blob_of(300));
  const size_t size = size_of(file("a"));
  for (size_t left = size; left-- > 0;) {
    ASSERT_EQ(truncate(file("a").c_str(), static_cast<off_t>(left)), 0);
    EXPECT_NE(why_not_loaded("a"), "") << left;
  }
}

TEST_F(NativeCacheTest, AnotherLoopsFileIsNotTaken) {
  store("a", blob_of(300));
  std::filesystem::copy_file(file("a"), file("b"));
  EXPECT_NE(why_not_loaded("b").find("holds another loop"), std::string::npos);
}

TEST_F(NativeCacheTest, RefusesFifosLinksAndFilesThatOthersMayWrite) {
  store("a", blob_of(100));
  ASSERT_EQ(mkfifo(file("fifo").c_str(), 0600), 0);
  EXPECT_NE(why_not_loaded("fifo"), "");
  ASSERT_EQ(symlink(file("a").c_str(), file("link").c_str()), 0);
  EXPECT_NE(why_not_loaded("link"), "");
  ASSERT_EQ(chmod(file("a").c_str(), 0666), 0);
  EXPECT_NE(why_not_loaded("a").find("can be written by others"), std::string::npos);
}

TEST_F(NativeCacheTest, WritesOverADamagedFile) {
  store("a", blob_of(300));
  std::ofstream(file("a")) << "nonsense";
  ASSERT_EQ(chmod(file("a").c_str(), 0600), 0);
  EXPECT_NE(why_not_loaded("a"), "");
  store("a", blob_of(300));
  std::string why;
  EXPECT_TRUE(cache().load(key_of("a"), why)) << why;
}

TEST_F(NativeCacheTest, AFolderThatCannotBeMadeIsSaid) {
  std::ofstream(dir_.path().string() + "/file") << "x";
  const NativeCache cache({dir_.path().string() + "/file/below", 0});
  std::string why;
  EXPECT_FALSE(cache.store(key_of("a"), blob_of(100), why));
  EXPECT_NE(why.find("Not a directory"), std::string::npos) << why;
}

TEST_F(NativeCacheTest, AFullDiskLeavesNothingBehind) {
  store("a", blob_of(100));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    std::string why;
    const bool stored = cache().store(key_of("b"), blob_of(5000), why);
    _exit(stored || why.find("cannot be written") == std::string::npos ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(file_count(), 1u);
}

TEST_F(NativeCacheTest, TheOldestGoWhenTheLimitIsReached) {
  const std::vector<std::string> names{"a", "b", "c", "d"};
  for (size_t i = 0; i < names.size(); ++i) {
    store(names[i], blob_of(1000));
    const utimbuf when{static_cast<time_t>(1000 + i), static_cast<time_t>(1000 + i)};
    ASSERT_EQ(utime(file(names[i]).c_str(), &when), 0);
  }
  std::string why;
  EXPECT_TRUE(cache().load(key_of("a"), why));  // so it is the newest
  const size_t each = size_of(file("a"));
  ASSERT_TRUE(cache(4 * each).store(key_of("e"), blob_of(1000), why)) << why;
  EXPECT_FALSE(std::filesystem::exists(file("b")));
  EXPECT_FALSE(std::filesystem::exists(file("c")));
  for (const char* kept : {"a", "d", "e"}) EXPECT_TRUE(std::filesystem::exists(file(kept))) << kept;
}

TEST_F(NativeCacheTest, CodeBeyondTheLimitIsNotKept) {
  std::string why;
  EXPECT_FALSE(cache(1000).store(key_of("a"), blob_of(5000), why));
  EXPECT_NE(why.find("more than the limit of 1000"), std::string::npos) << why;
}

TEST_F(NativeCacheTest, UnfinishedFilesOfTheDeadAreRemoved) {
  store("a", blob_of(100));
  for (const char* name : {"/.new-1", "/.new-2", "/keep.txt"}) std::ofstream(folder() + name) << "x";
  const utimbuf long_ago{1000, 1000};
  for (const char* name : {"/.new-1", "/keep.txt"}) ASSERT_EQ(utime((folder() + name).c_str(), &long_ago), 0);
  store("b", blob_of(100));
  EXPECT_FALSE(std::filesystem::exists(folder() + "/.new-1"));
  EXPECT_TRUE(std::filesystem::exists(folder() + "/.new-2"));
  EXPECT_TRUE(std::filesystem::exists(folder() + "/keep.txt"));
}

TEST_F(NativeCacheTest, Off) {
  const NativeCache cache({"off", 0});
  std::string why;
  EXPECT_FALSE(cache.is_on());
  EXPECT_FALSE(cache.store(key_of("a"), blob_of(100), why));
  EXPECT_FALSE(cache.load(key_of("a"), why));
  EXPECT_EQ(why, "");
}

// Writers of different blobs under the same key, beside readers: each reader sees one of them whole.
TEST_F(NativeCacheTest, ProcessesAndThreadsAtOnce) {
  std::vector<pid_t> children;
  for (int child = 0; child < 4; ++child) {
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      std::string why;
      bool good = true;
      for (int i = 0; i < 100; ++i) {
        good &= cache(20000).store(key_of("shared"), blob_of(1000 + 100 * static_cast<size_t>(child), child), why);
        good &= cache(20000).store(key_of(std::to_string(child * 1000 + i)), blob_of(2000), why);
      }
      _exit(good ? 0 : 1);
    }
    children.push_back(pid);
  }
  size_t found = 0;
  auto read = [&](size_t& count) {
    for (int i = 0; i < 500; ++i) {
      std::string why;
      const auto blob = cache().load(key_of("shared"), why);
      EXPECT_EQ(why, "");
      if (!blob) continue;
      ++count;
      const auto child = static_cast<size_t>(blob->bytes[0]);
      ASSERT_EQ(blob->bytes.size(), 1000 + 100 * child);
      for (const std::byte byte : blob->bytes) ASSERT_EQ(static_cast<size_t>(byte), child);
    }
  };
  size_t other = 0;
  std::thread beside([&] { read(other); });
  read(found);
  beside.join();
  for (const pid_t pid : children) {
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }
}

}  // namespace
}  // namespace treadle::run

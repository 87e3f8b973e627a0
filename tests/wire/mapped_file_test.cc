#include "wire/mapped_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <thread>

#include "support/temp_dir.h"

namespace treadle::wire {
namespace {

using ::testing::HasSubstr;

TEST(MappedFile, MapsAFile) {
  TempDir dir;
  auto file = MappedFile::open(dir.write("a.bin", "hello"));
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  EXPECT_EQ((*file)->bytes(), "hello");
  (*file)->expect_data_reads();
  EXPECT_EQ((*file)->bytes(), "hello");
  auto empty = MappedFile::open(dir.write("empty.bin", ""));
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ((*empty)->bytes(), "");
}

TEST(MappedFile, CopiesPartsOfAnySize) {
  TempDir dir;
  std::string bytes(100'000, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7);
  for (const auto& file : {MappedFile::open(dir.write("a.bin", bytes)).value(), MappedFile::own(bytes)}) {
    for (const size_t size : {size_t{0}, size_t{1}, size_t{5000}, size_t{90'000}}) {
      std::string out(size, '?');
      ASSERT_TRUE(file->copy(file->bytes().substr(77, size), out.data()).ok());
      EXPECT_EQ(out, bytes.substr(77, size));
    }
  }
}

TEST(MappedFile, NoticesThatAFileHasBecomeShorter) {
  TempDir dir;
  const std::string path = dir.write("a.bin", std::string(100'000, 'a'));
  auto file = MappedFile::open(path);
  ASSERT_TRUE(file.ok());
  std::filesystem::resize_file(path, 50'000);
  std::string out(90'000, '?');
  const Status status = (*file)->copy((*file)->bytes().substr(0, out.size()), out.data());
  EXPECT_EQ(status.code(), Code::kInvalidFile);
  EXPECT_THAT(status.message(), HasSubstr("has become shorter"));
}

TEST(MappedFile, NoticesThatAFileHasBeenWrittenTo) {
  TempDir dir;
  const std::string path = dir.write("a.bin", std::string(100'000, 'a'));
  const timespec before[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), before, 0), 0);
  const auto file = MappedFile::open(path).value();
  EXPECT_TRUE(file->unchanged().ok());
  dir.write("b.bin", std::string(100'000, 'b'));
  std::filesystem::rename(dir.path() / "b.bin", path);  // a new file; the open one does not change
  EXPECT_TRUE(file->unchanged().ok());
  const auto other = MappedFile::open(path).value();
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), before, 0), 0);
  EXPECT_THAT(other->unchanged().message(), HasSubstr("has been written to since it was opened"));
  std::filesystem::resize_file(path, 100'001);
  EXPECT_THAT(other->unchanged().message(), HasSubstr("had 100000 bytes when it was opened, and has 100001 now"));
  EXPECT_TRUE(file->unchanged().ok());
}

TEST(MappedFile, ReadsSmallFilesAtOnce) {
  TempDir dir;
  const std::string path = dir.write("a.bin", std::string(10'000, 'a'));
  const auto file = MappedFile::open(path).value();
  std::filesystem::resize_file(path, 0);
  EXPECT_FALSE(file->is_mapped());
  EXPECT_EQ(file->bytes(), std::string(10'000, 'a'));
  EXPECT_TRUE(file->unchanged().ok());
}

TEST(MappedFile, IsFoundByAnAddress) {
  TempDir dir;
  const auto file = MappedFile::open(dir.write("a.bin", std::string(100'000, 'a'))).value();
  const auto small = MappedFile::open(dir.write("b.bin", "b")).value();
  const std::string_view bytes = file->bytes();
  EXPECT_EQ(MappedFile::around(bytes.data()), file);
  EXPECT_EQ(MappedFile::around(bytes.data() + bytes.size() - 1), file);
  EXPECT_NE(MappedFile::around(bytes.data() + bytes.size()), file);
  EXPECT_EQ(MappedFile::around(small->bytes().data()), nullptr);
}

TEST(MappedFile, SaysWhyItCannotOpen) {
  TempDir dir;
  auto missing = MappedFile::open((dir.path() / "nope").string());
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code(), Code::kNoSuchFile);
  EXPECT_THAT(missing.error().message(), HasSubstr("nope"));
  auto folder = MappedFile::open(dir.path().string());
  ASSERT_FALSE(folder.ok());
  EXPECT_EQ(folder.error().code(), Code::kInvalidFile);
  EXPECT_FALSE(MappedFile::open(std::string("a\0b", 3)).ok());
}

TEST(MappedFile, HoldsOrBorrowsBytes) {
  const std::string bytes = "abc";
  EXPECT_EQ(MappedFile::borrow(bytes)->bytes().data(), bytes.data());
  EXPECT_EQ(MappedFile::own("xyz")->bytes(), "xyz");
  EXPECT_TRUE(MappedFile::own("xyz")->data_folders().empty());
}

TEST(MappedFile, ReadsAPipeToItsEnd) {
  TempDir dir;
  const std::string path = (dir.path() / "pipe").string();
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const std::string bytes(300'000, 'p');         // more than a pipe holds
  const int end = ::open(path.c_str(), O_RDWR);  // for reading and writing, so that open() does not block
  std::thread writer([&] {
    EXPECT_EQ(write(end, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    close(end);
  });
  const auto pipe = MappedFile::open(path);
  writer.join();
  ASSERT_TRUE(pipe.ok()) << pipe.error().to_string();
  EXPECT_EQ((*pipe)->bytes(), bytes);
}

TEST(MappedFile, SpecialFilesAreRefusedByName) {
  TempDir dir;
  const std::string pipe = (dir.path() / "pipe").string(), link = (dir.path() / "link").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/zero", link);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string path = (dir.path() / "s").string();
  ASSERT_LT(path.size(), sizeof(address.sun_path));
  path.copy(address.sun_path, path.size());
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  for (const auto& [special, what] :
       {std::pair(pipe, "is a pipe that nothing is written to"), std::pair(link, "is a device, expected a file"),
        std::pair(std::string("/dev/null"), "is a device, expected a file"),
        std::pair(path, "is a socket, expected a file"),
        std::pair(dir.path().string(), "is a folder, expected a file")}) {
    const auto file = MappedFile::open(special);
    ASSERT_FALSE(file.ok()) << special;
    EXPECT_EQ(file.error().code(), Code::kInvalidFile);
    EXPECT_THAT(file.error().message(), HasSubstr(what));
  }
  close(socket);
}

class ExternalData : public ::testing::Test {
 protected:
  ExternalData() {
    model_ = dir_.write("models/m.onnx", "m");
    dir_.write("models/w.bin", "weights");
    dir_.write("models/sub/v.bin", "more");
    dir_.write("secret.bin", "secret");
  }
  Result<std::shared_ptr<MappedFile>> open(std::string_view relative, const std::string& model) {
    auto file = MappedFile::open(model);
    EXPECT_TRUE(file.ok());
    return MappedFile::open_inside(relative, (*file)->data_folders());
  }
  Result<std::shared_ptr<MappedFile>> open(std::string_view relative) { return open(relative, model_); }

  TempDir dir_;
  std::string model_;
};

TEST_F(ExternalData, LiesBesideTheModel) {
  for (const auto& [name, bytes] :
       {std::pair("w.bin", "weights"), std::pair("sub/v.bin", "more"), std::pair("./w.bin", "weights")}) {
    auto file = open(name);
    ASSERT_TRUE(file.ok()) << file.error().to_string();
    EXPECT_EQ((*file)->bytes(), bytes);
  }
}

TEST_F(ExternalData, OutsideIsRefused) {
  for (const std::string& name : {std::string("../secret.bin"), std::string("sub/../../secret.bin"),
                                  (dir_.path() / "secret.bin").string(), std::string(".."), std::string("")}) {
    auto file = open(name);
    ASSERT_FALSE(file.ok()) << name;
    EXPECT_EQ(file.error().code(), Code::kInvalidFile);
  }
  auto missing = open("none.bin");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code(), Code::kNoSuchFile);
}

TEST_F(ExternalData, LinksThatLeadOutsideAreRefused) {
  std::filesystem::create_symlink(dir_.path() / "secret.bin", dir_.path() / "models/link.bin");
  std::filesystem::create_directory_symlink(dir_.path(), dir_.path() / "models/up");
  for (const char* name : {"link.bin", "up/secret.bin"}) {
    auto file = open(name);
    ASSERT_FALSE(file.ok()) << name;
    EXPECT_THAT(file.error().message(), HasSubstr("leads out of"));
  }
  std::filesystem::create_symlink("w.bin", dir_.path() / "models/inside.bin");
  EXPECT_TRUE(open("inside.bin").ok());
}

TEST_F(ExternalData, FollowsAModelThatIsALinkIntoAStore) {
  dir_.write("store/aa", "m");
  dir_.write("store/bb", "weights");
  std::filesystem::create_directories(dir_.path() / "snapshot");
  std::filesystem::create_symlink("../store/aa", dir_.path() / "snapshot/m.onnx");
  std::filesystem::create_symlink("../store/bb", dir_.path() / "snapshot/w.bin");
  auto file = open("w.bin", (dir_.path() / "snapshot/m.onnx").string());
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  EXPECT_EQ((*file)->bytes(), "weights");
}

TEST_F(ExternalData, PipesAndFoldersAreRefused) {
  ASSERT_EQ(::mkfifo((dir_.path() / "models/pipe").c_str(), 0600), 0);
  EXPECT_FALSE(open("pipe").ok());
  EXPECT_FALSE(open("sub").ok());
}

TEST_F(ExternalData, NeedsAFolder) {
  auto file = MappedFile::open_inside("w.bin", MappedFile::own("m")->data_folders());
  ASSERT_FALSE(file.ok());
  EXPECT_THAT(file.error().message(), HasSubstr("given as bytes"));
}

constexpr auto kTicks = std::chrono::milliseconds(100);  // granularity of files' time stamps

TEST(MappedFile, OpeningAFileAgainReturnsTheSameMapping) {
  TempDir dir;
  const std::string path = dir.write("a.bin", std::string(100'000, 'a'));
  std::this_thread::sleep_for(kTicks);
  const auto file = MappedFile::open(path).value();
  EXPECT_EQ(MappedFile::open(path).value(), file);
  const void* where = file->bytes().data();
  EXPECT_EQ(MappedFile::around(where), file);
}

TEST(MappedFile, AFileThatHasChangedSinceIsMappedAnew) {
  TempDir dir;
  const std::string path = dir.write("a.bin", std::string(100'000, 'a'));
  const timespec before[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), before, 0), 0);
  std::this_thread::sleep_for(kTicks);
  const auto file = MappedFile::open(path).value();
  dir.write("a.bin", std::string(100'000, 'b'));
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), before, 0), 0);  // the old time does not hide the change
  const auto again = MappedFile::open(path).value();
  EXPECT_NE(again, file);
  EXPECT_EQ(again->bytes()[99'999], 'b');
}

TEST(MappedFile, AFileThatHasJustBeenWrittenIsNotShared) {
  TempDir dir;
  const std::string path = dir.write("a.bin", std::string(100'000, 'a'));
  const auto file = MappedFile::open(path).value();
  EXPECT_NE(MappedFile::open(path).value(), file);
}

TEST(MappedFile, EqualBytesAreSharedWhileTheyAreHeld) {
  const std::string bytes(5000, 'a');
  auto one = MappedFile::share(bytes);
  EXPECT_EQ(MappedFile::share(std::string(5000, 'a')), one);
  EXPECT_NE(MappedFile::share(std::string(5000, 'b')), one);
  const std::weak_ptr<MappedFile> last = one;
  one.reset();
  EXPECT_TRUE(last.expired());
}

}  // namespace
}  // namespace treadle::wire

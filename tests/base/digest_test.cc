#include "base/digest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace treadle {
namespace {

std::string digest_of(std::string_view bytes) {
  return to_hex(Digester().add(std::as_bytes(std::span(bytes))).finish());
}

// Expected values from hashlib.blake2b(..., digest_size=32).
TEST(Digest, OfKnownTexts) {
  EXPECT_EQ(digest_of(""), "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
  EXPECT_EQ(digest_of("abc"), "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
}

TEST(Digest, OfEveryLengthAroundABlock) {
  std::vector<std::byte> bytes(300);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i % 251);
  EXPECT_EQ(to_hex(Digester().add(std::span(bytes).first(128)).finish()),
            "c3582f71ebb2be66fa5dd750f80baae97554f3b015663c8be377cfcb2488c1d1");
  EXPECT_EQ(to_hex(Digester().add(std::span(bytes).first(129)).finish()),
            "f7f3c46ba2564ff4c4c162da1f5b605f9f1c4aa6a20652a9f9a337c1a2f5b9c9");
  EXPECT_EQ(to_hex(Digester().add(bytes).finish()), "940563f11807c8ba3192299e05cf544b82463742c8a5e80c2a5d81751cd8b0ca");
}

TEST(Digest, IsOfTheBytesNotOfTheirPieces) {
  std::vector<std::byte> bytes(1000, std::byte{7});
  const std::string whole = to_hex(Digester().add(bytes).finish());
  for (const size_t piece : {size_t{1}, size_t{64}, size_t{128}, size_t{333}}) {
    Digester digester;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      digester.add(std::span(bytes).subspan(at, std::min(piece, bytes.size() - at)));
    }
    EXPECT_EQ(to_hex(digester.finish()), whole) << piece;
  }
}

TEST(Digest, NumbersDoNotRunIntoEachOther) {
  EXPECT_NE(Digester().number(0x80).finish(), Digester().number(0).number(1).finish());
  EXPECT_NE(Digester().number(300).number(2).finish(), Digester().number(2).number(300).finish());
  EXPECT_NE(Digester().number(-1).finish(), Digester().number(uint32_t{0xFFFF'FFFF}).finish());
  EXPECT_EQ(Digester().number(int8_t{-1}).finish(), Digester().number(int64_t{-1}).finish());
}

TEST(Digest, TextsDoNotRunIntoEachOther) {
  EXPECT_NE(Digester().add(std::string_view("ab")).add(std::string_view("c")).finish(),
            Digester().add(std::string_view("a")).add(std::string_view("bc")).finish());
}

}  // namespace
}  // namespace treadle

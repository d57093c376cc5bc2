#include "units/utf8.h"

#include <gtest/gtest.h>

namespace placet {
namespace {

TEST(Utf8Test, ASequenceHasTheLengthThatItsFirstByteSays) {
  EXPECT_EQ(utf8_length("a"), 1);
  EXPECT_EQ(utf8_length("é"), 2);
  EXPECT_EQ(utf8_length("€"), 3);
  EXPECT_EQ(utf8_length("😀"), 4);
  EXPECT_EQ(utf8_length(""), 0);
  EXPECT_EQ(utf8_length("\xC0\xAF"), 0) << "an overlong '/'";
  EXPECT_EQ(utf8_length("\xED\xA0\x80"), 0) << "a surrogate";
  EXPECT_EQ(utf8_length("\xF4\x90\x80\x80"), 0) << "beyond U+10FFFF";
}

TEST(Utf8Test, ThePrefixEndsAtTheFirstByteThatBelongsToNoSequence) {
  EXPECT_EQ(utf8_prefix(""), 0);
  const std::string plain(37, 'a');
  EXPECT_EQ(utf8_prefix(plain + "€"), 40);
  for (std::size_t i = 0; i <= plain.size(); ++i) {
    const std::string text = plain.substr(0, i) + "\xFF" + plain;
    EXPECT_EQ(utf8_prefix(text), i);
  }
  EXPECT_EQ(utf8_prefix("12345678é\xC3"), 10);
}

TEST(Utf8Test, OtherBytesAreReplacedOneByOne) { EXPECT_EQ(valid_utf8("a\xFF\xC3z"), "a��z"); }

}  // namespace
}  // namespace placet

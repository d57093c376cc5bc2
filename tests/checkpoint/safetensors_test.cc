#include "checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <array>

#include "checkpoint/scratch_folder.h"
#include "units/error.h"

namespace placet::checkpoint {
namespace {

using testing::ScratchFolder;

/// What is said of a header; empty: it is read.
std::string refusal_of_header(const std::string& text) {
  try {
    header_from(text, "file");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

bool says(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

// 2 x 3 numbers of 4 bytes take 24, from byte 0; one of 2 bytes the two after them.
TEST(SafetensorsTest, ReadsAHeaderInAnyOrder) {
  const SafetensorsHeader header = header_from(
      R"({"b":{"shape":[],"dtype":"BF16","data_offsets":[24,26]},"__metadata__":{"by":"hand"},)"
      R"("a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}   )",
      "file");
  ASSERT_EQ(header.tensors.size(), 2U);
  EXPECT_EQ(header.tensors[0],
            (StoredTensor{.name = "a", .dtype = "F32", .shape = {2, 3}, .begin = 0, .bytes = 24}));
  EXPECT_EQ(header.tensors[1],
            (StoredTensor{.name = "b", .dtype = "BF16", .shape = {}, .begin = 24, .bytes = 2}));
  EXPECT_EQ(header.bytes(), 26);
  EXPECT_EQ(header.metadata.at("by"), "hand");
}

TEST(SafetensorsTest, RefusesWhatIsNoHeader) {
  EXPECT_PRED2(says, refusal_of_header("[]"), "begins with '{'");
  EXPECT_PRED2(says, refusal_of_header(R"({"a":)"), "not JSON");
  EXPECT_PRED2(says, refusal_of_header(R"({"a":1})"), "does not belong there");
  EXPECT_PRED2(says, refusal_of_header(R"({"a":{"dtype":"F32","shape":[1]}})"), "lacks");
  EXPECT_PRED2(says, refusal_of_header(R"({"a":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}})"),
               "'F33' is no format");
  EXPECT_PRED2(says,
               refusal_of_header(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})"),
               "does not belong there");
  EXPECT_PRED2(says,
               refusal_of_header(R"({"a":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})"),
               "does not belong there");
  EXPECT_PRED2(says, refusal_of_header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})"),
               "takes 4 bytes, where its shape and format ask for 8");
  EXPECT_PRED2(says, refusal_of_header(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[8,4]}})"),
               "ends before it begins");
  EXPECT_PRED2(says, refusal_of_header(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})"),
               "begins at byte 4");
  EXPECT_PRED2(says,
               refusal_of_header(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                                 R"("a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})"),
               "given twice");
  EXPECT_PRED2(
      says,
      refusal_of_header(R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})"),
      "twice");
  EXPECT_NE(refusal_of_header(R"({"a":{"dtype":"F32","shape":[9223372036854775807,9],)"
                              R"("data_offsets":[0,4]}})"),
            "");
}

TEST(SafetensorsTest, WritesWhatItReads) {
  const ScratchFolder folder;
  const SafetensorsHeader header{
      .tensors = {{.name = "a \"b\"", .dtype = "U8", .shape = {3}, .bytes = 3}}};
  const std::array bytes = {std::byte{1}, std::byte{2}, std::byte{3}};
  SafetensorsWriter writer(folder / "x", header, "-o");
  writer.write(bytes);
  writer.close();
  const SafetensorsFile file(folder / "x");
  ASSERT_EQ(file.header().tensors, header.tensors);
  std::array<std::byte, 2> last{};
  file.read(file.header().tensors[0], 1, last);
  EXPECT_EQ(last, (std::array{std::byte{2}, std::byte{3}}));
  EXPECT_THROW(SafetensorsWriter(folder / "x", header, "-o"), InputError) << "it is there already";
}

TEST(SafetensorsTest, RefusesFilesOfAnotherLength) {
  const ScratchFolder folder;
  const std::string header = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  const std::string length(1, static_cast<char>(header.size()));
  const std::string start = length + std::string(7, '\0') + header;
  folder.write("good", start + "1234");
  EXPECT_EQ(SafetensorsFile(folder / "good").header().tensors.size(), 1U);
  folder.write("short", start + "123");
  folder.write("long", start + "12345");
  folder.write("cut", start.substr(0, 20));
  folder.write("none", "");
  folder.write("huge", std::string(8, '\x7f') + header);
  for (const char* name : {"short", "long", "cut", "none", "huge", "missing"}) {
    EXPECT_THROW(SafetensorsFile{folder / name}, InputError) << name;
  }
}

}  // namespace
}  // namespace placet::checkpoint

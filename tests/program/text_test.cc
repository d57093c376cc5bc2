// Programs as text: what is printed reads back as the same program.
#include "program/text.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "program/wellformed.h"

namespace placet {
namespace {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string sample(const std::string& name) {
  return read_file(PLACET_SOURCE_DIR "/tests/fuzz_corpus/program_text/" + name);
}

TEST(ProgramTextTest, APrintedProgramReadsBackAsTheSame) {
  for (const char* name : {"linear.txt", "loose.txt", "everything.txt"}) {
    const Program program = program_from(sample(name), name);
    const std::string text = to_text(program);
    EXPECT_EQ(program_from(text, "print"), program) << text;
    EXPECT_EQ(to_text(program_from(text, "print")), text);
  }
}

TEST(ProgramTextTest, AProgramInItsUsualSpellingPrintsAsItIsWritten) {
  const std::string text = sample("everything.txt");
  EXPECT_EQ(to_text(program_from(text, "text")), text);
}

TEST(ProgramTextTest, OtherSpellingsAreTheSameProgram) {
  EXPECT_EQ(program_from(sample("loose.txt"), "text"),
            program_from(sample("everything.txt"), "text"));
}

}  // namespace
}  // namespace placet

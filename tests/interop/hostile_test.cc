// Sources that are made to cost much: each is refused, or read in little time.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "interop/import.h"
#include "units/error.h"

namespace placet {
namespace {

std::string message_of(const std::string& text, SourceForm form) {
  try {
    import_sources(find_catalog(),
                   {.sources = {parse_source(text, form, "f")}, .dialect = {}, .given = {}});
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(HostileTest, NestingEndsAtItsBound) {
  for (const SourceForm form : {SourceForm::json, SourceForm::yaml}) {
    EXPECT_NE(message_of("{\"a\": " + std::string(1'000'000, '['), form).find("nested too deep"),
              std::string::npos);
  }
  EXPECT_NE(message_of(repeated("{a: ", 1000), SourceForm::json).find("nested too deep"),
            std::string::npos);
}

TEST(HostileTest, ManySettingsEndAtTheirBound) {
  EXPECT_NE(message_of("{" + repeated("a: 1\n", 200'000) + "}", SourceForm::json).find("too many"),
            std::string::npos);
  EXPECT_NE(message_of(repeated("--a 1\n", 200'000), SourceForm::arguments).find("too many"),
            std::string::npos);
}

// Each name stands for the one before it twice.
TEST(HostileTest, AnchorsAndVariablesThatDoubleDoNotExplode) {
  std::string anchors = "a0: &a0 {x: 1}\n";
  std::string variables = "A0=xxxxxxxx\n";
  std::string references = "r0: xxxxxxxx\n";
  for (int i = 1; i < 60; ++i) {
    const std::string now = std::to_string(i), before = std::to_string(i - 1);
    anchors += "a" + now + ": &a" + now + " {x: *a" + before + ", y: *a" + before + "}\n";
    variables += "A" + now + "=$A" + before + "$A" + before + "\n";
    references += "r" + now + ": ${r" + before + "}${r" + before + "}\n";
  }
  EXPECT_NE(message_of(anchors, SourceForm::yaml).find("aliases that stand for too much"),
            std::string::npos);
  EXPECT_NE(message_of(variables, SourceForm::arguments), "");
  EXPECT_NE(message_of(references, SourceForm::yaml), "");
}

TEST(HostileTest, TextsWithoutAnEndAreRefused) {
  for (const char* text :
       {"{a: '''b", "{/* a", "{\"a", "{a", "{a:", "{a: [1", "'''", "\"", "{\"a\\"}) {
    EXPECT_NE(message_of(text, SourceForm::json), "") << text;
  }
}

TEST(HostileTest, AFileThatIsTooLongIsNotReadToItsEnd) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("placet-hostile-" + std::to_string(::getpid()) + ".json");
  std::ofstream(path) << '{' << std::string(std::size_t{5} << 20, ' ') << '}';
  EXPECT_THROW(read_source(path), InputError);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace placet

#include "architecture/vocabulary.h"

#include <gtest/gtest.h>

namespace placet::architecture {
namespace {

TEST(VocabularyTest, EnginesNameNoStrategyAndNoOtherEngine) {
  for (const SourceFile& file : cpp_files_below("src")) {
    if (!is_engine_folder(file.folder)) continue;
    for (const std::string& sentence : forbidden_words(file)) ADD_FAILURE() << sentence;
  }
}

std::size_t found_in(const std::string& line) {
  return forbidden_words({"src/derive/x.cc", "derive", {line}}).size();
}

TEST(ForbiddenWordsTest, AreFoundHoweverTheyAreWritten) {
  for (const char* line :
       {"if (name == \"zero3\") {", "// ZeRO-1 shards", "// ZeRO stage 2", "int zero_2_bytes;",
        "// ZeRO++ quantizes", "bool is_fsdp = true;", "FSDP2", "// MiCS:", "use_megatron();",
        "Megatron-LM", "DeepSpeed", "ddp", "// as PyTorch does"}) {
    EXPECT_EQ(found_in(line), 1U) << line;
  }
}

TEST(ForbiddenWordsTest, AreNotFoundInsideOtherWords) {
  for (const char* line : {"// dynamics of zero bytes", "zero = 0;", "// from zero to 3",
                           "// economics", "padding", "// adds zero(s)", "phenomenon"}) {
    EXPECT_EQ(found_in(line), 0U) << line;
  }
}

TEST(ForbiddenWordsTest, MayStandInACitation) {
  EXPECT_EQ(found_in("// Source: Narayanan et al., Megatron-LM, arXiv:2104.04473, section 3"), 0U);
  EXPECT_EQ(found_in("const char* kUrl = \"megatron\";  // no source"), 1U);
}

TEST(ForbiddenWordsTest, TheSentenceGivesThePlace) {
  EXPECT_EQ(forbidden_words({"src/derive/x.cc", "derive", {"", "// like Ulysses"}}),
            std::vector<std::string>{
                "src/derive/x.cc:2: 'ulysses' is a name for data files, not for engines"});
}

}  // namespace
}  // namespace placet::architecture

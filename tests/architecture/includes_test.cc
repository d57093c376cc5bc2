#include "architecture/includes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace placet::architecture {
namespace {

using Sentences = std::vector<std::string>;

TEST(IncludesTest, NoFileOfTheProjectCrossesAWall) {
  const std::vector<SourceFile> files = cpp_files_below("src");
  EXPECT_GT(files.size(), 5U) << "the test reads the wrong folder";
  for (const SourceFile& file : files) {
    for (const std::string& sentence : wrong_includes(file)) ADD_FAILURE() << sentence;
  }
}

// With this, no cycle can be written into the table.
TEST(IncludesTest, FoldersKnowOnlyFoldersBeforeThem) {
  std::set<std::string_view> before;
  for (const Folder& folder : folders()) {
    for (const std::string_view known : folder.knows) {
      EXPECT_TRUE(before.contains(known)) << folder.name << " knows " << known;
    }
    before.insert(folder.name);
  }
}

TEST(IncludesTest, TheCheckersAreStrangersToWhatTheyJudge) {
  for (const Folder& folder : folders()) {
    if (folder.name != "check" && folder.name != "algebra" && folder.name != "ranks" &&
        folder.name != "execute") {
      continue;
    }
    for (const char* stranger : {"placement", "schedule", "profile", "derive", "lower", "check"}) {
      EXPECT_EQ(std::count(folder.knows.begin(), folder.knows.end(), stranger), 0)
          << folder.name << " knows " << stranger;
    }
  }
}

// The rest shows that each wall would be noticed.

TEST(WrongIncludesTest, AnArrowThatIsNotInTheTable) {
  EXPECT_EQ(wrong_includes({"src/model/x.cc", "model", {"", "#include \"units/error.h\""}}),
            Sentences{});
  EXPECT_EQ(wrong_includes({"src/units/x.cc", "units", {"", "#include \"model/model.h\""}}),
            Sentences{"src/units/x.cc:2: units may not include model/model.h"});
  EXPECT_EQ(wrong_includes({"src/cluster/x.h", "cluster", {"  #  include \"model/model.h\" // x"}}),
            Sentences{"src/cluster/x.h:1: cluster may not include model/model.h"});
}

TEST(WrongIncludesTest, APathThatDoesNotStartAtTheRoot) {
  EXPECT_EQ(wrong_includes({"src/units/x.cc", "units", {"#include \"error.h\""}}),
            Sentences{"src/units/x.cc:1: there is no src/error.h (includes start at the src/ "
                      "root)"});
}

TEST(WrongIncludesTest, AFolderThatTheTableDoesNotHave) {
  EXPECT_EQ(wrong_includes({"src/common/x.cc", "common", {}}),
            Sentences{"src/common/x.cc: no folder 'common' in the table"});
  EXPECT_EQ(wrong_includes({"src/x.cc", "", {}}), Sentences{"src/x.cc: no folder '' in the table"});
}

TEST(WrongIncludesTest, AForeignLibrary) {
  EXPECT_EQ(wrong_includes({"src/catalog/x.cc", "catalog", {"#include <nlohmann/json.hpp>"}}),
            Sentences{});
  EXPECT_EQ(wrong_includes({"src/derive/x.cc", "derive", {"#include <nlohmann/json.hpp>"}}),
            Sentences{"src/derive/x.cc:1: derive may not include <nlohmann/json.hpp>"});
}

TEST(WrongIncludesTest, TorchOutsideItsFiles) {
  const std::vector<std::string> torch = {"#include <torch/torch.h>"};
  EXPECT_EQ(wrong_includes({"src/execute/torch_device.cc", "execute", torch}), Sentences{});
  EXPECT_EQ(wrong_includes({"src/execute/torch_device.h", "execute", torch}),
            Sentences{"src/execute/torch_device.h:1: <torch/torch.h> belongs in "
                      "src/execute/torch_*.cc"});
}

TEST(WrongIncludesTest, AClockOrAFileInTheTheory) {
  EXPECT_EQ(wrong_includes({"src/cli/x.cc", "cli", {"#include <chrono>"}}), Sentences{});
  EXPECT_EQ(wrong_includes({"src/search/x.cc", "search", {"#include <chrono>"}}),
            Sentences{"src/search/x.cc:1: <chrono> reaches outside, which search must not"});
}

}  // namespace
}  // namespace placet::architecture

// What goes wrong outside of the program: disks that are full, files that are not for everybody's
// eyes, memory and threads that the system does not give.
#include <gtest/gtest.h>

#include <filesystem>

#include "cli/program_run.h"

namespace placet {
namespace {

const std::string kDerive = "derive gpt2 --placement dp=8:ddp ";

/// Names in a folder.
std::size_t count_files(const std::string& folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

TEST(WrittenFilesTest, AFullDeviceIsSaid) {
  const Result result = run(kDerive + "--html /dev/full");
  EXPECT_EQ(result.status, 2);
  EXPECT_TRUE(has(result.err, "--html: '/dev/full' cannot be written: No space left on device"))
      << result.err;
}

// Files of more than 8 blocks cannot be written, as on a full disk; pages are larger.
TEST(WrittenFilesTest, APartIsNeverLeft) {
  const Folder folder;
  std::filesystem::create_directory(folder.file("pages"));
  const std::string page = folder.file("pages/page.html");
  const std::string before = "trap '' XFSZ; ulimit -f 8; ";
  const Result none = run(kDerive + "--html " + page, before);
  EXPECT_EQ(none.status, 2) << none.err;
  EXPECT_TRUE(has(none.err, "cannot be written")) << none.err;
  EXPECT_EQ(count_files(folder.file("pages")), 0U) << "a temporary file is left";
  folder.write("pages/page.html", "what was there");
  EXPECT_EQ(run(kDerive + "--html " + page, before).status, 2);
  EXPECT_EQ(read(page), "what was there");
  EXPECT_EQ(count_files(folder.file("pages")), 1U);
}

TEST(WrittenFilesTest, AFileIsReplacedWholeAndKeepsItsMode) {
  const Folder folder;
  const std::string page = folder.write("page.html", "what was there");
  std::filesystem::permissions(page, std::filesystem::perms::owner_read |
                                         std::filesystem::perms::owner_write |
                                         std::filesystem::perms::group_read);
  const std::string link = folder.file("link.html");
  std::filesystem::create_symlink(page, link);
  EXPECT_EQ(run(kDerive + "--html " + link).status, 0);
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_TRUE(has(read(page), "</html>"));
  EXPECT_EQ(std::filesystem::status(page).permissions(), std::filesystem::perms::owner_read |
                                                             std::filesystem::perms::owner_write |
                                                             std::filesystem::perms::group_read);
}

TEST(WrittenFilesTest, AFolderThatIsNotThereIsSaid) {
  const Result result = run(kDerive + "--html /no/such/folder/page.html");
  EXPECT_EQ(result.status, 2);
  EXPECT_TRUE(has(result.err, "cannot be written: No such file or directory")) << result.err;
}

TEST(NamedFilesTest, MessagesShowNothingOfWhatIsInThem) {
  const Folder folder;
  folder.write("secret.toml", "[default]\naws_secret_access_key = wJalrXUtnFEMI\n");
  folder.write("secret", "root:wJalrXUtnFEMI:19000:0:99999:7:::\n");
  folder.write("secret.json", "wJalrXUtnFEMI\n");
  for (const char* name : {"secret.toml", "./secret", "secret.json"}) {
    for (const char* word : {"cluster", "model", "engine"}) {
      const std::string job = folder.write(
          "job.toml", std::string(word == std::string("model") ? "" : "model = \"gpt2\"\n") + word +
                          " = \"" + name + "\"\nplacement = \"dp=8:ddp\"\n");
      const Result result = run("derive --job " + job);
      EXPECT_EQ(result.status, 2) << word << " " << name << "\n" << result.out;
      EXPECT_FALSE(has(result.err, "wJalrXUtnFEMI")) << result.err;
      EXPECT_TRUE(has(result.err, "secret")) << "the file is named: " << result.err;
    }
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// No thread can be made where its stack is larger than all memory: the work is done without.
TEST(SystemTest, APlanIsFoundWithoutFurtherThreads) {
  const Result result = run("plan gpt2 --cluster 2xh100-sxm --global-batch 8",
                            "ulimit -s 4000000 2>/dev/null; ulimit -v 3000000; ");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, "");
}

TEST(SystemTest, MemoryIsBoundedAndTheMessageSaysSo) {
  const Folder folder;
  const std::string config = folder.write(
      "config.json",
      R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "vocab_size": 100,)"
      R"("num_hidden_layers": 1200, "num_attention_heads": 4, "max_position_embeddings": 128})");
  const Result result =
      run("check " + config + " --placement dp=2:ddp --global-batch 2 --memory-limit 160MiB");
  EXPECT_EQ(result.status, 2) << result.out;
  EXPECT_TRUE(has(result.err, "needs more than 0.168 GB of memory")) << result.err;
  EXPECT_TRUE(has(result.err, "--memory-limit")) << result.err;
  EXPECT_EQ(result.out, "");
}
#endif

TEST(SystemTest, AMemoryLimitThatIsNoneIsRefused) {
  expect_wrong_input("devices --memory-limit plenty", "--memory-limit: 'plenty' is no size");
  expect_wrong_input("devices --memory-limit 1KB", "64MiB or more");
  EXPECT_EQ(run("devices --memory-limit none").status, 0);
}

}  // namespace
}  // namespace placet

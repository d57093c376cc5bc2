#include "checkpoint/checkpoint.h"

#include <gtest/gtest.h>

#include <sstream>

#include "checkpoint/given_state.h"
#include "checkpoint/scratch_folder.h"
#include "units/error.h"

namespace placet::checkpoint {
namespace {

using testing::columns_of_w;
using testing::floats_in;
using testing::GivenState;
using testing::ScratchFolder;

const CheckpointFacts kFacts{
    .steps = 2, .mode = "f32", .job = {{"model", {"m"}}}, .mesh = {{"dp", 2}}};
const std::vector<float> kNumbers = {0, 1, 2, 3, 4, 5, 6, 7};

GivenState replicas() {
  GivenState state;
  for (const int rank : {0, 1}) state.add(columns_of_w(rank, 0, 4), kNumbers);
  return state;
}

std::string refusal_of_folder(const std::filesystem::path& folder) {
  try {
    const Checkpoint checkpoint(folder);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(CheckpointTest, GivesBackWhatWasWritten) {
  const ScratchFolder folder;
  GivenState state;
  state.add(columns_of_w(0, 0, 2), {0, 1, 4, 5});
  state.add(columns_of_w(1, 2, 2), {2, 3, 6, 7});
  EXPECT_EQ(write_checkpoint(folder / "c", kFacts, state, "--save"), 32);
  const Checkpoint read(folder / "c");
  EXPECT_EQ(read.facts(), kFacts);
  EXPECT_EQ(floats_in(read.numbers(state.slices()[1]), 4), (std::vector<float>{2, 3, 6, 7}));
  EXPECT_THROW(read.numbers(columns_of_w(1, 0, 2)), InputError);
  EXPECT_EQ(folder.count(), 1U) << "a temporary folder is left";
}

TEST(CheckpointTest, StoresEqualReplicasOnceAndOthersByThemselves) {
  const ScratchFolder folder;
  EXPECT_EQ(write_checkpoint(folder / "equal", kFacts, replicas(), "--save"), 32);
  GivenState drifted;
  std::vector<float> others = kNumbers;
  others[5] = 9;
  drifted.add(columns_of_w(0, 0, 4), kNumbers);
  drifted.add(columns_of_w(1, 0, 4), others);
  EXPECT_EQ(write_checkpoint(folder / "drifted", kFacts, drifted, "--save"), 64);
  const Checkpoint read(folder / "drifted");
  EXPECT_EQ(floats_in(read.numbers(drifted.slices()[0]), 8), kNumbers);
  EXPECT_EQ(floats_in(read.numbers(drifted.slices()[1]), 8), others);
}

TEST(CheckpointTest, IsNeverWrittenOverAnything) {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder / "there");
  EXPECT_THROW(require_new_folder(folder / "there", "--save"), InputError);
  EXPECT_THROW(require_new_folder(folder / "nowhere" / "c", "--save"), InputError);
  EXPECT_NO_THROW(require_new_folder(folder / "new", "--save"));
  EXPECT_EQ(folder.count(), 1U);
}

// An index is read up to 16 MiB.
TEST(CheckpointTest, WhatCouldNotBeReadIsNotWritten) {
  const ScratchFolder folder;
  CheckpointFacts facts = kFacts;
  facts.meanings.push_back(std::string(std::size_t{17} << 20, 'm'));
  EXPECT_THROW(write_checkpoint(folder / "c", facts, replicas(), "--save"), InputError);
  facts.meanings.back() = "\xff";
  EXPECT_THROW(require_facts(facts, "--save"), InputError);
  EXPECT_THROW(write_checkpoint(folder / "c", facts, replicas(), "--save"), InputError);
  EXPECT_EQ(folder.count(), 0U);
}

/// The checkpoint of two replicas with one file changed.
template <class Change>
std::string refusal_after(const std::string& file, Change change) {
  const ScratchFolder folder;
  write_checkpoint(folder / "c", kFacts, replicas(), "--save");
  const std::filesystem::path path = folder / "c" / file;
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  std::string bytes = text.str();
  change(bytes);
  std::ofstream(path, std::ios::binary) << bytes;
  return refusal_of_folder(folder / "c");
}

TEST(CheckpointTest, BrokenFilesAreRefusedByName) {
  const std::string first = "rank-00000.safetensors";
  EXPECT_EQ(refusal_after(first, [](std::string&) {}), "");
  for (const std::size_t cut : {std::size_t{1}, std::size_t{40}, std::size_t{90}}) {
    const std::string said =
        refusal_after(first, [&](std::string& bytes) { bytes.resize(bytes.size() - cut); });
    EXPECT_NE(said.find(first), std::string::npos) << said;
  }
  const std::string flipped =
      refusal_after(first, [](std::string& bytes) { bytes.back() ^= '\x10'; });
  EXPECT_NE(flipped.find("other bytes than when it was written"), std::string::npos) << flipped;
  const std::string renamed =
      refusal_after(first, [](std::string& bytes) { bytes[bytes.find("\"w\"") + 1] = 'v'; });
  EXPECT_NE(renamed.find("is missing: the index speaks of it"), std::string::npos) << renamed;
  const std::string fewer = refusal_after("index.json", [](std::string& bytes) {
    bytes.replace(bytes.find("[\"dp\",2]"), 8, "[\"dp\",4]");
  });
  EXPECT_NE(fewer.find("is not the number of ranks of its mesh"), std::string::npos) << fewer;
}

TEST(CheckpointTest, FoldersThatAreNoneAreRefused) {
  const ScratchFolder folder;
  EXPECT_NE(refusal_of_folder(folder / "nowhere").find("is not a folder"), std::string::npos);
  std::filesystem::create_directory(folder / "empty");
  EXPECT_NE(refusal_of_folder(folder / "empty").find("index.json"), std::string::npos);
  write_checkpoint(folder / "c", kFacts, replicas(), "--save");
  std::filesystem::remove(folder / "c" / "rank-00001.safetensors");
  EXPECT_NE(refusal_of_folder(folder / "c").find("rank-00001.safetensors"), std::string::npos);
}

}  // namespace
}  // namespace placet::checkpoint

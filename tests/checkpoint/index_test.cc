#include "checkpoint/index.h"

#include <gtest/gtest.h>

#include "units/error.h"

namespace placet::checkpoint {
namespace {

CheckpointIndex small_index() {
  return {.facts = {.steps = 3,
                    .mode = "canonical",
                    .job = {{"model", {"gpt2"}}, {"set", {"a=1", "b=2"}}},
                    .mesh = {{"dp", 2}},
                    .meanings = {"seed=1"}},
          .ranks = 2,
          .slices = {{.slice = {.tensor = "w",
                                .whole = {4, 6},
                                .rank = 1,
                                .format = Dtype::bf16,
                                .begins = {0, 3},
                                .extents = {4, 3},
                                .first = 2,
                                .count = 5},
                      .file = 0,
                      .name = "w #2",
                      .digest = "00"}}};
}

TEST(IndexTest, ReadsWhatItPrints) {
  const CheckpointIndex index = small_index();
  EXPECT_EQ(index_from(text_of(index), "index.json"), index);
}

/// The text with one part of it replaced.
std::string with(const std::string& part, const std::string& by) {
  std::string text = text_of(small_index());
  const std::size_t place = text.find(part);
  EXPECT_NE(place, std::string::npos) << part;
  return text.replace(place, part.size(), by);
}

TEST(IndexTest, RefusesWhatDoesNotFit) {
  for (const auto& [part, by] : std::initializer_list<std::pair<const char*, const char*>>{
           {"placet.checkpoint/1", "placet.checkpoint/9"},
           {"\"steps\":3", "\"steps\":-3"},
           {"\"steps\":3", "\"steps\":3,\"more\":1"},
           {"\"mode\":\"canonical\",", ""},
           {"\"mode\":\"canonical\"", "\"mode\":\"exact\""},
           {"\"model\":\"gpt2\"", "\"model\":[]"},
           {"[\"dp\",2]", "[\"dp\",0]"},
           {"[\"dp\",2]", "[\"dp\",1],[\"dp\",2]"},
           {"[[\"w\",\"parameter\",[4,6]]]",
            "[[\"w\",\"parameter\",[4,6]],[\"w\",\"parameter\",[1099511627776]]]"},
           {"\"parameter\"", "\"gradient\""},
           {"\"bf16\"", "\"bf17\""},
           {"[0,3]", "[0,4]"},    // columns 4, 5 and 6 of six
           {"[0,3]", "[3]"},      // one dim of two
           {"2,5,0", "9,5,0"},    // entries 9 to 13 of twelve
           {"2,5,0", "2,5,2"},    // the file of a third rank
           {"[[],", "[[7],"}}) {  // a slice that is no list
    EXPECT_THROW(index_from(with(part, by), "index.json"), InputError) << part << " as " << by;
  }
}

// Two words of eight bytes: in one piece, or in pieces of any length.
TEST(IndexTest, DigestsDependOnAllBytesAndNotOnPieces) {
  std::vector<std::byte> bytes(16, std::byte{3});
  Digest whole;
  whole.add(bytes);
  Digest pieces;
  pieces.add(std::span(bytes).first(5));
  pieces.add(std::span(bytes).subspan(5));
  EXPECT_EQ(whole.text(), pieces.text());
  for (std::byte& byte : bytes) {
    byte ^= std::byte{1};
    Digest other;
    other.add(bytes);
    EXPECT_NE(other.text(), whole.text());
    byte ^= std::byte{1};
  }
  Digest longer;
  longer.add(bytes);
  longer.add(std::array{std::byte{0}});
  EXPECT_NE(longer.text(), whole.text());
}

}  // namespace
}  // namespace placet::checkpoint

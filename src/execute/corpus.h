// Text to train on: a byte is a word.
#pragma once

#include <cstdint>
#include <string>

namespace placet {

struct Corpus {
  std::string name;  // of the file
  std::string bytes;
};

/// A number of its bytes; of two texts it is different, but for one pair in 2^64.
std::uint64_t digest_of(const Corpus& corpus);
inline constexpr const char* kCorpusWord = "corpus=";

/// NAME#DIGEST, 16 hexadecimal digits: how a checkpoint says which text it was trained on.
std::string name_with_digest(const Corpus& corpus);

}  // namespace placet

// Text to train on: a byte is a word.
#pragma once

#include <cstdint>
#include <string>

namespace placet {

struct Corpus {
  std::string name;  // of the file
  std::string bytes;
};

/// 64 bits that depend on all bytes: two texts that nobody made for it differ in them, with odds of
/// 2^64 to one.
std::uint64_t digest_of(const Corpus& corpus);

/// What a checkpoint's word for the text begins with; NAME#DIGEST follows.
inline constexpr const char* kCorpusWord = "corpus=";

/// NAME#DIGEST, 16 hexadecimal digits: how a checkpoint says which text it was trained on.
std::string name_with_digest(const Corpus& corpus);

}  // namespace placet

#include "execute/corpus.h"

#include <array>
#include <cstddef>

#include "ranks/numbers.h"

namespace placet {

std::uint64_t digest_of(const Corpus& corpus) { return ranks::number_of(corpus.bytes); }

std::string name_with_digest(const Corpus& corpus) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::array<char, 16> text{};
  std::uint64_t left = digest_of(corpus);
  for (std::size_t k = text.size(); k-- > 0; left >>= 4U) text.at(k) = kDigits[left & 15U];
  return corpus.name + "#" + std::string(text.data(), text.size());
}

}  // namespace placet

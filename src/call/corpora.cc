#include "call/corpora.h"

#include <algorithm>
#include <filesystem>

#include "catalog/file_text.h"
#include "units/error.h"

namespace placet {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 30U;
constexpr std::size_t kDigestLength = 16;
constexpr const char* kFlag = "--corpus";

std::string whole_path(const std::string& path) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(path, error);
  return error ? path : whole.string();
}

/// Where the digest of a checkpoint's word begins, its # first; npos: there is none.
std::size_t digest_in(const std::string& text) {
  const std::size_t sign = text.rfind('#');
  if (sign == std::string::npos || text.size() - sign != kDigestLength + 1)
    return std::string::npos;
  const bool is_digest = text.find_first_not_of("0123456789abcdef", sign + 1) == std::string::npos;
  return is_digest ? sign : std::string::npos;
}

Corpus read_corpus(const std::string& text) {
  const std::size_t sign = digest_in(text);
  const std::string path = text.substr(0, sign);
  Corpus corpus{.name = whole_path(path), .bytes = read_file_text(path, kMostBytes, "a text")};
  if (corpus.bytes.empty()) {
    throw InputError({.where = kFlag, .value = path, .problem = "is empty", .allowed = "a text"});
  }
  const std::string found = name_with_digest(corpus);
  if (sign != std::string::npos && !found.ends_with(text.substr(sign))) {
    throw InputError({.where = kFlag,
                      .value = path,
                      .problem = "is another text than the one that the checkpoint was trained on",
                      .allowed = "that one, or --corpus with another on purpose"});
  }
  return corpus;
}

}  // namespace

std::shared_ptr<const Corpus> taken_corpus(std::vector<std::string>& words) {
  std::string named;
  std::erase_if(words, [&](const std::string& word) {
    if (!word.starts_with(kCorpusWord)) return false;
    named = word.substr(std::string_view(kCorpusWord).size());
    return true;
  });
  if (named.empty()) return nullptr;
  return std::make_shared<const Corpus>(read_corpus(named));
}

}  // namespace placet

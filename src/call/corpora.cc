#include "call/corpora.h"

#include <algorithm>
#include <filesystem>

#include "catalog/file_text.h"
#include "units/error.h"
#include "units/utf8.h"

namespace placet {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 30U;
constexpr const char* kFlag = "--corpus";

std::string whole_path(const std::string& path) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(path, error);
  return error ? path : whole.string();
}

}  // namespace

std::shared_ptr<const Corpus> corpus_of_file(const std::string& path) {
  const auto refuse_it = [&](const std::string& problem, const std::string& allowed) {
    throw InputError(
        {.where = kFlag, .value = valid_utf8(path), .problem = problem, .allowed = allowed});
  };
  if (utf8_prefix(path) != path.size()) {
    refuse_it("has a name that is not UTF-8", "a file with another name");
  }
  Corpus corpus{.name = whole_path(path), .bytes = read_file_text(path, kMostBytes, "a text")};
  if (corpus.bytes.empty()) refuse_it("is empty", "a text");
  return std::make_shared<const Corpus>(std::move(corpus));
}

std::shared_ptr<const Corpus> taken_corpus(std::vector<std::string>& words) {
  const auto found = std::ranges::find_if(
      words, [](const std::string& word) { return word.starts_with(kCorpusWord); });
  if (found == words.end()) return nullptr;
  const std::string named = found->substr(std::string_view(kCorpusWord).size());
  words.erase(found);
  const std::string path = named.substr(0, named.rfind('#'));
  std::shared_ptr<const Corpus> corpus = corpus_of_file(path);
  if (named == path || !name_with_digest(*corpus).ends_with(named.substr(path.size()))) {
    throw InputError({.where = kFlag,
                      .value = path,
                      .problem = "is another text than the one that the checkpoint was trained on",
                      .allowed = "that one, or --corpus with another on purpose"});
  }
  return corpus;
}

}  // namespace placet

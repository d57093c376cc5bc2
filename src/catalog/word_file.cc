#include "catalog/word_file.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "catalog/memory.h"
#include "catalog/reader.h"

namespace placet {
namespace {

constexpr const char* kSchema = "placet.words/1";
constexpr int kMostEndings = 4;  // of one name: "-instruct-hf"

bool is_decimal(char c) { return c >= '0' && c <= '9'; }
bool is_separator(char c) { return c == ' ' || c == '-' || c == '_'; }

std::string text_or_nothing(const Reader& reader, std::string_view key) {
  const auto value = reader.find(key);
  return value ? value->text() : std::string();
}

template <class Value, class Read>
std::vector<Value> list_under(const Reader& reader, std::string_view key, Read read) {
  std::vector<Value> list;
  const auto items = reader.find(key);
  if (!items) return list;
  for (const Reader& item : items->items()) list.push_back(read(item));
  return list;
}

Alias read_alias(const Reader& reader) {
  reader.allow({"word", "means", "note"});
  return {.word = reader.at("word").text(),
          .means = reader.at("means").text(),
          .note = text_or_nothing(reader, "note")};
}

Affix read_affix(const Reader& reader) {
  reader.allow({"text", "note"});
  return {.text = reader.at("text").text(), .note = text_or_nothing(reader, "note")};
}

WordEntry read_entry(const Reader& reader) {
  reader.allow({"word", "also", "title", "meaning", "picture", "source"});
  const auto texts = [&](const char* key) {
    return list_under<std::string>(reader, key, [](const Reader& item) { return item.text(); });
  };
  return {.word = reader.at("word").text(),
          .also = texts("also"),
          .title = reader.at("title").text(),
          .meaning = reader.at("meaning").text(),
          .picture = texts("picture"),
          .source = reader.at("source").text()};
}

/// A spelling of the word with something dropped, and what is to be said of that.
struct Form {
  std::string text;
  std::string note;
};

/// Drops one of the endings; false: it has none.
bool drop_ending(const WordFile& words, Form& form) {
  const auto found = std::ranges::find_if(words.endings, [&](const Affix& one) {
    return form.text.ends_with(one.text) && form.text.size() > one.text.size();
  });
  if (found == words.endings.end()) return false;
  form.text.resize(form.text.size() - found->text.size());
  if (!found->note.empty()) form.note = found->note;
  return true;
}

std::vector<Form> forms_of(const WordFile& words, const std::string& word) {
  std::vector<Form> forms = {{word, {}}};
  for (const Affix& one : words.beginnings) {
    if (word.starts_with(one.text) && word.size() > one.text.size()) {
      forms.push_back({word.substr(one.text.size()), one.note});
    }
  }
  std::vector<Form> all = forms;
  for (Form form : forms) {
    for (int dropped = 0; dropped < kMostEndings && drop_ending(words, form); ++dropped) {
      all.push_back(form);
    }
  }
  return all;
}

std::string lower_with_dashes(std::string_view word) {
  std::string text;
  for (const char c : word) {
    if (is_separator(c)) {
      if (!text.empty() && text.back() != '-') text += '-';
    } else {
      text += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  return text;
}

}  // namespace

std::string lower_case(std::string_view word) {
  std::string text(word);
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

namespace {

WordFile read_word_file(const std::filesystem::path& path) {
  WordFile words;
  const Document document = open_document(path);
  const Reader reader(document);
  reader.allow({"schema", "kind", "beginnings", "endings", "aliases", "answers", "entries"});
  if (reader.at("schema").text() != kSchema) {
    reader.at("schema").fail("is another schema", '"' + std::string(kSchema) + '"');
  }
  words.kind = reader.at("kind").text();
  words.beginnings = list_under<Affix>(reader, "beginnings", &read_affix);
  words.endings = list_under<Affix>(reader, "endings", &read_affix);
  words.aliases = list_under<Alias>(reader, "aliases", &read_alias);
  words.answers = list_under<Alias>(reader, "answers", &read_alias);
  words.entries = list_under<WordEntry>(reader, "entries", &read_entry);
  return words;
}

template <class Line>
void add_behind(std::vector<Line>& lines, const std::vector<Line>& more) {
  lines.insert(lines.end(), more.begin(), more.end());
}

}  // namespace

namespace {

WordFile read_words(const Catalog& catalog, std::string_view name) {
  WordFile words;
  // The line that comes first is the one that is found.
  for (const CatalogFile& file : layers_of(catalog, "words", std::string(name))) {
    WordFile below = read_word_file(file.path);
    if (words.kind.empty()) words.kind = below.kind;
    add_behind(words.beginnings, below.beginnings);
    add_behind(words.endings, below.endings);
    add_behind(words.aliases, below.aliases);
    add_behind(words.answers, below.answers);
    std::erase_if(below.entries, [&](const WordEntry& entry) {
      return std::ranges::find(words.entries, entry.word, &WordEntry::word) != words.entries.end();
    });
    add_behind(words.entries, below.entries);
  }
  return words;
}

}  // namespace

std::shared_ptr<const WordFile> shared_words(const Catalog& catalog, std::string_view name) {
  return shared<WordFile>(catalog, "words " + std::string(name),
                          [&] { return read_words(catalog, name); });
}

WordFile load_words(const Catalog& catalog, std::string_view name) {
  return *shared_words(catalog, name);
}

std::string squeezed(std::string_view word) {
  const std::string text = lower_with_dashes(word);
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool between_digits =
        i > 0 && i + 1 < text.size() && is_decimal(text[i - 1]) && is_decimal(text[i + 1]);
    if (text[i] != '-' || between_digits) out += text[i];
  }
  return out;
}

MeantName meant_name(const WordFile& words, const std::vector<std::string>& names,
                     std::string_view word) {
  if (std::ranges::find(names, word) != names.end()) return {std::string(word), {}};
  for (const Form& form : forms_of(words, lower_with_dashes(word))) {
    const std::string wanted = squeezed(form.text);
    if (wanted.empty()) continue;
    const auto name =
        std::ranges::find(names, wanted, [](const std::string& one) { return squeezed(one); });
    if (name != names.end()) return {*name, form.note};
    const auto alias = std::ranges::find(words.aliases, wanted,
                                         [](const Alias& one) { return squeezed(one.word); });
    if (alias != words.aliases.end()) {
      return {alias->means, alias->note.empty() ? form.note : alias->note};
    }
  }
  return {};
}

}  // namespace placet

#include "interop/export.h"

#include <algorithm>
#include <functional>

#include "catalog/meant.h"
#include "catalog/reader.h"
#include "interop/export_parts.h"
#include "interop/import_parts.h"
#include "interop/rule_reader.h"
#include "units/error.h"
#include "units/nearest.h"

namespace placet {
namespace {

std::vector<std::string> texts_of(const Reader& list) {
  std::vector<std::string> texts;
  for (const Reader& item : list.items()) texts.push_back(item.text());
  return texts;
}

WrittenKey read_key(const Reader& item) {
  if (item.is_text()) return {.key = item.text(), .value = {}, .when = {}};
  item.allow({"key", "value", "when"});
  WrittenKey key{.key = item.at("key").text(), .value = {}, .when = conditions_at(item, "when")};
  if (const auto value = item.find("value")) key.value = value->text();
  return key;
}

Writing read_writing(const Reader& object) {
  object.allow({"file", "derived", "keys", "files", "beside"});
  Writing writing;
  if (const auto file = object.find("file")) writing.file = file->text();
  for (const Reader& item : object.at("derived").items()) {
    writing.derived.push_back(read_derived(item));
  }
  for (const Reader& item : object.at("keys").items()) writing.keys.push_back(read_key(item));
  for (const auto& [name, lines] : object.at("files").members()) {
    writing.files.push_back({.name = name, .lines = texts_of(lines)});
  }
  if (const auto beside = object.find("beside")) writing.beside = texts_of(*beside);
  return writing;
}

Document document_of(const Catalog& catalog, const std::string& name) {
  return open_document(file_of(catalog, "dialects", "dialect", name, "--to"));
}

bool is_writable(const Catalog& catalog, const std::string& name) {
  const Document document = document_of(catalog, name);
  return Reader(document).has("export");
}

// The newest version of a name without one.
std::string version_of(const std::vector<std::string>& writable, const std::string& name) {
  std::string found;
  for (const std::string& candidate : writable) {
    if (candidate == name || candidate.starts_with(name + "@")) found = candidate;
  }
  if (!found.empty()) return found;
  throw InputError({.where = "--to",
                    .value = name,
                    .problem = "is not a dialect that can be written",
                    .allowed = list_words(writable),
                    .nearest = nearest(name, writable)});
}

std::optional<std::string> spelling_of(const KeyMeaning& meaning, const std::string& value);

// "a,b" item by item, with blanks between.
std::optional<std::string> spellings_of(KeyMeaning meaning, const std::string& list) {
  meaning.each = false;
  std::string text;
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const auto item = spelling_of(meaning, list.substr(begin, end - begin));
    if (!item) return std::nullopt;
    text += (text.empty() ? "" : " ") + *item;
    begin = end + 1;
  }
  return text;
}

// The dialect's spelling of a value; none: it has none, and `nearest` is the first that it has.
std::optional<std::string> spelling_of(const KeyMeaning& meaning, const std::string& value) {
  if (meaning.values.empty()) return value;
  if (meaning.each) return spellings_of(meaning, value);
  const auto any = meaning.values.find("*");
  if (any != meaning.values.end() && any->second == kItself) return value;
  for (const auto& [spelling, said] : meaning.values) {
    if (said == value && spelling != "*") return spelling;
  }
  return std::nullopt;
}

std::optional<std::string> value_of(const WrittenKey& key, const Dialect& dialect,
                                    const Words& words) {
  if (!holds(key.when, words)) return std::nullopt;
  if (!key.value.empty()) return filled(key.value, words);
  const KeyMeaning* meaning = meaning_of(dialect, key.key);
  if (meaning == nullptr) {
    throw InputError({.where = dialect.name + ": export: keys",
                      .value = key.key,
                      .problem = {},
                      .allowed = "a key of the dialect"});
  }
  const auto word = words.find(meaning->word);
  if (word == words.end()) return std::nullopt;
  return spelling_of(*meaning, word->second);
}

std::vector<Setting> settings_of(const Writing& writing, const Dialect& dialect,
                                 const Words& words) {
  std::vector<Setting> settings;
  for (const WrittenKey& key : writing.keys) {
    const auto value = value_of(key, dialect, words);
    if (value) settings.push_back({.path = key.key, .value = *value, .line = 0});
  }
  return settings;
}

// Words that rules of a dialect give a value of their own may stand for nothing: a blank.
std::string text_of(const WrittenFile& file, const Words& words) {
  std::string text;
  for (const std::string& line : file.lines) {
    if (const auto said = filled(line, words)) text += *said + "\n";
  }
  return text;
}

struct Written {
  std::vector<ExportedFile> files;
  std::vector<SourceForm> forms;
};

Written write(const Writing& writing, const Dialect& dialect, Words words) {
  const std::vector<Setting> settings = settings_of(writing, dialect, words);
  Written written;
  if (writing.file.empty()) {
    words["arguments"] = arguments_text(settings);
  } else {
    words["file"] = writing.file;
    written.files.push_back({writing.file, configuration_text(dialect.form, settings)});
    written.forms.push_back(dialect.form);
  }
  for (const WrittenFile& file : writing.files) {
    written.files.push_back({file.name, text_of(file, words)});
    written.forms.push_back(SourceForm::arguments);
  }
  return written;
}

// What a reader of the files takes them to say.
Imported read_back(const Catalog& catalog, const Written& written, const Dialect& dialect,
                   const Words& beside, const std::string& world) {
  ImportRequest request{.sources = {}, .dialect = dialect.name, .given = beside};
  request.given["world-size"] = world;
  const ExportedFile& file = written.files.front();
  request.sources.push_back(parse_source(file.text, written.forms.front(), file.name));
  return import_sources(catalog, request);
}

std::vector<JobDifference> missing_of(const Imported& imported) {
  std::vector<JobDifference> unsaid;
  unsaid.reserve(imported.missing.size());
  for (const MissingFact& fact : imported.missing) {
    unsaid.push_back({.word = fact.flag, .one = fact.what, .other = "nothing"});
  }
  return unsaid;
}

Words beside_of(const Writing& writing, const Words& words) {
  Words beside;
  for (const std::string& word : writing.beside) {
    if (const auto found = words.find(word); found != words.end()) beside.insert(*found);
  }
  return beside;
}

// One dialect as it is read and written.
struct Pen {
  Dialect dialect;
  Writing writing;
};

Pen pen_of(const Catalog& catalog, const std::string& name) {
  const Document document = document_of(catalog, name);
  return {.dialect = load_dialect(catalog, name, "--to"),
          .writing = read_writing(Reader(document).at("export"))};
}

Words words_for(const Catalog& catalog, const JobRequest& request, const Writing& writing) {
  const Job job = load_job(catalog, request);
  Words words = words_of_job(job, meant_model(catalog, request.model.value_or("")).text);
  if (request.clip) words["clip"] = Json(*request.clip).dump();
  Dialect deriving;
  deriving.derived = writing.derived;
  derive_words(deriving, {}, words, {});
  return words;
}

// Writes the job of a request; gives what the files say of it when they are read again.
Imported write_job(const Catalog& catalog, const JobRequest& request, const Pen& pen,
                   Exported& exported) {
  const Words words = words_for(catalog, request, pen.writing);
  exported.beside = beside_of(pen.writing, words);
  Written written = write(pen.writing, pen.dialect, words);
  Imported back = read_back(catalog, written, pen.dialect, exported.beside, words.at("world-size"));
  exported.files = std::move(written.files);
  exported.unsaid = missing_of(back);
  return back;
}

}  // namespace

std::vector<std::string> writable_dialects(const Catalog& catalog) {
  std::vector<std::string> names = names_in(catalog, "dialects");
  std::erase_if(names, [&](const std::string& name) { return !is_writable(catalog, name); });
  return names;
}

Exported export_job(const Catalog& catalog, const JobRequest& request, const std::string& name) {
  Exported exported{.dialect = version_of(writable_dialects(catalog), name),
                    .files = {},
                    .beside = {},
                    .unsaid = {}};
  const Pen pen = pen_of(catalog, exported.dialect);
  JobRequest meant = request;
  Imported back = write_job(catalog, meant, pen, exported);
  if (!exported.unsaid.empty()) return exported;
  if (!meant.engine && back.job.contains("engine")) {
    // What the engine does by itself is said too: it may not be what was assumed before.
    meant.engine = back.job.at("engine");
    back = write_job(catalog, meant, pen, exported);
    if (!exported.unsaid.empty()) return exported;
  }
  JobRequest again = request_of_words(back.job, exported.dialect);
  again.cluster = request.cluster;
  exported.unsaid = differences_of(load_job(catalog, meant), load_job(catalog, again));
  return exported;
}

}  // namespace placet

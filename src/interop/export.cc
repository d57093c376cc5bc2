#include "interop/export.h"

#include <algorithm>
#include <functional>

#include "catalog/meant.h"
#include "catalog/memory.h"
#include "catalog/reader.h"
#include "catalog/versions.h"
#include "interop/export_parts.h"
#include "interop/import_parts.h"
#include "interop/rule_reader.h"
#include "interop/stage_text.h"
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
  object.allow({"file", "derived", "keys", "files", "beside", "launcher", "model-file"});
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
  if (const auto launcher = object.find("launcher")) writing.launcher = launcher->text();
  if (const auto model = object.find("model-file")) writing.model_file = model->text();
  return writing;
}

Document document_of(const Catalog& catalog, const std::string& name) {
  return open_document(file_of(catalog, "dialects", "dialect", name, "--to"));
}

bool is_writable(const Catalog& catalog, const std::string& name) {
  const Document document = document_of(catalog, name);
  return Reader(document).has("export");
}

// The newest version of a name without one, or of the engine that a name stands for: "ds".
std::string version_of(const Catalog& catalog, const std::vector<std::string>& writable,
                       const std::string& name) {
  std::string found = newest_of_name(writable, name);
  if (found.empty()) found = newest_of_name(writable, meant_engine(catalog, name).text);
  if (!found.empty()) return found;
  throw InputError({.where = "--to",
                    .value = name,
                    .problem = "is not a dialect that can be written",
                    .allowed = list_words(writable),
                    .nearest = nearest(name, writable)});
}

// "a,b" item by item: with blanks between as options, else as a list.
std::optional<std::string> spellings_of(KeyMeaning meaning, const std::string& list,
                                        SourceForm form) {
  meaning.each = false;
  std::string words;
  Json items = Json::array();
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const auto item = spelling_of(meaning, list.substr(begin, end - begin), form);
    if (!item) return std::nullopt;
    words += (words.empty() ? "" : " ") + *item;
    items.push_back(*item);
    begin = end + 1;
  }
  return form == SourceForm::arguments ? words : items.dump();
}

}  // namespace

std::optional<std::string> spelling_of(const KeyMeaning& meaning, const std::string& value,
                                       SourceForm form) {
  if (meaning.kind == ValueKind::stages) return stages_of_blocks(value);
  if (meaning.values.empty()) return value;
  if (meaning.each) return spellings_of(meaning, value, form);
  const auto any = meaning.values.find("*");
  if (any != meaning.values.end() && any->second == kItself) return value;
  for (const auto& [spelling, said] : meaning.values) {
    if (said == value && spelling != "*") return spelling;
  }
  return std::nullopt;
}

namespace {

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
  return spelling_of(*meaning, word->second, dialect.form);
}

}  // namespace

std::vector<Setting> settings_of(const Pen& pen, const Words& words) {
  std::vector<Setting> settings;
  for (const WrittenKey& key : pen.writing.keys) {
    const auto value = value_of(key, *pen.dialect, words);
    if (value) settings.push_back({.path = key.key, .value = *value, .line = 0});
  }
  return settings;
}

namespace {

// Words that rules of a dialect give a value of their own may stand for nothing: a blank.
std::string text_of(const WrittenFile& file, const Words& words) {
  std::string text;
  for (const std::string& line : file.lines) {
    if (const auto said = filled(line, words)) text += *said + "\n";
  }
  return text;
}

}  // namespace

std::vector<ExportedFile> launch_files(const Writing& writing, const Words& words) {
  std::vector<ExportedFile> files;
  files.reserve(writing.files.size());
  for (const WrittenFile& file : writing.files) {
    files.push_back({.name = file.name, .text = text_of(file, words)});
  }
  return files;
}

namespace {

// The first of the files says the job.
std::vector<ExportedFile> written_files(const Pen& pen, Words words) {
  const std::vector<Setting> settings = settings_of(pen, words);
  if (pen.writing.file.empty()) {
    words["arguments"] = arguments_text(settings);
    return launch_files(pen.writing, words);
  }
  words["file"] = pen.writing.file;
  std::vector<ExportedFile> files = launch_files(pen.writing, words);
  files.insert(files.begin(),
               {.name = pen.writing.file, .text = configuration_text(pen.dialect->form, settings)});
  return files;
}

// What a reader of a file takes it to say.
Imported read_back(const Catalog& catalog, const ExportedFile& file, const Dialect& dialect,
                   const Words& beside, const std::string& world) {
  ImportRequest request{.sources = {}, .dialect = dialect.name, .given = beside};
  request.given["world-size"] = world;
  request.sources.push_back(parse_source(file.text, dialect.form, file.name));
  return import_sources(catalog, request);
}

}  // namespace

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

void leave_out_said(const Imported& alone, Words& beside) {
  std::erase_if(beside, [&](const auto& word) {
    const auto found = alone.job.find(word.first);
    return found != alone.job.end() && found->second == word.second;
  });
}

Pen pen_of(const Catalog& catalog, const std::string& name) {
  return remembered<Pen>(catalog, "pen " + name, [&]() -> Pen {
    const Document document = document_of(catalog, name);
    return {.dialect = shared_dialect(catalog, name, "--to"),
            .writing = read_writing(Reader(document).at("export"))};
  });
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

namespace {

// Writes the job of a request; gives what the files say of it when they are read again.
Imported write_job(const Catalog& catalog, const JobRequest& request, const Pen& pen,
                   Exported& exported) {
  const Words words = words_for(catalog, request, pen.writing);
  exported.beside = beside_of(pen.writing, words);
  exported.files = written_files(pen, words);
  const ExportedFile& file = exported.files.front();
  const std::string& world = words.at("world-size");
  leave_out_said(read_back(catalog, file, *pen.dialect, {}, world), exported.beside);
  Imported back = read_back(catalog, file, *pen.dialect, exported.beside, world);
  exported.unsaid = missing_of(back);
  return back;
}

}  // namespace

std::vector<std::string> writable_dialects(const Catalog& catalog) {
  return remembered<std::vector<std::string>>(catalog, "writable dialects", [&] {
    std::vector<std::string> names = names_in(catalog, "dialects");
    std::erase_if(names, [&](const std::string& name) { return !is_writable(catalog, name); });
    return names;
  });
}

std::string writable_name(const Catalog& catalog, const std::string& name) {
  return version_of(catalog, writable_dialects(catalog), name);
}

Exported export_job(const Catalog& catalog, const JobRequest& request, const std::string& name) {
  Exported exported{
      .dialect = writable_name(catalog, name), .files = {}, .beside = {}, .unsaid = {}};
  const Pen pen = pen_of(catalog, exported.dialect);
  JobRequest meant = request;
  if (!meant.engine) {
    // What the engine does by itself is said too: it may not be what was assumed before. A policy
    // of recomputation is a word of the engine's own.
    JobRequest asking = request;
    asking.recompute.reset();
    const Imported back = write_job(catalog, asking, pen, exported);
    if (!exported.unsaid.empty()) return exported;
    if (back.job.contains("engine")) meant.engine = back.job.at("engine");
  }
  const Imported back = write_job(catalog, meant, pen, exported);
  if (!exported.unsaid.empty()) return exported;
  JobRequest again = request_of_words(back.job, exported.dialect);
  again.cluster = request.cluster;
  exported.unsaid = differences_of(load_job(catalog, meant), load_job(catalog, again));
  std::ranges::move(model_files(catalog, meant, pen.writing), std::back_inserter(exported.files));
  return exported;
}

}  // namespace placet

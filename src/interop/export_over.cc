// A job over the configuration that it was read from: a merge of three. What the dialect writes for
// the job that was read, and for the job that is meant, differs in the keys that were changed; they
// alone are changed in the text.
#include <algorithm>
#include <filesystem>
#include <iterator>

#include "catalog/meant.h"
#include "catalog/model_catalog.h"
#include "catalog/reader.h"
#include "interop/export_parts.h"
#include "interop/kept_text.h"
#include "interop/shell_text.h"
#include "interop/source_parts.h"

namespace placet {
namespace {

const Setting* find_key(const std::vector<Setting>& settings, const std::string& key) {
  const auto found = std::ranges::find(settings, key, &Setting::path);
  return found == settings.end() ? nullptr : &*found;
}

// The key under which the source says what a key of the dialect says: itself, or another of one
// word, as where a name has dashes for underscores.
std::string key_in(const Source& source, const Dialect& dialect, const std::string& key) {
  if (find_key(source.settings, key) != nullptr) return key;
  const KeyMeaning* meaning = meaning_of(dialect, key);
  if (meaning == nullptr) return key;
  for (const Setting& setting : source.settings) {
    const KeyMeaning* other = meaning_of(dialect, setting.path);
    if (other == meaning) return setting.path;
    if (other != nullptr && !other->word.empty() && other->word == meaning->word) {
      return setting.path;
    }
  }
  return key;
}

// The value as that key spells it.
std::string value_in(const Dialect& dialect, const Setting& written, const std::string& key,
                     const Words& words) {
  const KeyMeaning* meaning = meaning_of(dialect, key);
  if (key == written.path || meaning == nullptr) return written.value;
  const auto word = words.find(meaning->word);
  if (word == words.end()) return written.value;
  return spelling_of(*meaning, word->second, dialect.form).value_or(written.value);
}

// A job over a configuration: what is asked, and the words of both jobs.
struct Overlay {
  const Catalog& catalog;
  const JobRequest& request;
  const Original& origin;
  const Pen& pen;
  Words before, after;
};

// A value of a script that only a shell knows: it holds a variable, or what a command prints.
bool needs_a_shell(const std::string& value) {
  return value.find_first_of("$`") != std::string::npos;
}

bool is_open(const Source& source, const Setting* said) {
  return source.form == SourceForm::arguments && said != nullptr && needs_a_shell(said->value);
}

// What keys of the job that is meant are others than those `before`. A key that the source says
// alike already is no change; one whose value only a shell knows is.
std::vector<KeyChange> changes_between(const std::vector<Setting>& before, const Overlay& over) {
  const Source& source = over.origin.source;
  const Dialect& dialect = *over.pen.dialect;
  const std::vector<Setting> after = settings_of(over.pen, over.after);
  std::vector<KeyChange> changes;
  for (const Setting& setting : after) {
    const std::string key = key_in(source, dialect, setting.path);
    const Setting* said = find_key(source.settings, key);
    const Setting* old = find_key(before, setting.path);
    const bool is_same = old != nullptr && old->value == setting.value;
    if (is_same && !is_open(source, said)) continue;
    const std::string value = value_in(dialect, setting, key, over.after);
    if (said == nullptr || said->value != value) changes.push_back({.key = key, .value = value});
  }
  for (const Setting& setting : before) {
    if (find_key(after, setting.path) != nullptr) continue;
    changes.push_back({.key = key_in(source, dialect, setting.path), .value = {}});
  }
  return changes;
}

// Options of a source that the dialect knows and what launches the engine does not.
std::vector<std::string> known_options(const Overlay& over) {
  std::vector<std::string> options;
  const Writing& writing = over.pen.writing;
  if (writing.launcher.empty()) return options;
  const SharedDialect launcher = shared_dialect(over.catalog, writing.launcher, "launcher");
  for (const Setting& setting : over.origin.source.settings) {
    const std::string& name = setting.path;
    const bool is_known = meaning_of(*over.pen.dialect, name) != nullptr;
    if (name.starts_with("--") && is_known && meaning_of(*launcher, name) == nullptr) {
      options.push_back(name);
    }
  }
  return options;
}

// Options of a source that are the engine's own, not those of what launches it. Throws InputError
// for a value that another script cannot know. One of a variable without a single value is asked of
// whoever launches: a shell stops where it is not set.
std::vector<Setting> own_options(const Catalog& catalog, const Source& source,
                                 const Writing& writing) {
  std::vector<Setting> options;
  if (writing.launcher.empty()) return options;
  const SharedDialect launcher = shared_dialect(catalog, writing.launcher, "launcher");
  std::ranges::copy_if(source.settings, std::back_inserter(options), [&](const Setting& setting) {
    return setting.path.starts_with("--") && meaning_of(*launcher, setting.path) == nullptr;
  });
  const auto open = std::ranges::find_if(
      options, [](const Setting& setting) { return !variables_in(setting.value); });
  if (open != options.end()) {
    fail_at_line(source.file, open->line,
                 "does not say the value of '" + open->path + "': it is '" + open->value + "'",
                 "a value, or variables by their names");
  }
  return options;
}

std::vector<ExportedFile> files_over(const Overlay& over, const Source& source,
                                     const std::string& text) {
  const Writing& writing = over.pen.writing;
  Words words = over.after;
  const std::string name = std::filesystem::path(source.file).filename().string();
  words["file"] = name;
  words["arguments"] =
      arguments_text(own_options(over.catalog, source, writing), quoted_around_variables);
  std::vector<ExportedFile> files = {{.name = name, .text = text}};
  for (ExportedFile& file : launch_files(writing, words)) {
    if (file.name != name) files.push_back(std::move(file));
  }
  return files;
}

Imported read_over(const Overlay& over, const Source& changed, const Exported& exported) {
  ImportRequest request{
      .sources = {changed}, .dialect = exported.dialect, .given = over.origin.given};
  const std::vector<Source>& others = over.origin.others;
  request.sources.insert(request.sources.end(), others.begin(), others.end());
  // What was left open, and is another value now, the file says.
  std::erase_if(request.given, [&](const auto& given) {
    const auto old = over.before.find(given.first);
    const auto now = over.after.find(given.first);
    return old != over.before.end() && now != over.after.end() && old->second != now->second;
  });
  for (const auto& [word, value] : exported.beside) request.given[word] = value;
  request.given["world-size"] = over.after.at("world-size");
  return import_sources(over.catalog, request);
}

}  // namespace

std::vector<ExportedFile> model_files(const Catalog& catalog, const JobRequest& request,
                                      const Writing& writing) {
  if (writing.model_file.empty() || !request.model) return {};
  const std::string name = meant_model(catalog, *request.model).text;
  Json config;
  if (is_configuration(name)) {
    config = Json::parse(name);
  } else if (const auto names = model_names(catalog); std::ranges::count(names, name) > 0) {
    const Document sheet = open_document(file_of(catalog, "models", "model", name, "MODEL"));
    if (sheet.value.contains("config")) config = sheet.value["config"];
  }
  if (!config.is_object()) return {};  // a count has none, a file is the user's own
  return {{.name = writing.model_file, .text = config.dump(2) + "\n"}};
}

namespace {

// Writes the changes; what the files then do not say stands in `unsaid`.
void write_over(const Overlay& over, const std::vector<KeyChange>& changes, Exported& exported) {
  exported.beside = beside_of(over.pen.writing, over.after);
  const std::string text =
      changed_text(over.origin.source, over.origin.text, changes, known_options(over));
  const Source changed = parse_source(text, over.origin.source.form, over.origin.source.file);
  exported.files = files_over(over, changed, text);
  const Imported back = read_over(over, changed, exported);
  leave_out_said(
      import_sources(over.catalog, {.sources = {changed},
                                    .dialect = exported.dialect,
                                    .given = {{"world-size", over.after.at("world-size")}}}),
      exported.beside);
  exported.unsaid = missing_of(back);
  if (!exported.unsaid.empty()) return;
  JobRequest again = request_of_words(back.job, exported.dialect);
  again.cluster = over.request.cluster;
  exported.unsaid =
      differences_of(load_job(over.catalog, over.request), load_job(over.catalog, again));
}

}  // namespace

Exported export_over(const Catalog& catalog, const JobRequest& request, const Original& origin,
                     const std::string& name) {
  Exported exported{
      .dialect = writable_name(catalog, name), .files = {}, .beside = {}, .unsaid = {}};
  const Pen pen = pen_of(catalog, exported.dialect);
  const Overlay over{.catalog = catalog,
                     .request = request,
                     .origin = origin,
                     .pen = pen,
                     .before = words_for(catalog, origin.said, pen.writing),
                     .after = words_for(catalog, request, pen.writing)};
  write_over(over, changes_between(settings_of(pen, over.before), over), exported);
  // Keys may hang on others that the source leaves open: then all are said.
  if (!exported.unsaid.empty()) write_over(over, changes_between({}, over), exported);
  std::ranges::move(model_files(catalog, request, pen.writing), std::back_inserter(exported.files));
  return exported;
}

}  // namespace placet

#include "catalog/meant.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "catalog/cluster_catalog.h"
#include "catalog/cluster_parts.h"
#include "catalog/model_catalog.h"
#include "catalog/network_words.h"
#include "catalog/versions.h"
#include "catalog/word_file.h"
#include "catalog/words.h"
#include "units/checked.h"
#include "units/error.h"
#include "units/nearest.h"
#include "units/number.h"

namespace placet {
namespace {

std::string note_of(const std::string& flag, const std::string& word, const MeantName& meant) {
  return flag + ": '" + word + "' is taken as " + meant.name + " (" + meant.note + ")";
}

/// A name of a folder of the catalogue for a word. Names that are there already cost no listing.
MeantName name_in(const Catalog& catalog, const char* folder, const char* words,
                  const std::string& word) {
  if (has_file(catalog, folder, word)) return {word, {}};
  return meant_name(*shared_words(catalog, words), names_in(catalog, folder), word);
}

Meant meant_in(const Catalog& catalog, const char* folder, const char* words, const char* flag,
               const std::string& word) {
  const MeantName meant = name_in(catalog, folder, words, word);
  if (meant.name.empty()) return {word, {}};
  Meant result{meant.name, {}};
  if (!meant.note.empty()) result.notes.push_back(note_of(flag, word, meant));
  return result;
}

/// Whether a word with a '/' can be "OWNER/NAME" of a model rather than a path.
bool is_owned_name(const std::string& word) {
  std::error_code error;
  return std::count(word.begin(), word.end(), '/') == 1 && word.front() != '/' &&
         word.front() != '.' && word.front() != '~' && !word.ends_with(".json") &&
         !word.ends_with(".toml") && !word.ends_with('/') && !std::filesystem::exists(word, error);
}

// --- clusters

/// "2x8xh100", "8x H100 80GB", "h100x8", "h100:2" taken apart.
struct SizedName {
  std::optional<std::int64_t> hosts;    // of the two numbers of 2x8xh100 the first
  std::optional<std::int64_t> devices;  // the other, or the only one
  std::string name;
  std::string ending;  // ":2"
};

/// Takes "8x", "8 x " or "8 " off the front.
std::optional<std::int64_t> take_count(std::string& text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits == 0 || digits == text.size()) return std::nullopt;
  const std::size_t after = std::min(text.find_first_not_of(' ', digits), text.size());
  const bool times =
      after < text.size() && (text[after] == 'x' || text[after] == 'X' || text[after] == '*');
  if (!times && after == digits) return std::nullopt;
  const auto count = number_in<std::int64_t>(text.substr(0, digits));
  if (!count) return std::nullopt;
  const std::size_t begin = text.find_first_not_of(' ', times ? after + 1 : after);
  if (begin == std::string::npos) return std::nullopt;
  text.erase(0, begin);
  return count;
}

/// Takes "x8", "x 8" off the end.
std::optional<std::int64_t> take_count_behind(std::string& text) {
  const std::size_t digits = text.find_last_not_of("0123456789") + 1;
  if (digits == 0 || digits == text.size()) return std::nullopt;
  const std::size_t times = text.find_last_not_of(' ', digits - 1);
  if (times == std::string::npos || times == 0) return std::nullopt;
  if (text[times] != 'x' && text[times] != 'X' && text[times] != '*') return std::nullopt;
  const auto count = number_in<std::int64_t>(text.substr(digits));
  if (count) text.resize(text.find_last_not_of(' ', times - 1) + 1);
  return count;
}

/// Takes the 8 of "8h100" off the front.
std::optional<std::int64_t> take_count_joined(std::string& text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits == 0 || digits == text.size()) return std::nullopt;
  const auto count = number_in<std::int64_t>(text.substr(0, digits));
  if (count) text.erase(0, digits);
  return count;
}

std::string without_blanks_around(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

bool is_cluster(const Catalog& catalog, const std::string& name) {
  return has_file(catalog, "clusters", name);
}

/// A device before a cluster, but a cluster's own name before what else a device is called.
MeantName cluster_name(const Catalog& catalog, const std::string& word) {
  if (is_cluster(catalog, word)) return {word, {}};
  const MeantName device = name_in(catalog, "hardware/devices", "devices", word);
  return device.name.empty() ? name_in(catalog, "clusters", "clusters", word) : device;
}

/// Hosts that are not as the device's usual ones are not guessed.
std::string hosts_text(const Catalog& catalog, const SizedName& sized, const std::string& name,
                       const std::string& part) {
  const std::string where = "--cluster";
  const bool is_device = has_file(catalog, "hardware/devices", name);
  const std::int64_t per_host =
      is_device ? load_host(catalog, load_device(catalog, name, where).host, where).devices
                : load_cluster_sheet(catalog, name).node.groups.front().per_host;
  if (per_host == *sized.devices) return name + ":" + std::to_string(*sized.hosts);
  throw InputError(
      {.where = where,
       .value = part,
       .problem = "asks for hosts of " + std::to_string(*sized.devices) + ", and those of " + name +
                  " have " + std::to_string(per_host),
       .allowed = name + ":HOSTS, " +
                  std::to_string(checked_multiply(*sized.hosts, *sized.devices, "devices")) + "x" +
                  name + ", or a cluster file with per_host"});
}

/// Takes ":HOSTS" off the end of the name, and counts off its beginning.
void take_sizes(SizedName& sized) {
  if (const std::size_t colon = sized.name.rfind(':'); colon != std::string::npos) {
    sized.ending = sized.name.substr(colon);
    sized.name.resize(colon);
  }
  sized.devices = take_count(sized.name);
  if (!sized.devices) return;
  if (const auto second = take_count(sized.name)) {
    sized.hosts = std::exchange(sized.devices, second);
  }
}

/// Counts that only show once the name is none of the catalogue's: "h100 x 8", "8h100", "2x8h100".
MeantName name_beside_count(const Catalog& catalog, SizedName& sized) {
  const std::string said = sized.name;
  const bool counted = sized.devices.has_value();
  for (const auto take : {&take_count_behind, &take_count_joined}) {
    sized.name = said;
    const auto count = take(sized.name);
    if (!count || (counted && sized.hosts)) continue;
    MeantName meant = cluster_name(catalog, sized.name);
    if (meant.name.empty()) continue;
    if (counted) sized.hosts = sized.devices;
    sized.devices = count;
    return meant;
  }
  sized.name = said;
  return {};
}

std::string meant_part(const Catalog& catalog, const std::string& part,
                       std::vector<std::string>& notes) {
  SizedName sized{.name = without_blanks_around(part)};
  if (names_a_file(sized.name)) return part;
  // Names of the catalogue may hold what looks like a count: "mi300x".
  if (cluster_name(catalog, sized.name).name.empty()) take_sizes(sized);
  MeantName meant = cluster_name(catalog, sized.name);
  if (meant.name.empty() && sized.ending.empty()) meant = name_beside_count(catalog, sized);
  if (meant.name.empty()) return part;
  if (!meant.note.empty()) notes.push_back(note_of("--cluster", sized.name, meant));
  if (sized.devices && !sized.hosts && is_cluster(catalog, meant.name)) {
    const std::string count = std::to_string(*sized.devices);
    notes.push_back("--cluster: " + count + "x" + meant.name + " is " + count +
                    (*sized.devices == 1 ? " device" : " devices") + " of it; as many hosts are " +
                    meant.name + ":" + count);
  }
  if (sized.devices && !sized.ending.empty()) {
    throw InputError({.where = "--cluster",
                      .value = part,
                      .problem = "has two sizes",
                      .allowed = std::to_string(*sized.devices) + "x" + meant.name +
                                 " for devices, " + meant.name + sized.ending + " for hosts"});
  }
  if (sized.hosts) return hosts_text(catalog, sized, meant.name, part);
  return (sized.devices ? std::to_string(*sized.devices) + "x" : "") + meant.name + sized.ending;
}

/// A size in place of a name: `params=7B`, `Decoder=7B`; the word before '=' in lower case.
std::optional<std::string> size_word(const std::string& word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos) return std::nullopt;
  const std::string size = lower_case(word.substr(0, equals));
  if (size != "params" && size != "decoder") return std::nullopt;
  return size + word.substr(equals);
}

}  // namespace

Meant meant_model(const Catalog& catalog, const std::string& word) {
  if (is_configuration(word)) return {word, {}};
  const bool owned = is_owned_name(word);
  if (names_a_file(word) && !owned) return {word, {}};
  std::error_code error;
  if (std::filesystem::is_directory(word, error)) return {word, {}};
  const std::string name = owned ? word.substr(word.find('/') + 1) : word;
  if (const auto size = size_word(word)) return {*size, {}};
  Meant meant = meant_in(catalog, "models", "models", "MODEL", name);
  const bool known = meant.text != name || name_in(catalog, "models", "models", name).name == name;
  if (known && owned) {
    meant.notes.push_back("MODEL: there is no file " + word + " here; it is taken as " +
                          meant.text + " of the catalogue");
  }
  if (known || !owned) return known ? meant : Meant{word, {}};
  const std::vector<std::string> names = names_in(catalog, "models");
  throw InputError({.where = "MODEL",
                    .value = word,
                    .problem = "is no file, and no model of the catalogue",
                    .allowed = "a name that `placet models` lists, a config.json, or a folder "
                               "that holds one",
                    .nearest = nearest(name, names)});
}

Meant meant_cluster(const Catalog& catalog, const std::string& text) {
  Meant meant;
  for (const std::string& part : split_words(text, ',')) {
    if (!meant.text.empty()) meant.text += ',';
    const std::size_t at = std::min(part.find('@'), part.size());
    meant.text += meant_part(catalog, part.substr(0, at), meant.notes);
    if (at == part.size()) continue;
    Meant network = meant_network(catalog, without_blanks_around(part.substr(at + 1)));
    meant.text += '@' + network.text;
    for (std::string& note : network.notes) meant.notes.push_back("--cluster, " + note);
  }
  return text.find_first_not_of(' ') == std::string::npos ? Meant{text, {}} : meant;
}

namespace {

/// Whether a version says numbers only: "0.19.3", not "2024.12-late".
bool has_numbers_only(std::string_view version) {
  return !version.empty() && version.find_first_not_of("0123456789.") == std::string_view::npos;
}

/// Whether the version `known` may stand for the one that was asked for: it is not newer and
/// begins with the same number, or it is one of it (of 0.19 that is 0.19.3).
bool may_stand_for(const std::string& known, const std::string& asked) {
  if (!has_numbers_only(known)) return false;
  const bool akin = known.substr(0, known.find('.')) == asked.substr(0, asked.find('.'));
  return akin && (known.starts_with(asked + ".") || !is_older_version(asked, known));
}

/// Releases come more often than what the catalogue knows of them changes: a version of numbers
/// that it does not have is the last of those that may stand for it. Variants of a version
/// ("2024.12-late") are meant by their whole names alone.
Meant meant_version(const std::vector<std::string>& files, const std::string& text) {
  const std::size_t at = text.find('@');
  if (at == std::string::npos) return {text, {}};
  const std::size_t end = std::min(text.find('+'), text.size());
  const std::string stem = text.substr(0, end);
  const std::string asked = stem.substr(at + 1);
  if (!has_numbers_only(asked) || std::ranges::find(files, stem) != files.end()) return {text, {}};
  std::string newest;
  for (const std::string& file : files) {
    if (!file.starts_with(stem.substr(0, at + 1))) continue;
    const std::string version = file.substr(at + 1);
    if (!may_stand_for(version, asked)) continue;
    if (newest.empty() || is_older_version(newest, version)) newest = version;
  }
  if (newest.empty()) return {text, {}};
  const std::string name = stem.substr(0, at + 1) + newest;
  const std::string where = newest.starts_with(asked + ".") ? "of it" : "before it";
  return {name + text.substr(end),
          {note_of("--engine", stem, {name, "the last release described " + where})}};
}

}  // namespace

Meant meant_engine(const Catalog& catalog, const std::string& text) {
  if (names_a_file(text)) return {text, {}};
  const std::size_t end = std::min(text.find_first_of("@+"), text.size());
  const std::string word = text.substr(0, end);
  const std::vector<std::string> files = names_in(catalog, "engines");
  std::vector<std::string> names;
  for (const std::string& file : files) {
    std::string name = file.substr(0, file.find('@'));
    if (names.empty() || names.back() != name) names.push_back(std::move(name));
  }
  if (std::ranges::find(names, word) != names.end()) return meant_version(files, text);
  const MeantName meant = meant_name(*shared_words(catalog, "engines"), names, word);
  if (meant.name.empty()) return {text, {}};
  Meant result = meant_version(files, meant.name + text.substr(end));
  if (!meant.note.empty()) result.notes.push_back(note_of("--engine", word, meant));
  return result;
}

Meant meant_precision(const Catalog& catalog, const std::string& text) {
  Meant meant;
  for (const std::string& item : split_words(text, ',')) {
    if (!meant.text.empty()) meant.text += ',';
    if (item.find('=') != std::string::npos) {
      meant.text += lower_case(item);
      continue;
    }
    Meant name = meant_in(catalog, "precisions", "precisions", "--precision", item);
    meant.text += name.text;
    for (std::string& note : name.notes) meant.notes.push_back(std::move(note));
  }
  return std::ranges::count(meant.text, ',') == std::ranges::count(text, ',') ? meant
                                                                              : Meant{text, {}};
}

Meant meant_optimizer(const Catalog& catalog, const std::string& text) {
  return meant_in(catalog, "optimizers", "optimizers", "--optimizer", text);
}

Meant meant_recompute(const Catalog& catalog, const std::string& text) {
  const std::vector<std::string> names = {"none", "full", "selective"};
  const MeantName meant = meant_name(*shared_words(catalog, "recompute"), names, text);
  if (meant.name.empty()) return {text, {}};
  Meant result{meant.name, {}};
  if (!meant.note.empty()) result.notes.push_back(note_of("--recompute", text, meant));
  return result;
}

JobRequest meant_words(const Catalog& catalog, JobRequest request,
                       std::vector<std::string>& notes) {
  const auto take = [&](std::optional<std::string>& word, auto meaning) {
    if (!word) return;
    Meant meant = meaning(catalog, *word);
    word = std::move(meant.text);
    for (std::string& note : meant.notes) notes.push_back(std::move(note));
  };
  take(request.model, &meant_model);
  take(request.cluster, &meant_cluster);
  take(request.engine, &meant_engine);
  take(request.precision, &meant_precision);
  take(request.optimizer, &meant_optimizer);
  take(request.recompute, &meant_recompute);
  return request;
}

std::optional<std::int64_t> tokens_in(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const char last = text.back();
  const bool kilo = last == 'k' || last == 'K';
  const bool mega = last == 'm' || last == 'M';
  if (!kilo && !mega) return number_in<std::int64_t>(text);
  text.remove_suffix(1);
  if (text.empty() || text.back() < '0' || text.back() > '9') return std::nullopt;
  const auto count = number_in<std::int64_t>(text);
  constexpr std::int64_t kKilo = 1024;
  const std::int64_t unit = kilo ? kKilo : kKilo * kKilo;
  if (!count || *count < 0 || *count > INT64_MAX / unit) return std::nullopt;
  return *count * unit;
}

}  // namespace placet

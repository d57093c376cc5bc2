#include "architecture/includes.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <regex>

namespace placet::architecture {
namespace {

bool contains(const std::vector<std::string_view>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

const Folder* find_folder(std::string_view name) {
  const auto& all = folders();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Folder& f) { return f.name == name; });
  return found == all.end() ? nullptr : &*found;
}

// Third-party headers are told from standard ones by their beginnings.
std::optional<std::string_view> library_of(std::string_view header) {
  static constexpr std::array<std::string_view, 15> kBeginnings = {
      "nlohmann/", "rapidjson/", "toml",   "CLI/",       "fmt/",  "torch/", "ATen/", "c10/",
      "mpi",       "gtest/",     "gmock/", "benchmark/", "csv.h", "tbb/",   "yaml.h"};
  for (const std::string_view beginning : kBeginnings) {
    if (header.starts_with(beginning)) return beginning;
  }
  return std::nullopt;
}

// Clocks, files and the console belong to the world outside the theory.
bool reaches_the_world(std::string_view header) {
  static const std::vector<std::string_view> kWorld = {"chrono",     "ctime",    "fstream",
                                                       "filesystem", "iostream", "cstdio"};
  return contains(kWorld, header);
}

bool is_pure(const Folder& folder) {
  static const std::vector<std::string_view> kWorldly = {
      "execute", "catalog", "checkpoint", "interop", "report", "call", "serve", "cli"};
  return !contains(kWorldly, folder.name);
}

bool is_torch(std::string_view library) {
  return library == "torch/" || library == "ATen/" || library == "c10/";
}

// Parsing torch costs half a minute per file, so that only these files pay for it.
bool may_include_torch(const SourceFile& file) {
  return file.path.starts_with("src/execute/torch_") && file.path.ends_with(".cc");
}

std::string judge_project_header(const SourceFile& file, const Folder& folder,
                                 const std::string& header) {
  const std::string target = header.substr(0, header.find('/'));
  if (target != file.folder && find_folder(target) != nullptr && !contains(folder.knows, target)) {
    return file.folder + " may not include " + header;
  }
  if (!std::filesystem::exists(std::string(PLACET_SOURCE_DIR "/src/") + header)) {
    return "there is no src/" + header + " (includes start at the src/ root)";
  }
  return "";
}

std::string judge_system_header(const SourceFile& file, const Folder& folder,
                                const std::string& header) {
  const auto library = library_of(header);
  if (!library) {
    return is_pure(folder) && reaches_the_world(header)
               ? "<" + header + "> reaches outside, which " + file.folder + " must not"
               : "";
  }
  if (!contains(folder.libraries, *library)) {
    return file.folder + " may not include <" + header + ">";
  }
  if (is_torch(*library) && !may_include_torch(file)) {
    return "<" + header + "> belongs in src/execute/torch_*.cc";
  }
  return "";
}

}  // namespace

const std::vector<Folder>& folders() {
  static const std::vector<Folder> kFolders = {
      {"units", {}, {}},
      {"model", {"units"}, {}},
      {"cluster", {"units"}, {}},
      {"placement", {"units", "model", "cluster"}, {}},
      {"schedule", {"units"}, {}},
      // The job value lives there (profile/job.h), with the cluster and the schedule it is made of.
      {"profile", {"units", "model", "cluster", "placement", "schedule"}, {}},
      // What a step does: one value for all that derive from it and for the step program.
      {"layout", {"units", "model", "cluster", "placement", "schedule", "profile"}, {}},
      {"derive", {"units", "model", "cluster", "placement", "schedule", "profile", "layout"}, {}},
      {"program", {"units", "model", "cluster"}, {}},
      {"lower",
       {"units", "model", "cluster", "placement", "schedule", "profile", "layout", "program"},
       {}},
      // check and algebra judge a step program on their own: strangers to whatever made it, and to
      // each other.
      {"check", {"units", "model", "cluster", "program"}, {}},
      {"ranks", {"units", "model", "cluster", "program"}, {}},
      {"algebra", {"units", "model", "cluster", "program", "ranks"}, {}},
      // Plays as events the same pieces that derive folds into a closed form.
      {"simulate", {"units", "model", "cluster", "placement", "schedule", "profile", "derive"}, {}},
      // With the value types that what it calls takes and gives.
      {"search",
       {"placement", "derive", "lower", "check", "simulate", "units", "model", "cluster",
        "schedule", "profile", "layout", "program"},
       {"tbb/"}},
      {"execute",
       {"units", "model", "cluster", "program", "ranks"},
       {"torch/", "ATen/", "c10/", "mpi"}},
      {"catalog",
       {"units", "model", "cluster", "placement", "schedule", "profile"},
       {"nlohmann/", "rapidjson/", "toml", "fmt/", "csv.h"}},
      // Files of what all ranks hold between steps; catalog for its strict reader.
      {"checkpoint",
       {"units", "model", "cluster", "program", "ranks", "execute", "catalog"},
       {"nlohmann/", "fmt/"}},
      {"interop",
       {"units", "model", "cluster", "placement", "schedule", "profile", "catalog"},
       {"nlohmann/", "fmt/", "yaml.h"}},
      {"validate",
       {"units", "model", "cluster", "placement", "schedule", "profile", "derive", "catalog"},
       {}},
      {"report",
       {"units", "model", "cluster", "placement", "schedule", "profile", "derive", "program",
        "check", "ranks", "algebra", "simulate", "search", "execute", "validate"},
       {"nlohmann/", "fmt/"}},
      // What each subcommand answers, as one function from a request to a value: what the command
      // line, the Python package and others stand on.
      {"call",
       {"units",   "model",   "cluster",    "placement", "schedule", "profile",  "derive",
        "program", "lower",   "check",      "ranks",     "algebra",  "simulate", "search",
        "execute", "catalog", "checkpoint", "interop",   "validate", "report"},
       {"nlohmann/", "fmt/"}},
      {"serve",
       {"units",   "model",   "cluster",    "placement", "schedule", "profile",  "derive",
        "program", "lower",   "check",      "ranks",     "algebra",  "simulate", "search",
        "execute", "catalog", "checkpoint", "interop",   "validate", "report",   "call"},
       {"nlohmann/", "fmt/", "httplib"}},
      {"cli",
       {"units",    "model",   "cluster", "placement", "schedule",   "profile",
        "derive",   "program", "lower",   "check",     "ranks",      "algebra",
        "simulate", "search",  "execute", "catalog",   "checkpoint", "interop",
        "validate", "report",  "call",    "serve"},
       {"CLI/", "nlohmann/", "fmt/"}},
  };
  return kFolders;
}

std::vector<std::string> wrong_includes(const SourceFile& file) {
  static const std::regex kInclude(R"(^\s*#\s*include\s*(["<])([^">]+)[">].*)");
  const Folder* folder = find_folder(file.folder);
  if (folder == nullptr) return {file.path + ": no folder '" + file.folder + "' in the table"};
  std::vector<std::string> wrong;
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    std::smatch match;
    if (!std::regex_match(file.lines[i], match, kInclude)) continue;
    const std::string problem = match[1] == "\"" ? judge_project_header(file, *folder, match[2])
                                                 : judge_system_header(file, *folder, match[2]);
    if (!problem.empty()) wrong.push_back(file.path + ":" + std::to_string(i + 1) + ": " + problem);
  }
  return wrong;
}

}  // namespace placet::architecture

#include "catalog/bug_catalog.h"

#include <algorithm>
#include <array>
#include <sstream>

#include "catalog/cluster_parts.h"
#include "catalog/job_words.h"
#include "catalog/reader.h"

namespace placet {
namespace {

constexpr std::string_view kFolder = "bugs";

std::vector<std::string> read_list(const Reader& reader) {
  std::vector<std::string> texts;
  for (const Reader& item : reader.items()) texts.push_back(item.text());
  if (texts.empty()) reader.fail("is empty", "a list of texts");
  return texts;
}

void read_case(const std::filesystem::path& file, const Reader& reader, Bug& bug) {
  static const std::vector<std::string> kConditions = {
      "gradient_integrity", "state_consistency", "update_integrity", "input_integrity", "order"};
  const auto job = reader.find("job");
  if (job) {
    bug.job = read_job_words(*job);
  } else {
    const std::string name = reader.at("program").text();
    bug.program = file.parent_path() / "programs" / (name + ".program");
    std::error_code error;
    if (!std::filesystem::is_regular_file(bug.program, error)) {
      reader.at("program").fail("is not known", "a file in data/bugs/programs");
    }
  }
  bug.faults = read_list(reader.at("faults"));
  bug.faults_mean = reader.at("faults_mean").text();
  bug.condition = kConditions[reader.at("condition").one_of(kConditions)];
  bug.finding = read_list(reader.at("finding"));
}

/// A word as a shell takes it.
std::string quoted(const std::string& word) {
  const bool plain = word.find_first_of(" ;()*\"'[]<>&|$") == std::string::npos;
  return plain ? word : "\"" + word + "\"";
}

std::string flags_of(const JobRequest& job) {
  std::string text = job.model.value_or("");
  const auto add = [&](const char* flag, const auto& value) {
    if (!value) return;
    std::ostringstream word;
    word << *value;
    text += " --" + std::string(flag) + " " + quoted(word.str());
  };
  add("placement", job.placement);
  add("cluster", job.cluster);
  add("seq", job.sequence);
  add("global-batch", job.global_batch);
  add("micro-batch", job.micro_batch);
  add("recompute", job.recompute);
  add("precision", job.precision);
  add("optimizer", job.optimizer);
  add("clip", job.clip);
  return text;
}

}  // namespace

Bug load_bug(const Catalog& catalog, const std::string& name) {
  std::string capitals = name;
  std::ranges::transform(capitals, capitals.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  const auto path = file_of(catalog, kFolder, "bug", capitals, "BUG");
  const Document document = open_document(path);
  const Reader reader(document);
  reader.allow({"schema", "name", "title", "system", "thread", "source", "kind", "axes", "state",
                "story", "job", "program", "faults", "faults_mean", "condition", "finding",
                "not_visible"});
  check_sheet(reader, "placet.bug/1", capitals);
  Bug bug{.name = capitals,
          .title = reader.at("title").text(),
          .system = reader.at("system").text(),
          .thread = reader.at("thread").text(),
          .source = reader.at("source").text(),
          .kind = reader.at("kind").text(),
          .axes = reader.at("axes").text(),
          .state = reader.at("state").text(),
          .story = reader.at("story").text()};
  if (const auto why = reader.find("not_visible")) {
    bug.not_visible = why->text();
  } else {
    read_case(path, reader, bug);
  }
  return bug;
}

std::string call_of(const Bug& bug) {
  std::string text = "placet check ";
  text += bug.job ? flags_of(*bug.job) : "data/bugs/programs/" + bug.program.filename().string();
  for (const std::string& fault : bug.faults) text += " --fault " + quoted(fault);
  return text;
}

}  // namespace placet

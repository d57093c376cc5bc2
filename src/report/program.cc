#include "report/program.h"

#include <map>

#include "report/html_parts.h"
#include "report/json_parts.h"

namespace placet {
namespace {

using Counts = std::map<std::string, std::int64_t>;

void count_in(const std::vector<Step>& body, Counts& counts) {
  for (const Step& step : body) {
    const auto* instruction = std::get_if<Instruction>(&step.what);
    if (instruction != nullptr) ++counts[std::string(name_of(instruction->kind))];
    if (const auto* loop = std::get_if<Loop>(&step.what)) count_in(loop->body, counts);
  }
}

/// Instructions as they are written down, each once however often it is executed.
Counts count_written(const Program& program) {
  Counts counts;
  for (const Procedure& procedure : program.procedures) count_in(procedure.body, counts);
  for (const DeviceClass& devices : program.classes) count_in(devices.body, counts);
  return counts;
}

}  // namespace

std::string program_json(const Program& program, const std::string& text) {
  Json out;
  out["schema"] = "placet.program/1";
  out["axes"] = Json::array();
  for (const ProgramAxis& axis : program.axes) {
    out["axes"].push_back({{"axis", axis.name}, {"degree", axis.degree}});
  }
  out["classes"] = Json::array();
  for (const DeviceClass& devices : program.classes) out["classes"].push_back(devices.name);
  out["instructions"] = Json::object();
  for (const auto& [kind, count] : count_written(program)) out["instructions"][kind] = count;
  out["text"] = text;
  return print_json(out);
}

std::string program_html(const std::string& title, const Program& program,
                         const std::string& text) {
  std::vector<std::vector<std::string>> axes;
  axes.reserve(program.axes.size());
  for (const ProgramAxis& axis : program.axes) {
    axes.push_back({escaped(axis.name), std::to_string(axis.degree)});
  }
  std::vector<std::vector<std::string>> kinds;
  for (const auto& [kind, count] : count_written(program)) {
    kinds.push_back({escaped(kind), std::to_string(count)});
  }
  return page(title, "<h1>" + escaped(title) + "</h1>\n" +
                         section("Axes", html_table({{"axis"}, {"degree", true}}, axes)) +
                         section("Instructions, as written",
                                 html_table({{"kind"}, {"number", true}}, kinds)) +
                         section("Step program",
                                 "<div class=\"scroll\"><pre>" + escaped(text) + "</pre></div>\n"));
}

std::string faults_text(const std::vector<ListedFault>& faults) {
  std::string text;
  for (const ListedFault& fault : faults) {
    text += fault.text + "\n";
    for (std::size_t k = 0; k < fault.matches.size(); ++k) {
      const FaultMatch& match = fault.matches[k];
      text += "  " + std::to_string(k + 1) + "  " + match.body + ": " + match.instruction + "\n";
    }
  }
  return text;
}

std::string faults_json(const std::vector<ListedFault>& faults) {
  Json out;
  out["schema"] = "placet.faults/1";
  out["faults"] = Json::array();
  for (const ListedFault& fault : faults) {
    Json matches = Json::array();
    for (const FaultMatch& match : fault.matches) {
      matches.push_back({{"body", match.body}, {"instruction", match.instruction}});
    }
    out["faults"].push_back({{"fault", fault.text}, {"matches", std::move(matches)}});
  }
  return print_json(out);
}

}  // namespace placet

#include "report/reshard.h"

#include <fmt/format.h>

#include "report/human.h"
#include "report/json_parts.h"

namespace placet {
namespace {

std::string side(const std::string& placement, int ranks) {
  const std::string size = fmt::format("{} rank{}", ranks, ranks == 1 ? "" : "s");
  return placement.empty() ? size : placement + ", " + size;
}

}  // namespace

std::string reshard_text(const ReshardSheet& sheet, const TextStyle& style) {
  std::string text = inked(style, Ink::green, "Resharded") +
                     fmt::format(": the state after {} step{}, to the bit\n", sheet.steps,
                                 sheet.steps == 1 ? "" : "s");
  text += "  from               " + side(sheet.from, sheet.from_ranks) + "\n";
  text += "  to                 " + side(sheet.to, sheet.ranks) + "\n";
  if (!sheet.run_as.empty()) text += "  run as             " + sheet.run_as + "\n";
  text += fmt::format("  written            {} ({} bytes of tensors)\n", sheet.output, sheet.bytes);
  return text;
}

std::string reshard_json(const ReshardSheet& sheet) {
  const Json out{{"schema", "placet.reshard/1"},
                 {"from", {{"placement", sheet.from}, {"ranks", sheet.from_ranks}}},
                 {"to", {{"placement", sheet.to}, {"ranks", sheet.ranks}}},
                 {"run_as", sheet.run_as},
                 {"steps", sheet.steps},
                 {"bytes", sheet.bytes},
                 {"output", sheet.output}};
  return print_json(out);
}

}  // namespace placet

// Texts that a launch script writes into files: "cat > a.yaml <<EOF". No shell is asked.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace placet {

/// What a line says of the text that begins below it.
struct OpenedDocument {
  std::string file;            // the word behind '>', which may hold variables
  std::string end;             // the line behind the text
  bool has_variables = false;  // "<<EOF" replaces them in the text, "<<'EOF'" leaves them
  bool drops_tabs = false;     // "<<-EOF": tabs in front of lines, of the last one too
  bool is_of_shell = false;    // what a shell reads: commands of the script too
  bool is_of_other = false;    // what another program reads
};

/// The text that a line begins; none: it begins none.
std::optional<OpenedDocument> document_opened_by(const std::string& line);

/// How many lines a text has that begins behind the line `opener`; none: nothing ends it.
std::optional<std::size_t> lines_of_document(const OpenedDocument& opened,
                                             const std::vector<std::string>& lines,
                                             std::size_t opener);

/// A line of the text, without the tabs that it drops.
std::string line_of_document(const OpenedDocument& opened, const std::string& line);

/// Whether a file holds settings, by its name's ending.
bool is_configuration_name(const std::string& name);

}  // namespace placet

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
  enum class Goes { into_file, to_shell, to_program } goes = Goes::into_file;
};

/// The text that a line begins, and where it goes: into a file, to what may read it as commands of
/// a shell, or to a program that does not. None: the line begins no text.
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

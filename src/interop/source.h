// The settings that a configuration file or a launch script holds, one by one, each with its place
// (docs/formats.md, section 16). Nothing in a source is ever executed.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace placet {

/// A branch of a launch script, and the block of branches that exclude each other: "if", "case", a
/// test in front of a command.
struct BranchPlace {
  std::size_t block = 0;   // of Source::blocks
  std::size_t branch = 0;  // in it

  friend bool operator==(const BranchPlace&, const BranchPlace&) = default;
};
inline constexpr std::size_t kNoBranch = static_cast<std::size_t>(-1);

/// The branches of a block that may be taken, as far as conditions are of plain values.
struct BranchBlock {
  std::vector<std::size_t> branches;
  bool has_last = false;  // one that is taken where no other is
};

/// One setting. Keys of nested objects are joined by dots ("training.seq_len"), objects in lists
/// are numbered ("stages[0].name"), lists of plain values are one value ("[1, 2]").
struct Setting {
  std::string path;   // "training.seq_len", "--seq-length", "WORLD_SIZE"
  std::string value;  // as text; "true" for a flag that takes none
  std::size_t line = 0;
  // Of an option, its words as a shell parts them, where quotes keep one of them together that
  // holds blanks or a variable; empty: blanks part the value.
  std::vector<std::string> words = {};
  // "NAME=VALUE" behind a script and what it reads, not a variable: the script is told it.
  bool is_told = false;
  std::string from = {};         // the file that says it, where another source's settings hold it
  bool is_of_container = false;  // an option of what starts a container, which the script runs in
  std::string unused_list = {};  // the variable that holds it, and that no command gets
  std::size_t ended_at = 0;      // the line that ends the command which seems to get it
  std::size_t command = 0;       // of an option, the line where its command begins; 0: of none
  std::size_t read_command = 0;  // the one that is read, where this one's is not
  // Of a launch script, the branches around it that may be taken or not, outermost first.
  std::vector<BranchPlace> branches = {};

  friend bool operator==(const Setting&, const Setting&) = default;
};

/// How a source is written.
enum class SourceForm { toml, yaml, json, arguments };

/// A configuration that a launch script writes before it is used.
struct ScriptFile {
  std::string name;  // as the script says it
  std::string text;
  bool is_certain = true;  // written once, in no branch that may be passed over
};

/// A file as it was read.
struct Source {
  std::string file;
  SourceForm form = SourceForm::toml;
  std::vector<Setting> settings;
  std::vector<Setting> idle = {};        // of a launch script: what no command gets
  std::vector<BranchBlock> blocks = {};  // of a launch script
  std::set<std::string> commands = {};   // of a launch script: programs and scripts that it calls
  /// Of a launch script, the files that programs are called with: the path is the program behind a
  /// '$' ("$run.py", "$tool train"), as its marks are written, each in every spelling.
  std::vector<Setting> operands = {};
  std::vector<ScriptFile> written = {};  // of a launch script
  std::vector<std::string> comments;     // by line, from line 1; what follows a '#'
};

/// "toml", "yaml", "json" or "arguments".
std::string name_of(SourceForm form);

/// The settings of a file: TOML, YAML and JSON (with what HJSON allows) by its ending, arguments of
/// a launch script otherwise. Throws InputError with file and line for what is malformed, larger
/// than 4 MiB (TOML: as job files), nested more than 64 deep, or longer than 100,000 settings, and
/// for long keys and aliases that stand for too much.
Source read_source(const std::filesystem::path& path);

/// The text of a file, and how it is written. Throws InputError where it is no such file.
struct ConfigurationText {
  std::string text;
  SourceForm form = SourceForm::toml;
};
ConfigurationText read_source_text(const std::filesystem::path& path);

/// Texts that are at hand, by the names that they go by: for callers that have no files. Names end
/// as files do; where one has no ending, its text says how it is written.
using SourceTexts = std::map<std::string, std::string>;

/// The text of this name, or else of the file. Throws InputError as for files.
ConfigurationText source_text_of(const SourceTexts& texts, const std::string& name);
Source source_of(const SourceTexts& texts, const std::string& name);

/// The same for text that is at hand.
Source parse_source(const std::string& text, SourceForm form, const std::string& file);

}  // namespace placet

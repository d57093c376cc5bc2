#include "program/samples.h"

#include <fstream>
#include <iterator>
#include <stdexcept>

#include "program/text.h"
#include "program/wellformed.h"
#include "units/error.h"

namespace placet {

std::string sample_text(const std::string& name) {
  std::ifstream in(PLACET_SOURCE_DIR "/tests/fuzz_corpus/program_text/" + name + ".txt",
                   std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Program sample_program(const std::string& name) { return program_from(sample_text(name), name); }

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw std::logic_error("the sample has no '" + from + "'");
  return text.replace(at, from.size(), to);
}

std::string refusal_of(const std::string& text) {
  try {
    program_from(text, "text");
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

std::string refusal_of(const Program& program) {
  try {
    require_wellformed(program, {.where = "program"});
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

}  // namespace placet

// Configurations of engines in one form, as far as a ledger, a job and findings go.
#include "source_target.h"

namespace placet::fuzz {

std::string_view target_name() { return "source_yaml"; }

void read_one(std::string_view text) { read_configuration(text, SourceForm::yaml); }

}  // namespace placet::fuzz

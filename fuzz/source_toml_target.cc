// Configurations of engines in one form, as far as a ledger, a job and findings go.
#include "source_target.h"

namespace placet::fuzz {

std::string_view target_name() { return "source_toml"; }

void read_one(std::string_view text) { read_configuration(text, SourceForm::toml); }

}  // namespace placet::fuzz

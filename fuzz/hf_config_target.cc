// Configuration files of published models, and the model that is built from what they say.
#include "catalog/hf_config.h"
#include "model/build.h"
#include "target.h"

namespace placet::fuzz {

std::string_view target_name() { return "hf_config"; }

void read_one(std::string_view text) {
  const Model model = build_model(parse_hf_config(text, "config.json"));
  ensure(count_parameters(model).total > 0, "a model has parameters");
}

}  // namespace placet::fuzz

// One entry for all faces: a request document in, the answer's document out (docs/formats.md). A
// request holds the name of a subcommand and its flags, named as on the command line:
//   {"subcommand": "derive", "model": "gpt2", "placement": "dp=8:zero3"}
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "call/plans.h"
#include "catalog/catalog.h"

namespace placet {

/// What a call came to.
struct Answer {
  int status = 0;        // 0 judged good, 1 judged bad, 2 wrong input: the program's exit status
  std::string document;  // what the program prints with --json; of wrong input: the fault
  std::vector<std::string> warnings;
};

/// The subcommands that call() knows, in the order of the program's help.
std::vector<std::string> callable();

/// Answers a request. What is wrong with it is answered, too: {"error": {"message", "where",
/// "value", "problem", "allowed", "nearest"}}. `watch` is for plan alone. Other exceptions (no
/// memory left, a bug of ours) are thrown.
Answer call(const Catalog& catalog, std::string_view request, const PlanWatch& watch = {});

}  // namespace placet

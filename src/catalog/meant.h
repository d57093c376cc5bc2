// The words of a job as the catalogue spells them. People write "8xH100", "fsdp=8", "hf" and
// "meta-llama/Llama-3.1-8B"; what follows reads canonical words only, and so does what is printed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/catalog.h"
#include "catalog/job.h"
#include "placement/strategy.h"

namespace placet {

/// Words as they are meant, and what is to be said of them: "MODEL: 'Llama-3.1-8B-Instruct' is
/// taken as llama-3.1-8b (...)". A word that stands for nothing known is left as it is, for
/// its reader to
/// refuse.
struct Meant {
  std::string text;
  std::vector<std::string> notes;

  friend bool operator==(const Meant&, const Meant&) = default;
};

/// MODEL: a name in other letters, with an owner in front ("meta-llama/") unless there is such a
/// file, with endings that say nothing of shapes ("-Instruct"), or one of data/words/models.json.
/// Throws InputError for an owner and a name where there is neither such a file nor such a model.
Meant meant_model(const Catalog& catalog, const std::string& word);

/// --cluster: each part's device or cluster by its names (data/words/devices.json, clusters.json),
/// its size also as "8x H100", "h100x8", "8 h100" or "2x8xh100" (2 hosts of 8).
Meant meant_cluster(const Catalog& catalog, const std::string& text);

/// --engine: the name in front of '@' and '+', by data/words/engines.json; a version of numbers
/// that is not in the catalogue is the last one there before it that begins with the same number
/// ("deepspeed@0.18.9" is 0.14), or the last of its own ("deepspeed@0.19" is 0.19.3).
Meant meant_engine(const Catalog& catalog, const std::string& text);

/// --precision, --optimizer: by data/words/precisions.json and optimizers.json.
Meant meant_precision(const Catalog& catalog, const std::string& text);
Meant meant_optimizer(const Catalog& catalog, const std::string& text);

/// --recompute: by data/words/recompute.json.
Meant meant_recompute(const Catalog& catalog, const std::string& text);

/// --placement: commas between axes, capitals, other names of strategies
/// (data/words/strategies.json), and axes without how whose name says it:
///   FSDP=8            fsdp=8:fsdp
///   dp=2,TP=8 PP=2    dp=2:ddp tp=8:tp pp=2:1f1b       (data/words/axes.json)
/// Throws InputError for an axis among such ones whose name does not say it.
Meant meant_placement(const Catalog& catalog, const Vocabulary& vocabulary,
                      const std::string& text);

/// The request with these words as they are meant, but for its placement; notes are added.
JobRequest meant_words(const Catalog& catalog, JobRequest request, std::vector<std::string>& notes);

/// A count of tokens: "4096", or with k or M of 1024 and 1024²: "4k" is 4096, "128K" is 131072,
/// "1M" 1048576. None: it is no such count.
std::optional<std::int64_t> tokens_in(std::string_view text);

}  // namespace placet

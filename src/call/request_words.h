// The words of a request document: flags by their names, with texts, numbers or lists as values.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "call/job_flags.h"
#include "call/plans.h"
#include "call/programs.h"
#include "call/runs.h"
#include "catalog/reader.h"

namespace placet {

/// A text, or a number as its digits: what would stand on the command line. Throws InputError.
std::string word_in(const Reader& value);

/// One such word, or a list of them; none where the key is absent.
std::vector<std::string> words_in(const Reader& request, std::string_view key);

/// Configurations of engines: names of files, or objects with a name and the text itself, as in
/// {"file": "train.toml", "text": "..."}, alone or in a list. Their names; `texts` gets the texts.
std::vector<std::string> sources_in(const Reader& request, std::string_view key,
                                    SourceTexts& texts);

/// What import and lint are asked. Keys of other flags are not looked at.
SourceWords source_words_in(const Reader& request);
/// Throws InputError for a key that is none of theirs and not among `others`.
void allow_source_flags(const Reader& request, const std::vector<std::string_view>& others);

/// The words of a job. Keys of other flags are not looked at.
JobFlags job_flags_in(const Reader& request);

/// The words of a job by their keys, as far as they were said.
using JobWords = std::vector<std::pair<std::string, std::vector<std::string>>>;
JobWords job_words_of(const JobFlags& flags);
/// The flags, with these words where they say nothing. Throws InputError that names `where` for a
/// key that is of no job.
JobFlags filled(JobFlags flags, const JobWords& words, const std::string& where);

/// Beside those of a job, the flags of plan; of check and verify; of run.
PlanRequest plan_request_in(const Reader& request);
ProgramRequest program_request_in(const Reader& request);
RunRequest run_request_in(const Reader& request);

/// Throws InputError for a key that is neither of a job nor among `others`.
void allow_flags(const Reader& request, const std::vector<std::string_view>& others);

}  // namespace placet

// Checkpoints of runs: saved, gone on from, and made those of other placements.
#pragma once

#include <string>

#include "call/runs.h"
#include "report/reshard.h"

namespace placet {

/// Opens the checkpoint that the request goes on from, if any, and adds the words of its job that
/// the request does not say itself. Throws InputError.
void open_checkpoint(RunRequest& request);

/// The mode of the run: what is asked, that of the checkpoint, canonical. Throws InputError where
/// the first two differ.
std::string mode_of(const RunRequest& request);
/// The words of meanings, those of the checkpoint, then those that are asked; and the text that is
/// trained on: what is asked, else that of the checkpoint, else none.
struct MeaningWords {
  std::vector<std::string> words;
  std::shared_ptr<const Corpus> corpus;
};
/// Throws InputError for texts as `corpus_of_file` and `taken_corpus` do.
MeaningWords meaning_words_of(const RunRequest& request);
/// Throws InputError where what is to be saved has no place.
void require_place(const RunRequest& request);
/// What the run begins with, and where its state goes. Throws InputError where the checkpoint is of
/// another mesh than the program. The request and the program must outlive the options.
void resume_and_save(const RunRequest& request, const Program& program, RunOptions& options);

struct ReshardRequest {
  std::string from;    // folder of a checkpoint
  ProgramRequest job;  // its placement, and words that differ from those of the checkpoint
  std::string output;  // folder
};
struct ReshardedRun {
  AskedProgram asked;
  ReshardSheet sheet;
};
/// Writes the checkpoint as that of another placement. Throws InputError.
ReshardedRun resharded(const Catalog& catalog, const ReshardRequest& request);

}  // namespace placet

// The words of a job, for a dialect to be written in.
#include <algorithm>

#include "interop/export_parts.h"
#include "units/checked.h"

namespace placet {
namespace {

void put_count(Words& words, const char* word, std::int64_t count) {
  if (count > 0) words[word] = std::to_string(count);
}

// "interleaved(2)+x" gives its first term, "interleaved", and what is in its parentheses, "2".
void put_terms(const std::string& name, const std::string& terms, Words& words) {
  const std::string first = terms.substr(0, terms.find_first_of("+;("));
  words[name + "-terms"] = terms;
  words[name + "-first"] = first;
  if (first.size() == terms.size() || terms[first.size()] != '(') return;
  const std::size_t begin = first.size() + 1;
  words[name + "-argument"] = terms.substr(begin, terms.find(')', begin) - begin);
}

// The canonical text: "dp=8:zero1 tp=4:tp+sp".
void put_axes(const std::string& placement, Words& words) {
  for (std::size_t at = 0; at < placement.size();) {
    const std::size_t end = std::min(placement.find(' ', at), placement.size());
    const std::string axis = placement.substr(at, end - at);
    at = end + 1;
    const std::size_t equals = axis.find('=');
    const std::size_t colon = axis.find(':');
    if (equals == std::string::npos || colon == std::string::npos || equals > colon) continue;
    const std::string name = axis.substr(0, equals);
    words[name] = axis.substr(equals + 1, colon - equals - 1);
    put_terms(name, axis.substr(colon + 1), words);
  }
}

void put_batch(const Job& job, Words& words) {
  std::int64_t world = 1, sample_devices = 1;
  for (const AxisPlacement& axis : job.placement.axes) {
    world = checked_multiply(world, axis.degree, "devices");
    if (axis.how.cut == Cut::batch) sample_devices *= axis.degree;
  }
  const std::int64_t at_once = checked_multiply(job.batch.micro, sample_devices, "samples");
  const std::int64_t global = job.batch.global == 0 ? at_once : job.batch.global;
  put_count(words, "world-size", world);
  put_count(words, "sample-devices", sample_devices);
  put_count(words, "global-batch", global);
  put_count(words, "micro-batch", job.batch.micro);
  if (global % at_once == 0) put_count(words, "micro-batches", global / at_once);
  const std::int64_t per_host =
      job.cluster && !job.cluster->groups.empty() ? job.cluster->groups.front().per_host : 8;
  const std::int64_t per_node = world % per_host == 0 ? per_host : world;
  put_count(words, "per-node", per_node);
  put_count(words, "nodes", world / per_node);
}

// The width of MLPs of a class: the narrowest, where two matrices are stored as one.
std::int64_t width_of(const Model& model, TensorClass which) {
  std::int64_t width = 0;
  const auto take = [&](const Dim& dim) {
    if (dim.index == Index::ffn && (width == 0 || dim.size < width)) width = dim.size;
  };
  for (const UnitKind& kind : model.kinds) {
    for (const Parameter& parameter : kind.parameters) {
      if (!contains(parameter.classes, which)) continue;
      std::for_each(parameter.dims.begin(), parameter.dims.end(), take);
    }
  }
  return width;
}

}  // namespace

Words words_of_job(const Job& job, const std::string& model) {
  Words words;
  put_axes(job.placement_text, words);
  put_batch(job, words);
  const ModelFigures& figures = job.model.figures;
  words["model"] = model;
  words["engine"] = job.engine_text;
  words["precision"] = job.precision.name;
  words["optimizer"] = job.optimizer.name;
  words["recompute"] = recompute_words(job.recompute);
  put_count(words, "recompute-count", job.recompute.count);
  words["clip"] = job.clips_by_global_norm ? "1.0" : "0.0";
  put_count(words, "seq", job.batch.sequence);
  put_count(words, "layers", figures.blocks);
  put_count(words, "hidden", figures.hidden);
  put_count(words, "heads", figures.heads);
  put_count(words, "kv-heads", figures.kv_heads);
  put_count(words, "vocabulary", figures.vocabulary);
  put_count(words, "experts", figures.experts);
  put_count(words, "experts-per-token", figures.experts_per_token);
  put_count(words, "ffn", width_of(job.model, TensorClass::ffn));
  put_count(words, "expert-ffn", width_of(job.model, TensorClass::experts));
  return words;
}

}  // namespace placet

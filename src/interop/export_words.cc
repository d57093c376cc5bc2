// The words of a job, for a dialect to be written in.
#include <algorithm>
#include <map>
#include <set>

#include "interop/export_parts.h"
#include "units/checked.h"
#include "units/error.h"

namespace placet {
namespace {

void put_count(Words& words, const char* word, std::int64_t count) {
  if (count > 0) words[word] = std::to_string(count);
}

// What an axis is to experts where it cuts them, or else to dense tensors.
Cut cut_of(const AxisPlacement& axis) {
  const bool cuts_experts = std::ranges::any_of(
      axis.overrides, [](const Override& own) { return own.how.cut == Cut::expert; });
  return axis.how.cut == Cut::batch && cuts_experts ? Cut::expert : axis.how.cut;
}

std::string name_of_cut(const AxisPlacement& axis, bool holds_replicas) {
  switch (cut_of(axis)) {
    case Cut::batch:
      return holds_replicas ? "rep" : "dp";
    case Cut::tensor:
      return "tp";
    case Cut::sequence:
      return "cp";
    case Cut::layer:
      return "pp";
    case Cut::expert:
      return "ep";
  }
  fail_internally("every cut has a name of an axis");
}

// The name that dialects know an axis by, whatever its own: that of what it cuts. Of two axes that
// cut samples the outer one holds replicas. A further axis with the same cut keeps its own name.
std::map<std::string, std::string> known_names(const Placement& placement) {
  std::map<std::string, std::string> names;
  std::set<std::string> taken;
  const auto batch_axes = std::ranges::count_if(
      placement.axes, [](const AxisPlacement& axis) { return cut_of(axis) == Cut::batch; });
  for (const AxisPlacement& axis : placement.axes) {
    std::string name = name_of_cut(axis, batch_axes == 2 && !taken.contains("rep"));
    if ((name == "dp" && batch_axes > 2) || !taken.insert(name).second) name = axis.axis.text();
    names[std::string(axis.axis.text())] = name;
  }
  return names;
}

// Shares that are equal between the first and the last: how many these have.
void put_shares(const Placement& placement, const std::map<std::string, std::string>& names,
                Words& words) {
  for (const AxisPlacement& axis : placement.axes) {
    const std::vector<std::int64_t>& shares = axis.shares;
    if (shares.size() < 2) continue;
    const std::string& name = names.at(std::string(axis.axis.text()));
    words[name + "-shares"] = "true";
    std::string& list = words[name + "-blocks"];
    for (const std::int64_t share : shares) {
      list += (list.empty() ? "" : ",") + std::to_string(share);
    }
    const bool is_even_inside = std::ranges::all_of(shares.begin() + 1, shares.end() - 1,
                                                    [&](std::int64_t s) { return s == shares[1]; });
    if (!is_even_inside) continue;
    put_count(words, (name + "-first-share").c_str(), shares.front());
    put_count(words, (name + "-last-share").c_str(), shares.back());
  }
}

// "selective=mlp,norm" gives "recompute-kind" and "recompute-list" ("mlp,norm"), "first=2"
// "recompute-kind" and "recompute-count".
void put_recompute(const Recompute& recompute, Words& words) {
  const std::string text = recompute_words(recompute);
  const std::size_t equals = text.find('=');
  words["recompute"] = text;
  words["recompute-kind"] = text.substr(0, equals);
  put_count(words, "recompute-count", recompute.count);
  if (recompute.kind == Recompute::Kind::selective && equals != std::string::npos) {
    words["recompute-list"] = text.substr(equals + 1);
  }
}

// "dp=8:zero1+offload(optimizer=1/2)" gives "offload-optimizer" and its part.
void put_offloads(const Job& job, Words& words) {
  const std::string& text = job.placement_text;
  for (const char* state : {"parameters", "optimizer", "gradients", "activations"}) {
    const std::string mark = std::string("offload(") + state;
    const std::size_t at = text.find(mark);
    if (at == std::string::npos) continue;
    const std::size_t begin = at + mark.size();
    const std::string rest = text.substr(begin, text.find(')', begin) - begin);
    const std::string word = std::string("offload-") + state;
    words[word] = rest.ends_with(",nvme") ? "nvme" : "cpu";
    if (!rest.starts_with('=')) continue;
    words[word + "-part"] = rest.substr(1, rest.find(',') - 1);
  }
}

// "megatron@2026+overlap+bucket=2" gives "engine-base", "engine+overlap" and "engine+bucket".
void put_engine(const std::string& engine, Words& words) {
  words["engine"] = engine;
  std::size_t end = std::min(engine.find('+'), engine.size());
  words["engine-base"] = engine.substr(0, end);
  while (end < engine.size()) {
    const std::size_t begin = end + 1;
    end = std::min(engine.find('+', begin), engine.size());
    const std::string option = engine.substr(begin, end - begin);
    const std::size_t equals = option.find('=');
    const std::string value = equals == std::string::npos ? "true" : option.substr(equals + 1);
    words["engine+" + option.substr(0, equals)] = value;
  }
}

// "interleaved(2)+x" gives its first term, "interleaved", what is in its parentheses, "2", and the
// words "NAME-has-interleaved" and "NAME-has-x".
void put_terms(const std::string& name, const std::string& terms, Words& words) {
  const std::string first = terms.substr(0, terms.find_first_of("+;("));
  words[name + "-terms"] = terms;
  words[name + "-first"] = first;
  words[name + "-has-" + first] = "true";
  const std::string own = terms.substr(0, terms.find(';'));  // without those of classes
  for (std::size_t plus = own.find('+'); plus != std::string::npos;
       plus = own.find('+', plus + 1)) {
    const std::size_t end = std::min(own.find_first_of("+(", plus + 1), own.size());
    words[name + "-has-" + own.substr(plus + 1, end - plus - 1)] = "true";
  }
  if (first.size() == terms.size() || terms[first.size()] != '(') return;
  const std::size_t begin = first.size() + 1;
  words[name + "-argument"] = terms.substr(begin, terms.find(')', begin) - begin);
}

// The canonical text: "dp=8:zero1 tp=4:tp+sp".
void put_axes(const std::string& placement, const std::map<std::string, std::string>& names,
              Words& words) {
  for (std::size_t at = 0; at < placement.size();) {
    const std::size_t end = std::min(placement.find(' ', at), placement.size());
    const std::string axis = placement.substr(at, end - at);
    at = end + 1;
    const std::size_t equals = axis.find('=');
    const std::size_t colon = axis.find(':');
    if (equals == std::string::npos || colon == std::string::npos || equals > colon) continue;
    const auto known = names.find(axis.substr(0, equals));
    const std::string name = known == names.end() ? axis.substr(0, equals) : known->second;
    const std::string degree = axis.substr(equals + 1, colon - equals - 1);
    words[name] = degree.substr(0, degree.find('['));
    words.emplace("outermost", name + "-name");
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

// The kind of model, its head size where all heads have one, and whether its output matrix is the
// embedding.
void put_shapes(const Model& model, Words& words) {
  words["family"] = model.family;
  const std::int64_t heads = model.figures.blocks * model.figures.heads;
  if (heads > 0 && model.figures.attention_width % heads == 0) {
    put_count(words, "head-dim", model.figures.attention_width / heads);
  }
  for (const UnitKind& kind : model.kinds) {
    const bool ties = std::ranges::any_of(
        kind.parameters, [](const Parameter& parameter) { return parameter.tied.has_value(); });
    if (ties) words["ties-embedding"] = "true";
  }
}

// The formats of the states and of products, each by its key in data/precisions.
void put_formats(const Precision& precision, Words& words) {
  const auto put = [&](const char* key, Dtype dtype) {
    words[std::string("format-") + key] = name_of(dtype);
  };
  words["precision"] = precision.name;
  put("parameters", precision.parameters);
  put("compute", precision.compute);
  put("gather", precision.gather);
  put("gradients", precision.gradients);
  put("reduce", precision.reduce);
  if (precision.master) put("master", *precision.master);
  if (!precision.products) return;
  words["format-products"] = precision.products->name;
  if (precision.products->scales_from_before) words["scales-from-before"] = "true";
}

}  // namespace

Words words_of_job(const Job& job, const std::string& model) {
  Words words;
  const std::map<std::string, std::string> names = known_names(job.placement);
  put_axes(job.placement_text, names, words);
  put_batch(job, words);
  const ModelFigures& figures = job.model.figures;
  words["model"] = model;
  put_engine(job.engine_text, words);
  put_shares(job.placement, names, words);
  put_offloads(job, words);
  put_shapes(job.model, words);
  put_formats(job.precision, words);
  words["optimizer"] = job.optimizer.name;
  put_recompute(job.recompute, words);
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

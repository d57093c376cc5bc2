#include "report/html.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/listing.h"
#include "placement/strategy.h"
#include "report/chart.h"
#include "report/compare.h"
#include "report/html_parts.h"
#include "report/human.h"
#include "report/timeline.h"

namespace placet {
namespace {

std::string modes_html(const How& how) {
  std::string text;
  for (const State state : kStates) {
    const std::string_view symbol = symbol_of(how.modes[state]);
    text += fmt::format("<span class=\"mode mono {}\" title=\"{}\">{}</span>",
                        symbol == "S*" ? "Sx" : symbol, name_of(state), mode_text(how, state));
  }
  return text;
}

std::string mesh_section(const Job& job) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < job.placement.axes.size(); ++i) {
    const AxisPlacement& axis = job.placement.axes[i];
    rows.push_back({"<strong>" + escaped(axis.axis.text()) + "</strong>",
                    std::to_string(axis.degree), "all", std::string(name_of(axis.how.cut)),
                    modes_html(axis.how), escaped(link_of_axis(job, i))});
    for (const Override& other : axis.overrides) {
      rows.push_back({"", "", escaped(spell(other.selector)), std::string(name_of(other.how.cut)),
                      modes_html(other.how), ""});
    }
  }
  return section("Mesh, outermost axis first",
                 html_table({{"axis"},
                             {"degree", true},
                             {"class"},
                             {"cut"},
                             {"parameters, optimizer, gradients, activations"},
                             {"link"}},
                            rows));
}

std::string memory_terms_table(const Job& job, const MemoryClass& memory) {
  std::vector<const MemoryTerm*> terms;
  terms.reserve(memory.terms.size());
  for (const MemoryTerm& term : memory.terms) terms.push_back(&term);
  std::stable_sort(terms.begin(), terms.end(),
                   [](const auto* a, const auto* b) { return a->bytes > b->bytes; });
  std::vector<std::vector<std::string>> rows;
  for (const MemoryTerm* term : terms) {
    std::string factors;
    for (const AxisFactor& factor : factors_of(job.placement, memory, *term)) {
      const auto axis = static_cast<std::size_t>(factor.axis);
      if (factor.factor == Rational(1)) continue;
      factors +=
          std::string(job.placement.axes[axis].axis.text()) + " " + to_string(factor.factor) + " ";
    }
    rows.push_back({std::string(name_of(term->category)), escaped(term->what), escaped(term->unit),
                    escaped(factors), grouped(in_bytes(term->bytes)), grouped(in_bytes(term->rest)),
                    escaped(term->source)});
  }
  return html_table({{"state"},
                     {"what"},
                     {"unit"},
                     {"axis factors"},
                     {"bytes at the peak", true},
                     {"at rest", true},
                     {"source"}},
                    rows);
}

std::string memory_section(const Judged& judged) {
  const Derivation& derivation = judged.derivation;
  if (derivation.memory.empty()) return "";
  const Bytes scale = std::max({derivation.capacity, derivation.peak, bytes(1)});
  std::string body = "<div class=\"bars\">";
  for (const MemoryClass& memory : derivation.memory) {
    body += fmt::format(
        "<span>{}<br><span class=\"soft\">{} device{}</span></span>{}"
        "<span class=\"n\">{}</span>",
        escaped(class_name(*judged.job, memory)), memory.devices, memory.devices == 1 ? "" : "s",
        memory_bar(memory, scale,
                   memory.capacity > Bytes() ? memory.capacity : derivation.capacity),
        human_bytes(memory.peak));
  }
  body += "</div>" + legend();
  std::vector<std::vector<std::string>> rows;
  for (const MemoryClass& memory : derivation.memory) {
    std::vector<std::string> row = {escaped(class_name(*judged.job, memory)),
                                    escaped(peak_text(*judged.job, memory))};
    for (const Bytes amount : memory.at_peak) row.push_back(human_bytes(amount));
    row.push_back("<strong>" + human_bytes(memory.peak) + "</strong>");
    row.push_back(human_bytes(memory.reserved));
    row.push_back(human_bytes(memory.outside));
    row.emplace_back(name_of(memory.fit));
    rows.push_back(std::move(row));
  }
  body += folded("Bytes by class and state", html_table({{"class"},
                                                         {"peak at"},
                                                         {"parameters", true},
                                                         {"optimizer", true},
                                                         {"gradients", true},
                                                         {"activations", true},
                                                         {"transient", true},
                                                         {"overhead", true},
                                                         {"total", true},
                                                         {"reserved", true},
                                                         {"outside", true},
                                                         {"verdict"}},
                                                        rows));
  body += folded("Every term of " + escaped(class_name(*judged.job, fullest(derivation))),
                 memory_terms_table(*judged.job, fullest(derivation)));
  std::string title = "Memory per device at its peak";
  if (derivation.capacity > Bytes()) {
    title += fmt::format(" <span class=\"soft\">of {} ({})</span>",
                         human_bytes(derivation.capacity), human_gibibytes(derivation.capacity));
  }
  return section(title, body);
}

std::string communication_terms_table(const Job& job, const CommunicationClass& communication) {
  std::vector<std::vector<std::string>> rows;
  rows.reserve(communication.terms.size());
  for (const CommunicationTerm& term : communication.terms) {
    rows.push_back({escaped(fmt::format("{}", fmt::join(axis_names(job, term.axes), " "))),
                    spaced(name_of(term.collective)), escaped(term.what), escaped(term.unit),
                    std::string(name_of(term.dtype)), std::string(name_of(term.phase)),
                    std::to_string(term.group), grouped(term.count),
                    grouped(in_bytes(term.payload)), grouped(in_bytes(term.sent))});
  }
  return html_table({{"axes"},
                     {"collective"},
                     {"what"},
                     {"unit"},
                     {"dtype"},
                     {"phase"},
                     {"group", true},
                     {"calls", true},
                     {"payload", true},
                     {"sent", true}},
                    rows);
}

std::string bytes_bar(Bytes part, Bytes whole) {
  return share_bar(whole == Bytes() ? 0 : part / whole, "c-parameters",
                   "width=\"110\" height=\"10\"");
}

std::string communication_section(const Judged& judged) {
  if (judged.derivation.communication.empty()) return "";
  const Job& job = *judged.job;
  const CommunicationClass& most = busiest(judged.derivation);
  std::vector<std::vector<std::string>> rows;
  for (const CommunicationLine& line : lines_of(job, most)) {
    rows.push_back({escaped(fmt::format("{}", fmt::join(line.axes, " "))),
                    spaced(name_of(line.collective)), std::string(name_of(line.state)),
                    std::to_string(line.group), grouped(line.calls), human_bytes(line.sent),
                    bytes_bar(line.sent, most.sent), escaped(line.link)});
  }
  const std::string title =
      fmt::format("Sent per device and step: {} <span class=\"soft\">{}</span>",
                  human_bytes(most.sent), escaped(class_name(job, most.stage)));
  return section(title, html_table({{"axes"},
                                    {"collective"},
                                    {"of"},
                                    {"group", true},
                                    {"calls", true},
                                    {"sent", true},
                                    {"share"},
                                    {"link"}},
                                   rows) +
                            folded("Every term", communication_terms_table(job, most)));
}

std::string job_facts(const Judged& judged) {
  const Job& job = *judged.job;
  std::string facts = "<dl class=\"facts\">";
  facts += fact("placement", code(job.placement_text));
  facts += fact("devices", std::to_string(judged.derivation.devices) +
                               (job.cluster ? " of " + escaped(job.cluster->name) : std::string()));
  facts += fact("batch", fmt::format("{} samples of {} tokens, {} per micro-batch",
                                     job.batch.global, job.batch.sequence, job.batch.micro));
  facts += fact("training", escaped(job.precision.name + ", " + job.optimizer.name));
  facts += fact("engine", escaped(job.engine_text));
  for (const std::string& note : job.model.notes) facts += fact("note", escaped(note));
  return facts + "</dl>\n";
}

std::string title_of(const Model& model) {
  return fmt::format("<h1>{}</h1><p class=\"soft\">{} parameters</p>\n", escaped(model.name),
                     human_count(count_parameters(model).total));
}

/// Those with a time, by time and memory.
std::string scatter_section(const std::vector<Judged>& all) {
  std::vector<ChartPoint> points;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i].time || !all[i].derivation.meaningful) continue;
    points.push_back(
        {in_seconds(all[i].time->step), in_gigabytes(needed_of(all[i].derivation)), label_of(i),
         human_seconds(all[i].time->step) + ", " + human_bytes(needed_of(all[i].derivation)) +
             ": " + all[i].job->placement_text,
         "c-parameters"});
  }
  const std::string drawn =
      scatter("placements by time and memory", "step, seconds", "memory per device, GB", points);
  return drawn.empty() ? drawn : section("Time and memory", drawn);
}

std::string side_by_side(const std::vector<Judged>& all) {
  const Derivation& first = all.front().derivation;
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> below;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Derivation& derivation = all[i].derivation;
    const std::optional<TimeDerivation>& time = all[i].time;
    const bool timed = time && derivation.meaningful;
    rows.push_back({"<strong>" + label_of(i) + "</strong>", timed ? human_seconds(time->step) : "-",
                    timed ? fmt::format("{:.0f}", rate_of(time->tokens, time->step)) : "-",
                    timed ? utilisation_text(utilisation(*time)) : "-",
                    figure_of(derivation, needed_of(derivation)),
                    ratio_of(derivation, needed_of(derivation), needed_of(first)),
                    figure_of(derivation, derivation.sent),
                    ratio_of(derivation, derivation.sent, first.sent)});
    below.push_back(code(all[i].job->placement_text) + "<br>" + escaped(verdict_of(derivation)));
  }
  return section("Side by side", html_table({{""},
                                             {"step", true},
                                             {"tokens/s", true},
                                             {"MFU", true},
                                             {"needs", true},
                                             {"of the first", true, true},
                                             {"sent per step", true, true},
                                             {"of the first", true, true}},
                                            rows, below));
}

/// What the fullest device of each holds at its peak, on one scale.
std::string bars_section(const std::vector<Judged>& all) {
  Bytes scale = bytes(1);
  for (const Judged& judged : all) {
    scale = std::max({scale, judged.derivation.capacity, judged.derivation.peak});
  }
  std::string bars = "<div class=\"bars\">";
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Derivation& derivation = all[i].derivation;
    bars += fmt::format("<span><strong>{}</strong> {}</span>", label_of(i),
                        code(all[i].job->placement_text)) +
            (derivation.meaningful ? memory_bar(fullest(derivation), scale, derivation.capacity)
                                   : "<span></span>") +
            "<span class=\"n\">" + figure_of(derivation, derivation.peak) + "</span>";
  }
  return section("Memory per device at its peak", bars + "</div>" + legend());
}

}  // namespace

std::string derivation_html(const Judged& judged) {
  const Job& job = *judged.job;
  return page(job.model.name + ": " + job.placement_text,
              title_of(job.model) + job_facts(judged) + verdict_html(judged.derivation) +
                  memory_section(judged) + communication_section(judged) + mesh_section(job) +
                  findings_html(judged.derivation.findings));
}

std::string comparison_html(const std::vector<Judged>& all) {
  const Job& job = *all.front().job;
  std::string body = title_of(job.model) + "<dl class=\"facts\">";
  if (job.cluster) body += fact("cluster", escaped(job.cluster->name));
  body +=
      fact("batch", fmt::format("{} samples of {} tokens", job.batch.global, job.batch.sequence));
  body += fact("training", escaped(job.precision.name + ", " + job.optimizer.name));
  for (const std::string& note : job.model.notes) body += fact("note", escaped(note));
  body += "</dl>\n<div class=\"card verdict\">" + escaped(rank(all).answer) + "</div>\n";
  body += side_by_side(all) + scatter_section(all) + bars_section(all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    body += folded(label_of(i) + " " + code(all[i].job->placement_text),
                   communication_section(all[i]) + mesh_section(*all[i].job) +
                       findings_html(all[i].derivation.findings));
  }
  return page(job.model.name + ": comparison", body);
}

std::string model_html(const Model& model, std::int64_t sequence) {
  const ParameterCounts counts = count_parameters(model);
  const FlopsPerToken flops = flops_per_token(model, sequence);
  std::string facts =
      "<dl class=\"facts\">" + fact("family", escaped(model.family)) +
      fact("parameters", grouped(counts.total)) +
      fact("active per token, embeddings included", grouped(counts.active)) +
      fact("trainable", grouped(counts.trainable)) +
      fact("blocks", std::to_string(model.figures.blocks)) +
      fact("FLOPs per token", human_flops(in_flops(flops.forward)) + " forward, " +
                                  human_flops(in_flops(flops.training)) + " training");
  for (const std::string& note : model.notes) facts += fact("note", escaped(note));
  std::vector<std::vector<std::string>> rows;
  for (const TensorEntry& entry : list_tensors(model)) {
    rows.push_back({code(entry.name), fmt::format("[{}]", fmt::join(entry.shape, ", ")),
                    escaped(entry.tensor_class), grouped(entry.count),
                    entry.shared      ? "shared"
                    : entry.trainable ? ""
                                      : "frozen"});
  }
  return page(
      model.name,
      title_of(model) + facts + "</dl>\n" +
          section("Tensors",
                  html_table({{"tensor"}, {"shape"}, {"class"}, {"count", true}, {""}}, rows)));
}

std::string catalogue_html(const Catalogue& catalogue) {
  std::vector<HtmlColumn> columns = {{"name"}};
  for (const std::string& column : catalogue.columns) columns.push_back({escaped(spaced(column))});
  columns.push_back({"what it is"});
  std::vector<std::vector<std::string>> rows;
  for (const CatalogueRow& row : catalogue.rows) {
    std::vector<std::string> cells = {code(row.name)};
    for (const std::string& cell : row.cells) cells.push_back(escaped(cell));
    cells.push_back(escaped(row.title));
    rows.push_back(std::move(cells));
  }
  return page("placet " + catalogue.kind, "<h1>" + escaped(catalogue.kind) + "</h1>" +
                                              section("Catalogue", html_table(columns, rows)));
}

}  // namespace placet

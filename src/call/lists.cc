#include "call/lists.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "catalog/cluster_catalog.h"
#include "catalog/model_catalog.h"
#include "catalog/profile_catalog.h"
#include "catalog/strategy_catalog.h"
#include "placement/grammar.h"
#include "report/human.h"
#include "units/error.h"
#include "units/nearest.h"

namespace placet {
namespace {

struct Lister {
  const Catalog& catalog;
  const std::function<void(const std::string&)>& warn;
};

Catalogue list_strategies(const Lister& lister) {
  const Catalog& catalog = lister.catalog;
  const Vocabulary vocabulary = load_strategies(catalog).vocabulary;
  Catalogue list{.kind = "strategies",
                 .columns = {"prints_as"},
                 .rows = {},
                 .hint =
                     "A strategy is a term of --placement: dp=8:zero1. Attention along a sequence "
                     "cut is listed with them."};
  for (const Strategy& strategy : vocabulary.strategies) {
    list.rows.push_back({.name = strategy.name,
                         .title = strategy.description,
                         .cells = {strategy.prints_as},
                         .sources = strategy.sources});
  }
  for (const Realisation& word : vocabulary.realisations) {
    if (word.kind != Realisation::Kind::attention) continue;
    list.rows.push_back(
        {.name = word.name, .title = word.description, .cells = {""}, .sources = word.sources});
  }
  return list;
}

Catalogue list_schedules(const Lister& lister) {
  const Catalog& catalog = lister.catalog;
  const Vocabulary vocabulary = load_strategies(catalog).vocabulary;
  Catalogue list{.kind = "schedules",
                 .columns = {"arguments"},
                 .rows = {},
                 .hint = "A schedule is a term of a layer axis: pp=4:1f1b, pp=4:interleaved(2)."};
  for (const Realisation& word : vocabulary.realisations) {
    if (word.kind != Realisation::Kind::schedule) continue;
    const std::string arguments =
        word.least_arguments == word.most_arguments
            ? std::to_string(word.most_arguments)
            : fmt::format("{}-{}", word.least_arguments, word.most_arguments);
    list.rows.push_back({.name = word.name,
                         .title = word.description,
                         .cells = {arguments},
                         .sources = word.sources});
  }
  return list;
}

/// Does something for each name. A file of the user's own that cannot be read is told of and passed
/// over: it is no reason to show nothing.
template <class Show>
void for_each_name(const Lister& lister, const std::vector<std::string>& names, Show show) {
  for (const std::string& name : names) {
    try {
      show(name);
    } catch (const InputError& error) {
      if (lister.catalog.overlays.empty()) throw;
      lister.warn(error.what());
    }
  }
}

template <class List>
std::optional<std::int64_t> count_of(const List& list) {
  return static_cast<std::int64_t>(list.size());
}

Catalogue list_models(const Lister& lister) {
  const Catalog& catalog = lister.catalog;
  Catalogue list{
      .kind = "models",
      .columns = {"parameters", "active", "blocks"},
      .rows = {},
      .hint = "Any config.json of a known family works too: placet model ./config.json."};
  for_each_name(lister, model_names(catalog), [&](const std::string& name) {
    const ModelSheet sheet = load_model_sheet(catalog, name);
    const Model model = load_model(catalog, name);
    const ParameterCounts counts = count_parameters(model);
    list.rows.push_back({.name = name,
                         .title = model.family,
                         .cells = {human_count(counts.total), human_count(counts.active),
                                   std::to_string(model.figures.blocks)},
                         .figures = {counts.total, counts.active, model.figures.blocks},
                         .sources = {sheet.source}});
  });
  return list;
}

Catalogue list_devices(const Lister& lister) {
  const Catalog& catalog = lister.catalog;
  Catalogue list{.kind = "devices",
                 .columns = {"memory", "memory_is", "bf16_peak", "memory_bandwidth", "host"},
                 .rows = {},
                 .hint = "Size one with --cluster: h100-sxm:8 is 8 nodes, 64xh100-sxm 64 devices."};
  for_each_name(lister, names_in(catalog, "hardware/devices"), [&](const std::string& name) {
    const DeviceSheet sheet = load_device(catalog, name, "devices");
    const double peak = in_flops_per_second(sheet.device.peak_bf16) / 1e12;
    CatalogueRow row{.name = name,
                     .title = sheet.title,
                     .cells = {human_gibibytes(sheet.device.memory), sheet.memory_kind,
                               peak > 0 ? fmt::format("{:.0f} TFLOP/s", peak) : "-",
                               human_rate(sheet.device.memory_bandwidth), sheet.host},
                     .figures = {in_bytes(sheet.device.memory), std::nullopt,
                                 peak > 0 ? std::optional(std::llround(peak * 1e12)) : std::nullopt,
                                 std::llround(in_bytes_per_second(sheet.device.memory_bandwidth))},
                     .sources = {}};
    for (const Fact& fact : sheet.facts) {
      row.sources.push_back(fact.key + " = " + fact.value + ": " + fact.source);
    }
    list.rows.push_back(std::move(row));
  });
  return list;
}

std::string links_of(const Cluster& node) {
  std::string text;
  for (const DeviceGroup& group : node.groups) {
    for (const Level& level : group.levels) {
      text += (text.empty() ? "" : ", ") + level.link + " " + human_rate(level.bandwidth);
    }
  }
  return text;
}

Catalogue list_clusters(const Lister& lister) {
  const Catalog& catalog = lister.catalog;
  Catalogue list{.kind = "clusters",
                 .columns = {"node", "links_inside"},
                 .rows = {},
                 .hint =
                     "Any device is a cluster too, on its usual host and network: h100-sxm:8. "
                     "Your own goes into a file: --cluster my.toml."};
  for_each_name(lister, names_in(catalog, "clusters"), [&](const std::string& name) {
    const ClusterSheet sheet = load_cluster_sheet(catalog, name);
    std::string node;
    for (const DeviceGroup& group : sheet.node.groups) {
      node +=
          (node.empty() ? "" : " + ") + std::to_string(group.per_host) + "x" + group.device.name;
    }
    list.rows.push_back({.name = name,
                         .title = sheet.title,
                         .cells = {node, links_of(sheet.node)},
                         .sources = {sheet.source}});
  });
  return list;
}

Catalogue list_engines(const Lister& lister) {
  const Catalog& catalog = lister.catalog;
  Catalogue list{.kind = "engines",
                 .columns = {"date", "facts", "memory_terms", "messages", "refusals"},
                 .rows = {},
                 .hint =
                     "A plain name is the newest version: --engine placet. Options join it with "
                     "'+', several as well; placet explain NAME says what they change."};
  for_each_name(lister, profile_names_with_options(catalog), [&](const std::string& name) {
    const Profile profile = load_profile(catalog, name, "engines");
    CatalogueRow row{
        .name = name,
        .title = profile_title(catalog, name),
        .cells = {profile.date, std::to_string(profile.facts.size()),
                  std::to_string(profile.memory.size()), std::to_string(profile.messages.size()),
                  std::to_string(profile.refusals.size())},
        .figures = {std::nullopt, count_of(profile.facts), count_of(profile.memory),
                    count_of(profile.messages), count_of(profile.refusals)},
        .sources = {}};
    for (const Fact& fact : profile.facts) {
      row.sources.push_back(fact.key + " = " + fact.value + ": " + fact.source);
    }
    list.rows.push_back(std::move(row));
  });
  return list;
}

struct Listing {
  ListKind kind;
  Catalogue (*list)(const Lister&);
};
constexpr std::array kListings = {
    Listing{{"strategies", "Strategies: names for cuts and modes along an axis"}, &list_strategies},
    Listing{{"schedules", "Pipeline schedules"}, &list_schedules},
    Listing{{"models", "Models by name"}, &list_models},
    Listing{{"clusters", "Clusters by name"}, &list_clusters},
    Listing{{"devices", "Devices: memory, peaks and bandwidths with their sources"}, &list_devices},
    Listing{{"engines", "Engine profiles: how training engines realise a placement"},
            &list_engines}};

/// Whether an entry is the one that was asked for, a version or a variant of it.
bool is_named(const CatalogueRow& row, const std::string& name) {
  if (!row.name.starts_with(name)) return false;
  const char next = row.name.size() > name.size() ? row.name[name.size()] : '@';
  return next == '@' || next == '+';
}

}  // namespace

std::vector<ListKind> list_kinds() {
  std::vector<ListKind> kinds;
  kinds.reserve(kListings.size());
  for (const Listing& listing : kListings) kinds.push_back(listing.kind);
  return kinds;
}

Catalogue listed_of(const Catalog& catalog, std::string_view kind,
                    const std::function<void(const std::string&)>& warn) {
  for (const Listing& listing : kListings) {
    if (listing.kind.name == kind) return listing.list({.catalog = catalog, .warn = warn});
  }
  fail_internally("a list is one of list_kinds()");
}

void keep_named(Catalogue& list, const std::string& name) {
  std::vector<std::string> names;
  for (const CatalogueRow& row : list.rows) {
    names.push_back(row.name);
    names.push_back(row.name.substr(0, row.name.find('@')));
  }
  std::erase_if(list.rows, [&](const CatalogueRow& row) { return !is_named(row, name); });
  if (!list.rows.empty()) return;
  throw InputError({.where = "placet " + list.kind,
                    .value = name,
                    .problem = "is not in the list",
                    .allowed = "a name that `placet " + list.kind + "` prints",
                    .nearest = nearest(name, names)});
}

}  // namespace placet

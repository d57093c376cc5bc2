#include "catalog/network_words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>

#include "catalog/cluster_parts.h"
#include "catalog/word_file.h"
#include "units/error.h"
#include "units/nearest.h"
#include "units/number.h"

namespace placet {
namespace {

constexpr double kMostGigabits = 1'000'000;
constexpr double kMostRatio = 1000;
constexpr double kGigabitsPerGigabyte = 8;
const std::string kPerHost = "-per-host";
const std::string kUnit = "gbit";
const std::string kLinkOfRates = "roce-400";

/// Gb/s at which Ethernet is sold, each with the first standard of IEEE that has it: 1 (802.3z,
/// 1998), 10 (802.3ae, 2002), 25 (802.3by, 2016), 40 and 100 (802.3ba, 2010), 50 (802.3cd,
/// 2018), 200 and 400 (802.3bs, 2017), 800 (802.3df, 2024), 1600 (802.3dj, a draft in 2025).
constexpr std::array<double, 10> kSpeeds = {1, 10, 25, 40, 50, 100, 200, 400, 800, 1600};
constexpr std::string_view kEthernet = "gbe";

/// A canonical text taken apart.
struct Network {
  std::string link;  // empty: a rate
  double gigabits = 0;
  bool of_host = false;
  double ratio = 1;
};

std::string printed(double number) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number);
  return {text.data(), end.ptr};
}

std::optional<double> positive(std::string_view text, double most) {
  const auto number = number_in<double>(text);
  return number && *number > 0 && *number <= most ? number : std::nullopt;
}

/// Takes "/3", "/3:1" or " 3:1" off the end; none: there is no ratio there.
std::optional<double> take_ratio(std::string& text) {
  std::string_view rest = text;
  const bool to_one = rest.ends_with(":1");
  if (to_one) rest.remove_suffix(2);
  const std::size_t before = rest.find_last_not_of("0123456789.");
  if (before == std::string_view::npos || before + 1 == rest.size()) return std::nullopt;
  if (rest[before] != '/' && !(to_one && rest[before] == ' ')) return std::nullopt;
  const auto ratio = positive(rest.substr(before + 1), kMostRatio);
  if (ratio) text = text.substr(0, text.find_last_not_of("/ ", before) + 1);
  return ratio;
}

/// Takes "per node", "/host" and so on off the end of text in lower case.
bool take_per_host(std::string& text) {
  for (const char* ending :
       {"-per-host", " per host", " per node", "-per-node", "/host", "/node"}) {
    if (!text.ends_with(ending)) continue;
    text = text.substr(0, text.size() - std::string_view(ending).size());
    return true;
  }
  for (const char* ending : {" per device", " per gpu", "/device", "/gpu", "-per-device"}) {
    if (!text.ends_with(ending)) continue;
    text = text.substr(0, text.size() - std::string_view(ending).size());
  }
  return false;
}

bool is_speed(double gigabits) { return std::ranges::find(kSpeeds, gigabits) != kSpeeds.end(); }

/// What is said of a rate at which no link is sold: it is taken as it is written.
std::vector<std::string> notes_on_rate(double gigabits, bool of_host) {
  if (of_host || is_speed(gigabits)) return {};
  return {"network: " + printed(gigabits) + " Gb/s is no usual speed of a link and is taken " +
          "literally, per device, with the latency and efficiency of " + kLinkOfRates};
}

/// Gb/s of "400gbe", "400 Gb/s", "1.6 Tb/s"; of "50 GB/s", whose capital B says bytes.
std::optional<double> rate_in(const std::string& said, const std::string& lower) {
  const std::size_t end = lower.find_first_not_of("0123456789.");
  if (end == 0 || end == std::string::npos) return std::nullopt;
  const auto number = positive(lower.substr(0, end), kMostGigabits);
  if (!number) return std::nullopt;
  const std::size_t begin = std::min(lower.find_first_not_of(' ', end), lower.size());
  const std::string unit = lower.substr(begin);
  const bool bytes = said.substr(begin, 2) == "GB" || said.substr(begin, 2) == "TB";
  const bool is_tera = unit.starts_with('t');
  static constexpr std::array<std::string_view, 10> kUnits = {
      kEthernet, "gbit", "gbit/s", "gbits", "gb/s", "gbps", "gb", "g", "tb/s", "tbps"};
  if (std::ranges::find(kUnits, unit) == kUnits.end()) return std::nullopt;
  const bool is_ethernet = unit == kEthernet;
  if (is_ethernet && !is_speed(*number)) return std::nullopt;
  const double scale = is_tera ? 1000 : 1;
  return *number * scale * (bytes && !is_ethernet ? kGigabitsPerGigabyte : 1);
}

/// A link by its own or a second name.
MeantName link_named(const Catalog& catalog, const std::string& word) {
  if (has_file(catalog, "hardware/links", word)) return {word, {}};
  return meant_name(load_words(catalog, "links"), names_in(catalog, "hardware/links"), word);
}

std::optional<Network> parse(const Catalog& catalog, std::string text) {
  Network network;
  const std::size_t slash = text.rfind('/');
  if (slash != std::string::npos) {
    const auto ratio = positive(std::string_view(text).substr(slash + 1), kMostRatio);
    if (!ratio || *ratio < 1) return std::nullopt;
    network.ratio = *ratio;
    text = text.substr(0, slash);
  }
  if (has_file(catalog, "hardware/links", text)) {
    network.link = text;
    return network;
  }
  network.of_host = text.ends_with(kPerHost);
  if (network.of_host) text = text.substr(0, text.size() - kPerHost.size());
  if (!text.ends_with(kUnit)) return std::nullopt;
  const auto rate =
      positive(std::string_view(text).substr(0, text.size() - kUnit.size()), kMostGigabits);
  if (!rate) return std::nullopt;
  network.gigabits = *rate;
  return network;
}

/// Ethernet at a speed that it does not have; the nearest is the nearest number.
[[noreturn]] void refuse_ethernet(const std::string& text, const std::string& where) {
  const std::string number = text.substr(0, text.find_first_not_of("0123456789."));
  const double rate = number_in<double>(number).value_or(0);
  std::string speeds;
  std::string nearest_speed;
  double least = 0;
  for (const double speed : kSpeeds) {
    const std::string name = printed(speed) + std::string(kEthernet);
    speeds += (speeds.empty() ? "" : " ") + name;
    const double apart = std::abs(speed - rate);
    if (!nearest_speed.empty() && apart >= least) continue;
    nearest_speed = name;
    least = apart;
  }
  throw InputError(
      {.where = where,
       .value = text,
       .problem = "is no speed of Ethernet",
       .allowed = speeds + ", or any rate in Gb/s, which is taken literally: " + number + kUnit,
       .nearest = nearest_speed});
}

}  // namespace

Meant meant_network(const Catalog& catalog, const std::string& text) {
  if (const auto known = parse(catalog, text)) {
    const bool is_rate = known->link.empty();
    return {text,
            is_rate ? notes_on_rate(known->gigabits, known->of_host) : std::vector<std::string>{}};
  }
  std::string said = text;
  const std::optional<double> ratio = take_ratio(said);
  const std::string ending = ratio && *ratio > 1 ? "/" + printed(*ratio) : "";
  std::string lower = lower_case(said);
  const bool of_host = take_per_host(lower);
  said = said.substr(0, lower.size());
  if (!of_host) {
    const MeantName link = link_named(catalog, said);
    Meant meant{link.name + ending, {}};
    if (!link.note.empty()) {
      meant.notes.push_back("network: '" + said + "' is taken as " + link.name + " (" + link.note +
                            ")");
    }
    if (!link.name.empty()) return meant;
  }
  const auto rate = rate_in(said, lower);
  if (!rate) return {text, {}};
  return {printed(*rate) + kUnit + (of_host ? kPerHost : "") + ending,
          notes_on_rate(*rate, of_host)};
}

bool is_network(const Catalog& catalog, const std::string& text) {
  return parse(catalog, text).has_value();
}

Level read_network(const Catalog& catalog, const std::string& text, std::int64_t per_host,
                   const std::string& where) {
  const std::optional<Network> network = parse(catalog, text);
  if (!network) {
    const bool is_number = !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) != 0;
    if (is_number && lower_case(text).ends_with(kEthernet)) refuse_ethernet(text, where);
    throw InputError({.where = where,
                      .value = text,
                      .problem = "is no network that is known",
                      .allowed = "a link such as roce-400 or efa-3200, or a rate such as 400gbit "
                                 "(per device) or 3200gbit-per-host, each also with a ratio of "
                                 "oversubscription behind it: roce-400/3",
                      .nearest = nearest(text, names_in(catalog, "hardware/links"))});
  }
  Level level = load_link(catalog, network->link.empty() ? kLinkOfRates : network->link, 1, where);
  if (network->link.empty()) {
    level.link = text;
    level.bandwidth = gigabytes_per_second(
        network->gigabits / kGigabitsPerGigabyte /
        static_cast<double>(network->of_host ? std::max<std::int64_t>(per_host, 1) : 1));
    level.all_reduce.clear();
  }
  if (network->ratio > 1) {
    level.link = text;
    level.bandwidth = level.bandwidth / network->ratio;
    level.all_reduce.clear();
  }
  return level;
}

}  // namespace placet

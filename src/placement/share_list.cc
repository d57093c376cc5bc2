#include "placement/share_list.h"

#include <algorithm>
#include <span>

#include "placement/grammar.h"

namespace placet {
namespace {

constexpr std::int64_t kLargestShare = kLargestDegree;
constexpr std::size_t kLongestGroup = 64;
constexpr std::size_t kShortestRun = 3;  // two are as easily read one by one

using Shares = std::vector<std::int64_t>;
using ShareSpan = std::span<const std::int64_t>;

void require_room(SourceText& source, std::size_t shares) {
  if (shares <= kMostShares) return;
  source.fail(source.position(),
              {.problem = "too many shares", .allowed = "at most " + std::to_string(kMostShares)});
}

std::size_t read_count(SourceText& source) {
  return static_cast<std::size_t>(
      source.whole("how often it comes", 1, static_cast<std::int64_t>(kMostShares)));
}

void read_run(SourceText& source, Shares& out) {
  require_room(source, out.size() + 1);
  const std::int64_t share = source.whole("a share", 0, kLargestShare);
  const std::size_t count = source.take('x') ? read_count(source) : 1;
  require_room(source, out.size() + count);
  out.insert(out.end(), count, share);
}

void read_group(SourceText& source, Shares& out) {
  Shares group;
  do {
    read_run(source, group);
  } while (source.take(','));
  source.expect(')', "',' and a further share, or ')'");
  source.expect('x', "'x' and how often the group comes");
  const std::size_t count = read_count(source);
  require_room(source, out.size() + group.size() * count);
  for (std::size_t i = 0; i < count; ++i) out.insert(out.end(), group.begin(), group.end());
}

std::string repeated(const std::string& text, std::size_t count) {
  return text + "x" + std::to_string(count);
}

std::size_t length_of_run(ShareSpan shares) {
  const auto other = std::ranges::find_if(shares, [&](auto share) { return share != shares[0]; });
  return static_cast<std::size_t>(other - shares.begin());
}

/// Long runs as such.
std::string print_runs(ShareSpan shares) {
  std::string text;
  while (!shares.empty()) {
    const std::string share = std::to_string(shares[0]);
    const std::size_t run = length_of_run(shares);
    const bool is_run = run >= kShortestRun;
    text += (text.empty() ? "" : ",") + (is_run ? repeated(share, run) : share);
    shares = shares.subspan(is_run ? run : 1);
  }
  return text;
}

/// How a text goes on from a share: with an item that holds `shares` of them.
struct Item {
  std::string text;
  std::size_t shares = 1;
  std::size_t length = 0;  // of the text from here to the end
};

/// Chooses the items from the last to the first.
class ShortestShares {
 public:
  explicit ShortestShares(const Shares& shares)
      : shares_(shares), items_(shares.size()), alike_(kLongestGroup + 1) {
    for (std::size_t i = shares.size(); i-- > 0;) choose(i);
  }

  std::string text() const {
    std::string out;
    for (std::size_t i = 0; i < items_.size(); i += items_[i].shares) {
      out += (out.empty() ? "" : ",") + items_[i].text;
    }
    return out;
  }

 private:
  void choose(std::size_t i) {
    items_[i] = finished(i, {.text = std::to_string(shares_[i])});
    for (std::size_t size = 1; size <= std::min(kLongestGroup, shares_.size() - i); ++size) {
      const bool again = i + size < shares_.size() && shares_[i] == shares_[i + size];
      alike_[size] = again ? alike_[size] + 1 : 0;
      const std::size_t count = alike_[size] / size + 1;
      if (count < (size == 1 ? kShortestRun : 2)) continue;
      const Item item = finished(i, repetition(i, size, count));
      if (item.length < items_[i].length) items_[i] = item;
    }
  }

  Item repetition(std::size_t i, std::size_t size, std::size_t count) const {
    const std::string group = print_runs(ShareSpan(shares_).subspan(i, size));
    return {.text = repeated(size == 1 ? group : "(" + group + ")", count), .shares = size * count};
  }

  Item finished(std::size_t i, Item item) const {
    const std::size_t next = i + item.shares;
    item.length = item.text.size() + (next < items_.size() ? 1 + items_[next].length : 0);
    return item;
  }

  const Shares& shares_;
  std::vector<Item> items_;
  std::vector<std::size_t> alike_;  // by distance: shares from here on that come again so far on
};

}  // namespace

std::vector<std::int64_t> read_shares(SourceText& source) {
  Shares out;
  do {
    if (source.take('(')) {
      read_group(source, out);
    } else {
      read_run(source, out);
    }
  } while (source.take(','));
  return out;
}

std::string print_shares(const std::vector<std::int64_t>& shares) {
  return ShortestShares(shares).text();
}

std::string with_short_shares(std::string_view placement) {
  std::string out;
  for (std::size_t open = placement.find('['); open != std::string_view::npos;
       open = placement.find('[')) {
    const std::size_t close = placement.find(']', open);
    SourceText list(placement.substr(open + 1, close - open - 1));
    out.append(placement.substr(0, open + 1)).append(print_shares(read_shares(list)));
    placement.remove_prefix(close);
  }
  return out.append(placement);
}

}  // namespace placet

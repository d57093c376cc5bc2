#include "model/index.h"

#include "units/error.h"

namespace placet {

std::string_view name_of(Index index) {
  switch (index) {
    case Index::sample:
      return "sample";
    case Index::token:
      return "token";
    case Index::key_token:
      return "key_token";
    case Index::choice:
      return "choice";
    case Index::hidden:
      return "hidden";
    case Index::head:
      return "head";
    case Index::kv_head:
      return "kv_head";
    case Index::head_size:
      return "head_size";
    case Index::ffn:
      return "ffn";
    case Index::vocab:
      return "vocab";
    case Index::expert:
      return "expert";
    case Index::latent:
      return "latent";
    case Index::adapter:
      return "adapter";
    case Index::state:
      return "state";
    case Index::position:
      return "position";
    case Index::other:
      return "other";
  }
  fail_internally("every index has a name");
}

}  // namespace placet

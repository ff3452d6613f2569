// The third part of Dispatcher: its entries, and which of them stay.
#include <kiln/words.h>

#include "base/log.h"
#include "runtime/dispatcher.h"
#include "runtime/runtime_impl.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace kiln::internal {
namespace {

// Of an implementation and an identity; device facts are few, and compared.
std::uint64_t hash_of(const KernelRow* implementation, const BuildIdentity& identity) {
  return mix_words(identity.words().data(), identity.words().size()) ^
         reinterpret_cast<std::uintptr_t>(implementation);
}

// Of entries that are not kept, how many there are at most.
std::size_t places_for_passing(std::size_t max_kept) {
  return std::max<std::size_t>(1, max_kept / 8);
}

}  // namespace

std::shared_ptr<EntryRow> Dispatcher::find_entry(const Wanted& wanted) {
  const auto [first, last] = index_.equal_range(hash_of(wanted.row, wanted.plan.identity));
  for (auto at = first; at != last; ++at) {
    const Rows::iterator place = at->second;
    const std::shared_ptr<EntryRow>& entry = *place;
    if (entry->implementation != wanted.row || !(entry->identity == wanted.plan.identity) ||
        !(entry->device_type == wanted.device.type) || !(entry->facts == wanted.facts)) {
      continue;
    }
    if (!entry->kept) passing_.splice(passing_.end(), passing_, place);
    return entry;
  }
  return nullptr;
}

std::shared_ptr<EntryRow> Dispatcher::add_entry(const Wanted& wanted,
                                                std::unique_ptr<Kernel> kernel, Rows& dropped) {
  const auto limit = static_cast<std::size_t>(runtime_.options.max_entries);
  auto entry = std::make_shared<EntryRow>(
      EntryRow{wanted.row, wanted.plan.identity, wanted.device.type, wanted.facts,
               std::move(kernel), nullptr, limit == 0 || kept_.size() < limit});
  entry->as_interface = wanted.row->type.as_interface(entry->kernel.get());
  Rows& rows = entry->kept ? kept_ : passing_;
  rows.push_back(entry);
  index_.emplace(hash_of(entry->implementation, entry->identity), std::prev(rows.end()));
  while (passing_.size() > places_for_passing(limit)) drop_oldest(dropped);
  runtime_.entries_built.fetch_add(1, std::memory_order_relaxed);
  return entry;
}

void Dispatcher::drop_oldest(Rows& dropped) {
  const Rows::iterator oldest = passing_.begin();
  const auto [first, last] =
      index_.equal_range(hash_of((*oldest)->implementation, (*oldest)->identity));
  index_.erase(std::find_if(first, last, [&](const auto& at) { return at.second == oldest; }));
  dropped.splice(dropped.end(), passing_, oldest);
  runtime_.entries_dropped.fetch_add(1, std::memory_order_relaxed);
}

Served Dispatcher::serve(const std::shared_ptr<const EntryRow>& row, bool keep) {
  Served served{row->as_interface, row};
  {
    MutexLock lock(mutex_);
    if (keep && !row->kept) {
      // Where it was dropped since it was found, it comes back, beside one that replaced it.
      auto place = std::find(passing_.begin(), passing_.end(), row);
      if (place == passing_.end()) {
        kept_.push_back(std::const_pointer_cast<EntryRow>(row));
        index_.emplace(hash_of(row->implementation, row->identity), std::prev(kept_.end()));
      } else {
        kept_.splice(kept_.end(), passing_, place);
      }
      kept_.back()->kept = true;
    }
    served.kept = row->kept;
  }
  if (!served.kept) {
    log_once(LogLevel::warning, "entries: " + candidates_.op,
             absl::StrFormat(
                 "%s: %s has more than %d entries: does its identity hold a value that every call "
                 "changes? Calls of further ones look them up and wait for their work, and the "
                 "least recently used are dropped; KILN_MAX_ENTRIES sets the limit",
                 candidates_.op, interface_.name, runtime_.options.max_entries));
  }
  return served;
}

std::vector<const EntryRow*> Dispatcher::entries() const {
  MutexLock lock(mutex_);
  std::vector<const EntryRow*> out;
  for (const auto& entry : kept_) out.push_back(entry.get());
  return out;
}

}  // namespace kiln::internal

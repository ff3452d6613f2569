#include "cli/progress.h"

#include "base/printable.h"
#include "cli/session.h"

#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>
#include <absl/time/clock.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/ioctl.h>
#include <unistd.h>

namespace kiln::cli {
namespace {

bool is_terminal() {
  const char* kind = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) != 0 && (kind == nullptr || std::strcmp(kind, "dumb") != 0);
}

std::size_t columns() {
  winsize size = {};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

// "42 s", "3 min 20 s", "2 h 5 min".
std::string duration_text(absl::Duration duration) {
  const auto seconds = std::llround(absl::ToDoubleSeconds(duration));
  if (seconds < 60) return absl::StrFormat("%d s", seconds);
  if (seconds < 3600) return absl::StrFormat("%d min %d s", seconds / 60, seconds % 60);
  return absl::StrFormat("%d h %d min", seconds / 3600, seconds % 3600 / 60);
}

// At most `width` columns, without half a character of UTF-8.
std::string cut(const std::string& text, std::size_t width) {
  if (text.size() <= width) return text;
  std::size_t end = width - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

}  // namespace

bool is_colour_wanted() {
  const char* no_colour = std::getenv("NO_COLOR");
  return is_terminal() && (no_colour == nullptr || *no_colour == '\0');
}

Progress::Progress(std::size_t total)
    : total_(total), is_terminal_(is_terminal()), start_(absl::Now()) {}

Progress::~Progress() {
  if (is_terminal_) std::fprintf(stderr, "\r\033[K");
}

void Progress::begin(const std::string& what) {
  MutexLock lock(mutex_);
  at_work_.push_back({what, ""});
  draw(/*now=*/done_ == 0);
}

void Progress::step(const std::string& what, const std::string& detail) {
  MutexLock lock(mutex_);
  if (const auto at = find(what); at != at_work_.end()) at->detail = ": " + detail;
  draw(/*now=*/false);
}

std::list<Progress::Work>::iterator Progress::find(const std::string& what) {
  return std::find_if(at_work_.begin(), at_work_.end(),
                      [&](const Work& work) { return work.what == what; });
}

void Progress::end(const std::string& what, std::string_view outcome, bool is_good) {
  MutexLock lock(mutex_);
  ++done_;
  if (const auto at = find(what); at != at_work_.end()) at_work_.erase(at);
  const std::string text = absl::StrFormat("[%d/%d] %s: %s", done_, total_, what, outcome);
  if (!is_terminal_) {
    tell("%s\n", text);
    return;
  }
  if (!is_good) {  // stays on the screen
    const bool colour = is_colour_wanted();
    std::fprintf(stderr, "\r\033[K%s%s%s\n", colour ? "\033[31m" : "", printable(text).c_str(),
                 colour ? "\033[0m" : "");
  }
  if (!is_good || done_ == total_) draw(/*now=*/true);
}

std::string Progress::line() const {
  const absl::Duration spent = absl::Now() - start_;
  const double rate = static_cast<double>(done_) / std::max(1e-3, absl::ToDoubleSeconds(spent));
  std::string text = absl::StrFormat("[%d/%d]", done_, total_);
  if (done_ > 0) {
    const absl::Duration left =
        spent * static_cast<double>(total_ - done_) / static_cast<double>(done_);
    const bool fast = rate >= 0.1;
    text += absl::StrFormat(" %.1f/%s, %s left", fast ? rate : 60 * rate, fast ? "s" : "min",
                            duration_text(left));
  }
  const auto shown = [](std::string* out, const Work& work) { *out += work.what + work.detail; };
  if (!at_work_.empty()) text += ": " + absl::StrJoin(at_work_, ", ", shown);
  return text;
}

void Progress::draw(bool now) {
  constexpr absl::Duration kBetween = absl::Milliseconds(50);
  if (!is_terminal_ || (!now && absl::Now() - drawn_ < kBetween)) return;
  drawn_ = absl::Now();
  std::fprintf(stderr, "\r\033[K%s", cut(printable(line()), columns() - 1).c_str());
  std::fflush(stderr);
}

}  // namespace kiln::cli

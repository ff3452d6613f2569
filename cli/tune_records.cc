// kiln tune show|clear|export|import: the records in the cache folder.
#include <kiln/runtime.h>

#include "base/file_system.h"
#include "cache/remote_records.h"
#include "cli/cache_folder.h"
#include "cli/help.h"
#include "cli/output_file.h"
#include "cli/tune.h"
#include "runtime/json_text.h"
#include "runtime/tools.h"

#include <CLI/CLI.hpp>
#include <absl/strings/str_format.h>

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kiln::cli {
namespace {

using internal::TuneRecord;

absl::StatusOr<cache::TuningFiles> open_records() {
  KILN_ASSIGN_OR_RETURN(const std::string folder, cache_folder());
  const RuntimeOptions& options = Runtime::instance().options();
  return cache::TuningFiles(
      {.dir = folder,
       .strict = true,
       .group_shared = options.cache_group_shared,
       .remote = cache::remote_records_of(tools::store(Runtime::instance()))});
}

struct Row {
  std::string name;
  absl::StatusOr<TuneRecord> record;
};

absl::StatusOr<std::vector<Row>> read_rows(const cache::TuningFiles& files) {
  KILN_ASSIGN_OR_RETURN(const auto texts, files.list());
  std::vector<Row> rows;
  for (const auto& [name, text] : texts) rows.push_back({name, internal::parse_record(text)});
  return rows;
}

absl::StatusOr<Exit> show(const Session& session, const std::string& name) {
  KILN_ASSIGN_OR_RETURN(const cache::TuningFiles files, open_records());
  if (!name.empty()) {
    KILN_ASSIGN_OR_RETURN(const std::optional<std::string> text, files.find(name));
    if (!text) return absl::NotFoundError("tuning record: there is none of name " + name);
    const absl::StatusOr<Json> json = internal::parse_json(*text);
    if (!json.ok())
      return absl::DataLossError("tuning record " + name + ": " + reason_of(json.status()));
    print_json(*json);
    return Exit::ok;
  }
  KILN_ASSIGN_OR_RETURN(const std::vector<Row> rows, read_rows(files));
  Json list = Json::array();
  for (const Row& row : rows) {
    Json json;
    json["name"] = row.name;
    if (row.record.ok()) {
      const TuneReport& report = row.record->report;
      json["op"] = report.op;
      json["implementation"] = report.implementation;
      json["identity_text"] = report.identity_text;
      json["board"] = row.record->key.facts.calibration;
      json["default"] = to_string(report.default_config);
      json["winner"] = to_string(report.winner);
      json["default_seconds"] = report.default_seconds;
      json["winner_seconds"] = report.winner_seconds;
      json["complete"] = report.complete;
    } else {
      json["error"] = reason_of(row.record.status());
    }
    list.push_back(std::move(json));
  }
  if (session.json) {
    Json json;
    json["records"] = std::move(list);
    print_json(json);
    return Exit::ok;
  }
  for (const Json& json : list) {
    if (json.contains("error")) {
      print("%s: %s\n", json["name"].get<std::string>(), json["error"].get<std::string>());
      continue;
    }
    print("%s  %s %s %s on %s\n  %s at %s; default %s at %s\n", json["name"].get<std::string>(),
          json["op"].get<std::string>(), json["implementation"].get<std::string>(),
          json["identity_text"].get<std::string>(), json["board"].get<std::string>(),
          json["winner"].get<std::string>(), seconds_text(json["winner_seconds"].get<double>()),
          json["default"].get<std::string>(), seconds_text(json["default_seconds"].get<double>()));
  }
  print("%zu records\n", list.size());
  return Exit::ok;
}

absl::StatusOr<Exit> clear(const Session& session, const std::string& name) {
  KILN_ASSIGN_OR_RETURN(const cache::TuningFiles files, open_records());
  std::size_t removed = 0;
  if (!name.empty()) {
    KILN_ASSIGN_OR_RETURN(const bool there, files.remove(name));
    if (!there) return absl::NotFoundError("tuning record: there is none of name " + name);
    removed = 1;
  } else {
    KILN_ASSIGN_OR_RETURN(const auto texts, files.list());
    for (const auto& [one, text] : texts) {
      KILN_ASSIGN_OR_RETURN(const bool there, files.remove(one));
      if (there) ++removed;
    }
  }
  if (session.json) {
    Json json;
    json["removed"] = removed;
    print_json(json);
  } else {
    print("%zu records removed\n", removed);
  }
  return Exit::ok;
}

// One file: a list of records, each as in the folder.
absl::StatusOr<Exit> export_records(const Session& session, const std::string& path) {
  KILN_ASSIGN_OR_RETURN(const cache::TuningFiles files, open_records());
  KILN_ASSIGN_OR_RETURN(const auto texts, files.list());
  Json list = Json::array();
  for (const auto& [name, text] : texts) {
    const absl::StatusOr<TuneRecord> record = internal::parse_record(text);
    if (record.ok())
      list.push_back(Json::parse(text));
    else
      tell("left out: %s: %s\n", name, reason_of(record.status()));
  }
  KILN_RETURN_IF_ERROR(write_output("FILE", path, list.dump(1) + "\n"));
  if (path != "-" && session.json) {
    Json json;
    json["path"] = path;
    json["records"] = list.size();
    print_json(json);
  } else if (path != "-") {
    print("%s: %zu records\n", path, list.size());
  }
  return Exit::ok;
}

absl::StatusOr<Exit> import_records(const Session& session, const std::string& path) {
  KILN_ASSIGN_OR_RETURN(const std::string text, read_input(path));
  const absl::StatusOr<Json> parsed = internal::parse_json(text);
  if (!parsed.ok()) return absl::InvalidArgumentError(path + ": " + reason_of(parsed.status()));
  const Json& list = *parsed;
  if (!list.is_array())
    return absl::InvalidArgumentError(path + ": must be a file that `kiln tune export` wrote");
  // All or nothing: what is no record is seen before any is kept.
  std::vector<TuneRecord> records;
  for (const Json& one : list) {
    absl::StatusOr<TuneRecord> record = internal::parse_record(one.dump());
    if (!record.ok()) return absl::InvalidArgumentError(path + ": " + reason_of(record.status()));
    records.push_back(*std::move(record));
  }
  KILN_ASSIGN_OR_RETURN(const cache::TuningFiles files, open_records());
  std::size_t kept = 0;
  for (const TuneRecord& record : records) {
    KILN_ASSIGN_OR_RETURN(const bool taken, merge_record(files, record));
    if (taken) ++kept;
  }
  if (session.json) {
    Json json;
    json["records"] = records.size();
    json["kept"] = kept;
    print_json(json);
  } else {
    print("%zu records imported, %zu were here already as well measured or better\n", kept,
          records.size() - kept);
  }
  return Exit::ok;
}

}  // namespace

absl::StatusOr<bool> merge_record(const cache::TuningFiles& files, const TuneRecord& record) {
  const std::string name = record_name(record.key);
  KILN_ASSIGN_OR_RETURN(const std::optional<std::string> here, files.find(name));
  const absl::StatusOr<TuneRecord> mine =
      here ? internal::parse_record(*here) : absl::NotFoundError("none");
  if (mine.ok() && mine->conditions == record.conditions &&
      &better_measured(*mine, record) == &*mine)
    return false;
  KILN_RETURN_IF_ERROR(files.put(name, record_to_json(record)));
  return true;
}

void add_tune_records(CLI::App& tune, Session& session) {
  const auto add = [&](const char* word, const char* what, const char* argument, const char* about,
                       bool required, std::initializer_list<Example> list,
                       absl::StatusOr<Exit> (*run)(const Session&, const std::string&)) {
    auto text = std::make_shared<std::string>();
    CLI::App* command = tune.add_subcommand(word, what);
    command->add_option(argument, *text, about)->required(required);
    examples(*command, list);
    command->callback([&session, text, run] {
      session.command = [&session, text, run] { return run(session, *text); };
    });
  };
  add("show", "list the records, or print one", "NAME", "of one record", false,
      {{"kiln tune show", "all, a line or two each"},
       {"kiln tune show 1c39d27885ba8b084179bed65e1fd6b2", "one, whole"}},
      show);
  add("clear", "remove the records, or one", "NAME", "of one record", false,
      {{"kiln tune clear", "all of the cache folder"}}, clear);
  add("export", "write all records into one file", "FILE", "to write; - is stdout", true,
      {{"kiln tune export winners.json", "for other machines"}}, export_records);
  add("import", "take records from a file; of two, the better measured stays", "FILE",
      "to read; - is stdin", true, {{"kiln tune import winners.json", "into the cache folder"}},
      import_records);
}

}  // namespace kiln::cli

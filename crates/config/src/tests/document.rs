//! The settings as documents: config/quoin.toml and docs/operate/configuration.md.

use std::path::Path;

use crate::load::load;
use crate::table::{SETTINGS, SettingRow, Settings};

/// Columns of a comment in the settings file.
const COMMENT_WIDTH: usize = 90;

/// The data folder of an installation from a package. There is no default, because without a
/// package the program cannot rely on any folder.
const DATA_DIR: &str = "data-dir = \"/var/lib/quoin\"";

/// The text of config/quoin.toml, which packages install as /etc/quoin/quoin.toml: every setting with its
/// default, as a comment.
fn settings_file() -> String {
    let mut text = String::from(
        "# Settings of Quoin, each with its default. Remove the # before a setting to change it.\n\
         #\n\
         # Environment variables (QUOIN_PORT for port) override this file, and flags (--port)\n\
         # override both. `quoin check-config` shows the settings in effect. This file is generated\n\
         # from the table in crates/config/src/table.rs; a test compares them.\n",
    );
    for row in SETTINGS {
        text.push('\n');
        for line in wrap(&format!("{}.", row.help)) {
            text.push_str(&format!("# {line}\n"));
        }
        for line in wrap(&format!("Accepted: {}.", row.kind.accepted())) {
            text.push_str(&format!("# {line}\n"));
        }
        text.push_str(&format!(
            "#{} = {}\n",
            row.name,
            row.kind.to_toml(row.default)
        ));
        if DATA_DIR.starts_with(&format!("{} ", row.name)) {
            text.push_str(&format!("{DATA_DIR}\n"));
        }
    }
    text.push_str(
        "\n# Users, with rules as in ACL SETUSER (docs/operate/security.md). Not allowed with\n\
         # aclfile or FoundationDB.\n\
         #user = [\"worker on >secret ~jobs:* +@list\"]\n",
    );
    text
}

/// The text of docs/operate/configuration.md.
fn reference() -> String {
    let mut text = String::from(
        "# Configuration\n\n\
         This page is generated from the table in `crates/config/src/table.rs`; a test compares them.\n\n\
         You can give a setting in a settings file (TOML, `--config PATH` or `QUOIN_CONFIG`), in an\n\
         environment variable, or in a flag. Flags override variables, variables override the file,\n\
         and the file overrides defaults. Names are Redis's if Redis has the setting: with hyphens in\n\
         the file (`tcp-keepalive`) and in flags (`--tcp-keepalive`), with underscores in variables\n\
         (`QUOIN_TCP_KEEPALIVE`). A `redis.conf` is not read:\n\
         `quoin check-config --config redis.conf > quoin.toml` translates it.\n\n\
         `quoin check-config` takes the same options. It shows the settings in effect and the source\n\
         of each, and exits with 0. If anything is wrong, it lists every error and exits with 1, or\n\
         with 2 for a wrong command line. Unknown keys and unknown `QUOIN_*` variables are errors. An empty\n\
         variable counts as not set. Numbers may be quoted.\n\n\
         Variables that Kubernetes creates for a service called `quoin` (`QUOIN_SERVICE_HOST`,\n\
         `QUOIN_PORT=tcp://…`) are not settings: the server logs a warning and ignores them.\n\
         Those that begin with `QUOIN_CLIENT_`, `QUOIN_IMPORT_` or `QUOIN_EXPORT_` are for the tools\n\
         (docs/operate/security.md), `QUOIN_TEST_` and `QUOIN_BENCH_` for tests and benchmarks.\n\n\
         `CONFIG SET` changes the settings marked *yes* in a running server. `CONFIG REWRITE` writes\n\
         them and the users to the settings file. `CONFIG GET` also knows the other parameters of Redis 7.2. If\n\
         `CONFIG SET` accepts one of them, it is remembered until the server stops, without effect.\n\n\
         Flags and variables cannot set users. The settings file can: `user = [\"NAME RULE …\", …]`\n\
         (docs/operate/security.md).\n\n\
         | setting | default | accepted | CONFIG SET | meaning |\n\
         |---|---|---|---|---|\n",
    );
    for row in SETTINGS {
        text.push_str(&reference_row(row));
    }
    text
}

fn reference_row(row: &SettingRow) -> String {
    let default = match row.default {
        "" => "none".to_owned(),
        default => format!("`{default}`"),
    };
    let changes = match row.is_runtime_changeable {
        true => "yes",
        false => "no",
    };
    format!(
        "| `{}` | {default} | {} | {changes} | {} |\n",
        row.name,
        row.kind.accepted(),
        row.help
    )
}

/// Breaks a text into lines at spaces.
fn wrap(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        if !line.is_empty() && line.len() + 1 + word.len() > COMMENT_WIDTH {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

/// Compares a document with its file; with QUOIN_TEST_WRITE_DOCUMENTS set, writes it first.
#[track_caller]
fn check(file: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(file);
    if std::env::var_os("QUOIN_TEST_WRITE_DOCUMENTS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == text,
        "{file} differs from the table: QUOIN_TEST_WRITE_DOCUMENTS=1 cargo test --lib document"
    );
}

#[test]
fn the_settings_file_is_that_of_the_table() {
    check("config/quoin.toml", &settings_file());
}

#[test]
fn the_reference_is_that_of_the_table() {
    check("docs/operate/configuration.md", &reference());
}

#[test]
fn the_settings_file_holds_the_defaults() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("quoin.toml");
    let load_text = |text: &str| {
        std::fs::write(&path, text).unwrap();
        load(Some(path.clone()), [], []).unwrap().settings
    };
    let installed = Settings {
        data_dir: "/var/lib/quoin".into(),
        ..Settings::default()
    };
    assert_eq!(load_text(&settings_file()), installed);
    let settings = settings_file().replace(DATA_DIR, "");
    let (settings, _) = settings.split_once("#user").unwrap();
    let is_setting = |line: &&str| line.starts_with('#') && !line.starts_with("# ");
    let settings = settings.lines().filter(is_setting);
    let settings: Vec<&str> = settings.map(|line| &line[1..]).collect();
    assert_eq!(load_text(&settings.join("\n")), Settings::default());
    let settings = settings.iter().filter(|line| !line.is_empty());
    assert_eq!(settings.count(), SETTINGS.len());
}

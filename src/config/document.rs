//! The settings as documents: config/quoin.toml and docs/operate/configuration.md.

use super::table::{SETTINGS, SettingRow};

/// Columns of a comment in the settings file.
const COMMENT_WIDTH: usize = 90;

/// The text of config/quoin.toml: every setting with its default.
pub fn settings_file() -> String {
    let mut text = String::from(
        "# Settings of Quoin, each with its default.\n\
         #\n\
         # quoin --config config/quoin.toml\n\
         #\n\
         # Environment variables (QUOIN_PORT for port) win over this file, flags (--port) over\n\
         # both. `quoin check-config` shows what comes out. This file is written from the table\n\
         # in src/config/table.rs, which a test checks.\n",
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
            "{} = {}\n",
            row.name,
            row.kind.to_toml(row.default)
        ));
    }
    text
}

/// The text of docs/operate/configuration.md.
pub fn reference() -> String {
    let mut text = String::from(
        "# Configuration\n\n\
         This page is written from the table in `src/config/table.rs`, which a test checks.\n\n\
         A setting may stand in a settings file (TOML, `--config PATH` or `QUOIN_CONFIG`), in an\n\
         environment variable, or in a flag; the later wins: default, file, variable, flag. Names\n\
         are Redis's where Redis has the setting, with hyphens in the file (`tcp-keepalive`) and in\n\
         flags (`--tcp-keepalive`), with underscores in variables (`QUOIN_TCP_KEEPALIVE`).\n\n\
         `quoin check-config`, with the same options, shows the settings in effect and where each\n\
         came from; it exits with 0, or with 1 (2 for a wrong command line) and what is wrong.\n\
         It tells all that is wrong, not only the first. Unknown keys and unknown `QUOIN_*`\n\
         variables are errors; a variable that is empty counts as not set, and a number may stand\n\
         in quotes. A `redis.conf` is not read. (Kubernetes makes such variables\n\
         for a service called `quoin`: call it otherwise, or set `enableServiceLinks: false`.)\n\
         Variables that begin with `QUOIN_TEST_`, `QUOIN_BENCH_` or `QUOIN_IMPORT_` are left to\n\
         tests, benchmarks and `quoin import` (docs/start/migration.md).\n\n\
         `CONFIG SET` changes the settings that are marked below in a running server, and\n\
         `CONFIG REWRITE` writes them to the settings file. The other parameters of Redis 7.2 are\n\
         known to `CONFIG GET`; those that `CONFIG SET` accepts are remembered until the server\n\
         stops and have no effect.\n\n\
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::load::load;
    use crate::config::settings::Settings;

    /// Compares a document with its file; with QUOIN_TEST_WRITE_DOCUMENTS set, writes it first.
    #[track_caller]
    fn check(file: &str, text: &str) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
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
        std::fs::write(&path, settings_file()).unwrap();
        let loaded = load(Some(path), [], []).unwrap();
        assert_eq!(loaded.settings, Settings::default());
    }
}

use super::*;

fn run(line: &str) -> Result<Invocation, ConfigError> {
    parse(line.split(' ').map(OsString::from), [])
}

#[test]
fn flags_are_settings() {
    let Ok(Invocation::Run(loaded)) = run("quoin --port 0 --slowlog-log-slower-than -1") else {
        panic!("must run");
    };
    assert_eq!(loaded.settings.port, 0);
    assert_eq!(loaded.settings.slowlog_log_slower_than_us, -1);
}

#[test]
fn check_config_takes_the_same_flags_on_either_side() {
    for line in ["quoin check-config --port 7", "quoin --port 7 check-config"] {
        let Ok(Invocation::CheckConfig(loaded)) = run(line) else {
            panic!("{line}");
        };
        assert_eq!(loaded.settings.port, 7, "{line}");
    }
}

#[test]
fn help_names_every_setting_with_default_and_variable() {
    let Ok(Invocation::Print(text)) = run("quoin --help") else {
        panic!("must print");
    };
    for row in SETTINGS {
        assert!(text.contains(&format!("--{} <", row.name)), "{}", row.name);
        assert!(text.contains(&row.environment()), "{}", row.name);
    }
    assert!(text.contains("[default: 6379]"));
    assert!(text.contains("check-config"));
}

#[test]
fn the_version_says_whether_foundationdb_is_there() {
    let Ok(Invocation::Print(text)) = run("quoin --version") else {
        panic!("must print");
    };
    assert_eq!(text, format!("quoin {}\n", version()));
    assert!(text.contains("FoundationDB"));
}

#[test]
fn a_wrong_flag_names_the_nearest_and_exits_with_2() {
    let error = run("quoin --prot 1").unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("unexpected argument '--prot' found; did you mean '--port'?"),
        "{error}"
    );
    assert_eq!(error.exit_code(), 2);
}

#[test]
fn a_wrong_value_of_a_flag_names_the_flag() {
    let error = run("quoin --fsync never").unwrap_err();
    assert_eq!(
        error.to_string(),
        "fsync (flag --fsync): wrong value 'never': argument(s) must be one of the following: \
         everysec, always; accepted: everysec, always"
    );
    assert_eq!(error.exit_code(), 2);
}

#[test]
fn import_has_a_command_line_of_its_own() {
    let Ok(Invocation::Import(options)) = run("quoin import --from redis://db:7") else {
        panic!("must import");
    };
    assert_eq!(options.from.to_string(), "redis://db:7");
    assert!(matches!(
        run("quoin import --from redis://db --port 7"),
        Err(ConfigError::Usage(_))
    ));
    assert!(matches!(
        run("quoin --port 7 import"),
        Err(ConfigError::Usage(_))
    ));
    let Ok(Invocation::Print(text)) = run("quoin import --help") else {
        panic!("must print");
    };
    assert!(text.contains("--resume"));
}

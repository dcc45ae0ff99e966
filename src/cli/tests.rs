use super::grammar::STORE_SETTINGS;
use super::*;

fn run(line: &str) -> Result<Invocation, ConfigError> {
    parse(line.split(' ').map(OsString::from), [])
}

#[track_caller]
pub(super) fn printed(line: &str) -> String {
    match run(line) {
        Ok(Invocation::Print(text)) => text,
        other => panic!("{line}: {other:?}"),
    }
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
fn commands_without_settings_neither_show_nor_take_them() {
    for command in ["version", "man", "completions"] {
        let help = printed(&format!("quoin {command} --help"));
        assert!(
            !help.contains("--port") && !help.contains("--config"),
            "{help}"
        );
    }
    for line in [
        "quoin version --port 1",
        "quoin --config x man",
        "quoin completions bash --port 1",
        "quoin --port 1 import",
    ] {
        let said = refusal(line);
        assert!(
            said.contains(" takes no settings: quoin "),
            "{line}: {said}"
        );
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
    assert_eq!(
        text,
        format!("quoin {}\n", quoin_server::version::DESCRIPTION)
    );
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
        "fsync (flag --fsync): wrong value 'never'; accepted: everysec, always"
    );
    assert_eq!(error.exit_code(), 2);
}

#[track_caller]
pub(super) fn refusal(line: &str) -> String {
    let error = run(line).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    let text = error.to_string();
    text.lines().next().unwrap().to_owned()
}

#[test]
fn flags_that_others_have_name_ours() {
    assert_eq!(
        refusal("quoin -p 7000"),
        "unexpected argument '-p' found; did you mean '--port'?"
    );
    assert_eq!(
        refusal("quoin --appendonly yes"),
        "unexpected argument '--appendonly' found; Redis has it, Quoin does not (every write is \
         kept; fsync sets when it reaches the disk)"
    );
    let known: Vec<&str> = SETTINGS.iter().map(|row| row.name).collect();
    for (other, name) in FLAGS_OF_OTHERS {
        assert!(known.contains(&name) || name == FILE_FLAG, "{name}");
        let said = refusal(&format!("quoin {other} x"));
        assert!(said.ends_with(&format!("'--{name}'?")), "{said}");
    }
}

#[test]
fn a_wrong_flag_of_a_command_names_the_nearest_of_its_own() {
    for (line, meant) in [
        ("quoin backup --too x", "--to"),
        ("quoin backup --usr x", "--user"),
        ("quoin backup --prot 1", "--port"),
        ("quoin doctor --repare", "--repair"),
        ("quoin doctor --pasword x", "--password"),
        ("quoin compact --datadir x", "--data-dir"),
        ("quoin ping --sever x", "--server"),
        ("quoin check-config --confg x", "--config"),
        ("quoin export --too x", "--to"),
        ("quoin export --form x", "--from"),
        ("quoin import --from x --replase", "--replace"),
        ("quoin restore --form x", "--from"),
        ("quoin restore --data-dri x", "--data-dir"),
    ] {
        let said = refusal(line);
        assert!(
            said.ends_with(&format!("found; did you mean '{meant}'?")),
            "{line}: {said}"
        );
    }
    let whole = run("quoin export --too x").unwrap_err().to_string();
    assert!(
        !whole.contains("tip:") && whole.contains("Usage: quoin export"),
        "{whole}"
    );
}

#[test]
fn a_settings_file_without_its_flag_names_the_flag() {
    for file in ["redis.conf", "/etc/quoin"] {
        let said = refusal(&format!("quoin {file}"));
        assert!(
            said.starts_with(&format!(
                "no such command: '{file}'; pass a settings file with --config"
            )),
            "{said}"
        );
    }
    for word in NAMES_OF_THE_SERVER {
        assert_eq!(
            refusal(&format!("quoin {word}")),
            format!("no such command: '{word}'; quoin without a command starts the server")
        );
    }
    assert_eq!(
        refusal("quoin docter"),
        "no such command: 'docter'; did you mean 'doctor'?"
    );
}

#[test]
fn version_and_help_are_commands_too() {
    for line in ["quoin version", "quoin -v", "quoin -V"] {
        assert_eq!(printed(line), printed("quoin --version"));
    }
    assert_eq!(printed("quoin help"), printed("quoin --help"));
    assert_eq!(printed("quoin help doctor"), printed("quoin doctor --help"));
    assert_eq!(printed("quoin help import"), printed("quoin import --help"));
    assert_eq!(printed("quoin help export"), printed("quoin export --help"));
    for queue in ["PQ.", "TASK."] {
        assert!(printed("quoin --help").contains(queue));
    }
}

#[test]
fn the_help_of_doctor_shows_what_says_which_store_it_is() {
    let Ok(Invocation::Print(text)) = run("quoin doctor --help") else {
        panic!("must print");
    };
    for shown in STORE_SETTINGS.iter().chain(&[REPAIR_FLAG, FILE_FLAG]) {
        assert!(text.contains(&format!("--{shown} ")), "{shown}: {text}");
    }
    for hidden in ["timeout", "maxclients"] {
        assert!(!text.contains(&format!("--{hidden} ")), "{hidden}: {text}");
    }
    for line in [
        "quoin doctor --port 7 --data-dir x",
        "quoin --port 7 --data-dir x doctor",
    ] {
        let Ok(Invocation::Doctor(loaded, _, _)) = run(line) else {
            panic!("{line}");
        };
        assert_eq!(loaded.settings.port, 7, "{line}");
        assert_eq!(loaded.settings.data_dir, PathBuf::from("x"), "{line}");
    }
}

#[test]
fn export_has_a_command_line_of_its_own() {
    let Ok(Invocation::Export(options)) = run("quoin export --to dump.rdb") else {
        panic!("must export");
    };
    assert_eq!(options.to, PathBuf::from("dump.rdb"));
    for line in ["quoin export --to f --port 7", "quoin --port 7 export"] {
        assert!(matches!(run(line), Err(ConfigError::Usage(_))), "{line}");
    }
}

#[test]
fn import_has_a_command_line_of_its_own() {
    let Ok(Invocation::Import(options)) = run("quoin import --from redis://db:7") else {
        panic!("must import");
    };
    assert!(
        matches!(&options.from, import::From::Server(address) if address.to_string() == "redis://db:7")
    );
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

#[test]
fn commands_show_no_options_of_others() {
    for (command, own) in [
        ("import", "--dry-run"),
        ("export", "--to"),
        ("restore", "--from"),
    ] {
        let text = printed(&format!("quoin {command} --help"));
        assert!(text.contains(own), "{text}");
        assert!(text.contains(&format!("Usage: quoin {command} ")), "{text}");
        for other in ["--maxclients", "--fsync"] {
            assert!(!text.contains(other), "{command}: {other}");
        }
    }
    for command in ["backup", "compact", "doctor", "ping", "completions", "man"] {
        assert!(
            !printed(&format!("quoin {command} --help")).contains("--maxclients"),
            "{command}"
        );
    }
    let first_lines: String = printed("quoin --help").lines().take(3).collect();
    for queue in ["PQ.", "TASK."] {
        assert!(first_lines.contains(queue), "{first_lines}");
    }
}

//! Documents generated from the command line's grammar: completions for shells, and man pages.

use clap::builder::StyledStr;
use clap::{ArgMatches, Command};
use clap_complete::Shell;
use clap_mangen::Man;

use super::grammar::{
    BACKUP, CHECK_CONFIG, COMPACT, COMPLETIONS, DOCTOR, EXPORT, FILE_FLAG, IMPORT, MAN, PAGE, PING,
    QUEUES, RESTORE, SHELL, TOP, VERSION, command,
};
use quoin_config::ConfigError;
use quoin_tools::backup;
use quoin_tools::export;
use quoin_tools::import;
use quoin_tools::queues;
use quoin_tools::top;

const PROGRAM: &str = "quoin";
/// Commands whose grammar is that of the settings.
const NAMES: [&str; 8] = [
    CHECK_CONFIG,
    DOCTOR,
    BACKUP,
    COMPACT,
    PING,
    COMPLETIONS,
    MAN,
    VERSION,
];

/// The completions that were asked for.
pub(super) fn completions(matches: &ArgMatches) -> String {
    let shell = matches.get_one::<String>(SHELL).map(String::as_str);
    let shell = match shell {
        Some("zsh") => Shell::Zsh,
        Some("fish") => Shell::Fish,
        _ => Shell::Bash,
    };
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut described(), PROGRAM, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// The requested page. The page of a subcommand is named like `queues-peek`.
///
/// # Errors
/// `Usage` if there is no such command.
pub(super) fn man(matches: &ArgMatches) -> Result<String, ConfigError> {
    let mut whole = described();
    whole.build();
    let (page, title) = match matches.get_one::<String>(PAGE) {
        None => (whole, PROGRAM.to_owned()),
        Some(name) => {
            let of_command = || {
                let (command, own) = name.split_once('-')?;
                whole.find_subcommand(command)?.find_subcommand(own)
            };
            let found = whole.find_subcommand(name).or_else(of_command).cloned();
            let found = found.ok_or_else(|| {
                ConfigError::Usage(format!(
                    "no such command: '{name}'; quoin --help lists all commands"
                ))
            })?;
            (found, format!("{PROGRAM}-{name}"))
        }
    };
    let mut text = Vec::new();
    let rendered = Man::new(page).title(title).render(&mut text);
    rendered.map_err(|error| ConfigError::Usage(error.to_string()))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The whole grammar, each command with only its own options. (The parser accepts settings
/// anywhere, and hides most of them.)
fn described() -> Command {
    let whole = command();
    let file = whole
        .get_arguments()
        .find(|argument| argument.get_id() == FILE_FLAG)
        .cloned();
    let commands = whole.get_subcommands().map(|one| match one.get_name() {
        IMPORT => import::command(),
        EXPORT => export::command(),
        RESTORE => backup::restore_command(),
        QUEUES => queues::command(),
        TOP => top::command(),
        name => {
            let known = NAMES.iter().find(|known| **known == name);
            let takes_settings = [CHECK_CONFIG, DOCTOR, BACKUP, COMPACT, PING].contains(&name);
            let own = one
                .get_arguments()
                .filter(|argument| name == CHECK_CONFIG || !argument.is_hide_set());
            let own = own.chain(file.iter().filter(|_| takes_settings));
            Command::new(known.copied().unwrap_or_default())
                .about(text(one.get_about()))
                .after_help(text(one.get_after_help()))
                .args(own.map(|argument| argument.clone().global(false).hide(false)))
        }
    });
    let commands: Vec<Command> = commands.collect();
    let own = whole.get_arguments();
    let own = own.map(|argument| argument.clone().global(false));
    Command::new(PROGRAM)
        .version(quoin_server::version::DESCRIPTION)
        .disable_version_flag(true)
        .about(text(whole.get_about()))
        .after_help(text(whole.get_after_help()))
        .args(own)
        .subcommands(commands)
}

fn text(text: Option<&StyledStr>) -> StyledStr {
    text.cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use crate::cli::tests::printed;
    use quoin_config::table::SETTINGS;

    #[test]
    fn completions_know_commands_and_their_own_options() {
        for shell in ["bash", "zsh", "fish"] {
            let text = printed(&format!("quoin completions {shell}"));
            for word in [
                "doctor",
                "dry-run",
                "until-commit",
                "maxclients",
                "completions",
            ] {
                assert!(text.contains(word), "{word} is not in that for {shell}");
            }
        }
        let fish = printed("quoin completions fish");
        let of = |command: &str| {
            let command = format!("__fish_quoin_using_subcommand {command}\"");
            let lines = fish.lines().filter(|line| line.contains(&command));
            lines.collect::<Vec<_>>().join("\n")
        };
        assert!(of("import").contains("-l dry-run") && !of("import").contains("-l maxclients"));
        assert!(of("doctor").contains("-l data-dir") && !of("doctor").contains("-l maxclients"));
    }

    #[test]
    fn every_command_is_described() {
        let whole = super::described();
        let described: Vec<_> = whole.get_subcommands().map(|one| one.get_name()).collect();
        let parsed = super::command();
        let parsed: Vec<_> = parsed
            .get_subcommands()
            .map(|one| one.get_name().to_owned())
            .collect();
        assert_eq!(described, parsed);
    }

    #[test]
    fn there_is_a_page_for_each_command() {
        let page = printed("quoin man");
        for row in SETTINGS {
            let name = row.name.replace('-', "\\-");
            assert!(page.contains(&name), "{name}");
        }
        for word in ["TASK", "PQ", "check\\-config"] {
            assert!(page.contains(word), "{word}");
        }
        let import = printed("quoin man import");
        assert!(
            import.contains("dry\\-run") && !import.contains("maxclients"),
            "{import}"
        );
        let top = printed("quoin man top");
        assert!(top.contains("interval"), "{top}");
        let purge = printed("quoin man queues-purge");
        assert!(
            purge.contains("quoin\\-queues\\-purge") || purge.contains("quoin-queues-purge"),
            "{purge}"
        );
        let wrong = crate::cli::tests::refusal("quoin man nosuch");
        assert!(wrong.contains("no such command"), "{wrong}");
    }
}

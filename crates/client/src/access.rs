//! How tools log in to servers, and which files they use for TLS. All tools have the same flags and
//! variables, named as in redis-cli.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches};

use super::address::Address;
use quoin_base::limits::PASSWORD_FILE_BYTES_MAX;

const CA_FILE: &str = "cacert";
const CERTIFICATE_FILE: &str = "cert";
const KEY_FILE: &str = "key";

/// The tools' help text about addresses and passwords.
pub const ADDRESS_HELP: &str = "ADDRESS is redis://[user:password@]host[:port][/database], the \
     same with rediss:// for TLS, or\nunix://[user:password@]/path[?db=database].";

/// A server that a tool connects to, as its flags and variables name it.
pub struct End {
    /// Its flags.
    pub flags: Flags,
    /// Prefixes of its variables. Only the first prefix with any variable set is used.
    pub variables: &'static [&'static str],
}

/// The names of the flags.
pub struct Flags {
    /// Of the user.
    pub user: &'static str,
    /// Of the password.
    pub password: &'static str,
    /// Of the file that has it.
    pub password_file: &'static str,
}

impl End {
    /// The Quoin that a tool with one server is about.
    pub const QUOIN: End = End {
        flags: Flags {
            user: "user",
            password: "password",
            password_file: "password-file",
        },
        variables: &["QUOIN_CLIENT_"],
    };

    /// Its flags.
    pub fn flags(&self) -> [Arg; 3] {
        let variable = self.variables.last().copied().unwrap_or_default();
        [
            (
                self.flags.user,
                "NAME",
                format!("User to log in as [default: default] [env: {variable}USER]"),
            ),
            (
                self.flags.password,
                "PASSWORD",
                format!(
                    "Password; other users of the machine can see flags, so prefer the file or the \
                     environment variable [env: {variable}PASSWORD]"
                ),
            ),
            (
                self.flags.password_file,
                "PATH",
                format!("File with the password in its first line [env: {variable}PASSWORD_FILE]"),
            ),
        ]
        .map(|(name, value, help)| {
            let arg = Arg::new(name).long(name).value_name(value);
            let arg = match value {
                "PATH" => arg.value_parser(clap::value_parser!(PathBuf)),
                _ => arg,
            };
            arg.help(help)
        })
    }

    /// The login from the command line and the environment. As with settings, an empty variable
    /// counts as not set.
    ///
    /// # Errors
    /// What is wrong, in words for people.
    pub fn access(
        &self,
        matches: &ArgMatches,
        variables: &[(OsString, OsString)],
    ) -> Result<Access, String> {
        let Flags {
            user,
            password,
            password_file,
        } = self.flags;
        let text = |name: &str| matches.get_one::<String>(name).cloned();
        let path = |name: &str| matches.get_one::<PathBuf>(name).cloned();
        let given = match (text(password), path(password_file)) {
            (Some(_), Some(_)) => {
                return Err(format!(
                    "--{password} and --{password_file} exclude each other"
                ));
            }
            (Some(password), None) => Some(password),
            (None, Some(path)) => Some(first_line(&path)?),
            (None, None) => None,
        };
        Ok(Access {
            given: Login {
                user: text(user),
                password: given,
            },
            environment: self.login_of(variables)?,
            ca_file: path(CA_FILE),
            certificate_file: path(CERTIFICATE_FILE),
            key_file: path(KEY_FILE),
        })
    }

    fn login_of(&self, variables: &[(OsString, OsString)]) -> Result<Login, String> {
        // Not per variable, because a password belongs to the user and the server that it is set
        // with.
        for begin in self.variables {
            let login = login_with(begin, variables)?;
            if login != Login::default() {
                return Ok(login);
            }
        }
        Ok(Login::default())
    }
}

/// The login from the variables with this prefix.
fn login_with(begin: &str, variables: &[(OsString, OsString)]) -> Result<Login, String> {
    let value = |name: &str| {
        let name = format!("{begin}{name}");
        let (_, value) = variables.iter().find(|(known, _)| *known == *name)?;
        (!value.is_empty()).then_some((name, value))
    };
    let text = |(name, value): (String, &OsString)| {
        let value = value.to_str().map(str::to_owned);
        value.ok_or_else(|| format!("{name} is not UTF-8"))
    };
    let password = match (value("PASSWORD"), value("PASSWORD_FILE")) {
        (Some(password), _) => Some(text(password)?),
        (None, Some((_, path))) => Some(first_line(Path::new::<OsStr>(path))?),
        (None, None) => None,
    };
    Ok(Login {
        user: value("USER").map(text).transpose()?,
        password,
    })
}

/// The first line of a file, without its end.
fn first_line(path: &Path) -> Result<String, String> {
    let read = || {
        let mut text = String::new();
        let file = std::fs::File::open(path)?;
        file.take(PASSWORD_FILE_BYTES_MAX)
            .read_to_string(&mut text)?;
        Ok(text)
    };
    let text = read()
        .map_err(|error: std::io::Error| format!("password file {}: {error}", path.display()))?;
    match text.lines().next().filter(|line| !line.is_empty()) {
        Some(line) => Ok(line.to_owned()),
        None => Err(format!(
            "password file {}: its first line is empty",
            path.display()
        )),
    }
}

/// The files of TLS.
pub fn tls_flags() -> [Arg; 3] {
    [
        (
            CA_FILE,
            "CA certificates (PEM) that TLS servers are checked against [default: those of the \
             system]",
        ),
        (
            CERTIFICATE_FILE,
            "Client certificate (PEM) for servers that ask for one",
        ),
        (
            KEY_FILE,
            "Private key of that certificate (PEM, not encrypted)",
        ),
    ]
    .map(|(name, help)| {
        Arg::new(name)
            .long(name)
            .value_name("PATH")
            .value_parser(clap::value_parser!(PathBuf))
            .help(help)
    })
}

/// A hint for an error of the server if a login would help, otherwise empty.
pub fn login_hint(reply: &str) -> &'static str {
    let begins = |code| reply.trim_start_matches('-').starts_with(code);
    match ["NOAUTH", "WRONGPASS", "NOPERM"].into_iter().any(begins) {
        true => {
            "; log in with --user and --password-file as a user who may do this \
             (docs/operate/security.md, Tools)"
        }
        false => "",
    }
}

#[derive(Clone, Default, PartialEq, Eq)]
struct Login {
    user: Option<String>,
    password: Option<String>,
}

/// How a tool logs in at a server, and the files of TLS. Shown without passwords.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// From flags, which override the address.
    given: Login,
    /// From the environment, which the address overrides.
    environment: Login,
    ca_file: Option<PathBuf>,
    certificate_file: Option<PathBuf>,
    key_file: Option<PathBuf>,
}

impl fmt::Debug for Access {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Access")
    }
}

impl Address {
    /// This address with a tool's login, and the files of TLS if it is encrypted.
    pub fn with(mut self, access: &Access) -> Self {
        let Access {
            given, environment, ..
        } = access.clone();
        // A password belongs to the user that is named with it.
        let is_other = given.user.is_some() && given.user != self.user;
        let own_password = self.password.take().filter(|_| !is_other);
        let environment_user = environment.user.filter(|_| own_password.is_none());
        self.user = given.user.or(self.user).or(environment_user);
        self.password = given.password.or(own_password).or(environment.password);
        if let Some(tls) = &mut self.tls {
            if access.ca_file.is_some() {
                tls.ca_file.clone_from(&access.ca_file);
                tls.server_file = None;
            }
            if access.certificate_file.is_some() || access.key_file.is_some() {
                tls.certificate_file.clone_from(&access.certificate_file);
                tls.key_file.clone_from(&access.key_file);
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::*;

    fn access(line: &str, variables: &[(&str, &str)]) -> Result<Access, String> {
        let words = std::iter::once("tool").chain(line.split_whitespace());
        let command = Command::new("tool").args(End::QUOIN.flags());
        let matches = command.args(tls_flags()).get_matches_from(words);
        let variables = variables.iter();
        let variables = variables.map(|(name, value)| (OsString::from(name), value.into()));
        End::QUOIN.access(&matches, &variables.collect::<Vec<_>>())
    }

    #[track_caller]
    fn login(address: &str, line: &str, variables: &[(&str, &str)]) -> String {
        let address = Address::parse(address).unwrap();
        let address = address.with(&access(line, variables).unwrap());
        let shown = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        format!("{} {}", shown(address.user), shown(address.password))
    }

    const VARIABLES: &[(&str, &str)] = &[
        ("QUOIN_CLIENT_USER", "eve"),
        ("QUOIN_CLIENT_PASSWORD", "of-eve"),
    ];

    #[test]
    fn flags_win_over_the_address_and_the_address_over_the_environment() {
        for (address, line, variables, expected) in [
            ("redis://h", "", VARIABLES, "eve of-eve"),
            ("redis://:own@h", "", VARIABLES, "- own"),
            ("redis://me@h", "", VARIABLES, "me of-eve"),
            ("redis://me:own@h", "--user other", &[], "other -"),
            ("redis://me:own@h", "--user me", &[], "me own"),
            ("redis://me:own@h", "--password p", &[], "me p"),
            ("redis://h", "--user u --password p", VARIABLES, "u p"),
            ("redis://h", "--password p", &[], "- p"),
            ("redis://h", "", &[("QUOIN_CLIENT_PASSWORD", "")], "- -"),
            ("unix:///s", "", VARIABLES, "eve of-eve"),
        ] {
            assert_eq!(
                login(address, line, variables),
                expected,
                "{address} {line}"
            );
        }
    }

    #[test]
    fn a_password_can_stand_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        let name = path.to_str().unwrap();
        std::fs::write(&path, "secret\nmore\n").unwrap();
        let flag = format!("--password-file {name}");
        assert_eq!(login("redis://h", &flag, &[]), "- secret");
        let variable = [("QUOIN_CLIENT_PASSWORD_FILE", name)];
        assert_eq!(login("redis://h", "", &variable), "- secret");
        for (line, expected) in [
            (
                "--password-file /nothing/there".to_owned(),
                "/nothing/there",
            ),
            (format!("{flag} --password x"), "exclude each other"),
        ] {
            let error = access(&line, &[]).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        std::fs::write(&path, "\n").unwrap();
        assert!(access(&flag, &[]).unwrap_err().contains("empty"));
    }

    #[test]
    fn a_login_is_of_the_variables_with_one_beginning() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        let name = path.to_str().unwrap();
        std::fs::write(&path, "of-target\n").unwrap();
        let end = End {
            variables: &["QUOIN_IMPORT_TO_", "QUOIN_CLIENT_"],
            ..End::QUOIN
        };
        for (own, value, expected) in [
            ("QUOIN_IMPORT_TO_PASSWORD_FILE", name, "- of-target"),
            ("QUOIN_IMPORT_TO_PASSWORD", "p", "- p"),
            ("QUOIN_IMPORT_TO_USER", "me", "me -"),
            ("QUOIN_IMPORT_TO_USER", "", "eve of-eve"),
        ] {
            let own = [(own, value)];
            let variables: Vec<_> = { VARIABLES.iter().chain(&own) }
                .map(|(name, value)| (OsString::from(name), value.into()))
                .collect();
            let login = end.login_of(&variables).unwrap();
            let shown = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
            let login = format!("{} {}", shown(login.user), shown(login.password));
            assert_eq!(login, expected, "{own:?}");
        }
    }

    #[test]
    fn nothing_shows_a_password() {
        let access = access("--user u --password secret", VARIABLES).unwrap();
        assert_eq!(format!("{access:?}"), "Access");
    }
}

//! `redis://` and `rediss://` addresses.

use quoin_tls::ClientOptions;
use std::fmt;

/// The port if an address has none.
const PORT_DEFAULT: u16 = 6379;
const SCHEME: &str = "redis://";
const TLS_SCHEME: &str = "rediss://";
const UNIX_SCHEME: &str = "unix://";

/// Address of a server, and how to log in. Shown without the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    /// Name or number, IPv6 without brackets. The path of a Unix socket begins with `/`.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// User of AUTH; `default` if there is only a password.
    pub user: Option<String>,
    /// Password of AUTH.
    pub password: Option<String>,
    /// Database, if the address has one.
    pub database: Option<u32>,
    /// How the connection is encrypted, if it is.
    pub tls: Option<Box<ClientOptions>>,
}

impl Address {
    /// A Unix socket with this path, without a login.
    pub fn unix(path: &str) -> Self {
        Self {
            host: path.to_owned(),
            port: 0,
            user: None,
            password: None,
            database: None,
            tls: None,
        }
    }

    /// Parses `redis://[user:password@]host[:port][/database]`, the same with `rediss://`, or
    /// `unix://[user:password@]/path[?db=database]`. In user and password, `%` and two digits are a
    /// byte.
    ///
    /// # Errors
    /// What is wrong, in words for people, without the password.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(rest) = text.strip_prefix(UNIX_SCHEME) {
            return Self::parse_unix(rest);
        }
        let (rest, tls) = match (text.strip_prefix(SCHEME), text.strip_prefix(TLS_SCHEME)) {
            (Some(rest), _) => (rest, None),
            (None, Some(rest)) => (rest, Some(Box::default())),
            (None, None) => {
                return Err(format!(
                    "an address must begin with {SCHEME}, {TLS_SCHEME} or {UNIX_SCHEME}"
                ));
            }
        };
        // The last @, because a password may contain one.
        let (login, rest) = match rest.rsplit_once('@') {
            Some((login, rest)) => (Some(login), rest),
            None => (None, rest),
        };
        let (user, password) = login_of(login)?;
        let (place, database) = match rest.split_once('/') {
            Some((place, "")) => (place, None),
            Some((place, number)) => (place, Some(database(number)?)),
            None => (rest, None),
        };
        let (host, port) = host_and_port(place)?;
        if host.is_empty() {
            return Err("the address has no host".to_owned());
        }
        Ok(Self {
            host,
            port,
            user,
            password,
            database,
            tls,
        })
    }

    fn parse_unix(rest: &str) -> Result<Self, String> {
        const WRONG: &str = "the address of a Unix socket is unix:///path";
        // The path begins with the first slash. A slash in a password is written as %2f.
        let at = rest.find('/').ok_or(WRONG)?;
        let (login, place) = rest.split_at(at);
        let login = match login {
            "" => None,
            login => Some(login.strip_suffix('@').ok_or(WRONG)?),
        };
        let (user, password) = login_of(login)?;
        let (path, database) = match place.split_once("?db=") {
            Some((path, number)) => (path, Some(database(number)?)),
            None => (place, None),
        };
        Ok(Self {
            user,
            password,
            database,
            ..Self::unix(path)
        })
    }
}

/// User and password from the part before the `@` of an address.
fn login_of(login: Option<&str>) -> Result<(Option<String>, Option<String>), String> {
    let Some(login) = login else {
        return Ok((None, None));
    };
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    let given = |text| decode(text).map(|text| Some(text).filter(|text| !text.is_empty()));
    Ok((given(user)?, given(password)?))
}

fn database(number: &str) -> Result<u32, String> {
    let parsed = number.parse();
    parsed.map_err(|_| format!("not a database number: {number}"))
}

fn host_and_port(place: &str) -> Result<(String, u16), String> {
    let (host, port) = match place
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
    {
        Some((host, behind)) => (host, behind.strip_prefix(':')),
        None => match place.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        },
    };
    let port = match port {
        None => PORT_DEFAULT,
        Some(port) => port
            .parse()
            .map_err(|_| format!("not a port number: {port}"))?,
    };
    Ok((host.to_owned(), port))
}

fn decode(text: &str) -> Result<String, String> {
    const WRONG: &str = "a % in user or password is not followed by two hexadecimal digits";
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    loop {
        rest = match rest {
            [] => break,
            [b'%', digits @ ..] => {
                let (digits, behind) = digits.split_at_checked(2).ok_or(WRONG)?;
                let digits = std::str::from_utf8(digits).map_err(|_| WRONG)?;
                bytes.push(u8::from_str_radix(digits, 16).map_err(|_| WRONG)?);
                behind
            }
            [byte, behind @ ..] => {
                bytes.push(*byte);
                behind
            }
        };
    }
    String::from_utf8(bytes).map_err(|_| "user or password is not UTF-8".to_owned())
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match &self.tls {
            Some(_) => TLS_SCHEME,
            None => SCHEME,
        };
        if self.host.starts_with('/') {
            write!(out, "{UNIX_SCHEME}{}", self.host)
        } else if self.host.contains(':') {
            write!(out, "{scheme}[{}]:{}", self.host, self.port)
        } else {
            write!(out, "{scheme}{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (String, u16, Option<String>, Option<String>, Option<u32>) {
        let one = Address::parse(text).unwrap();
        (one.host, one.port, one.user, one.password, one.database)
    }

    #[test]
    fn an_address_names_host_port_login_and_database() {
        let some = |text: &str| Some(text.to_owned());
        let host = || "db".to_owned();
        for (text, expected) in [
            ("redis://db", (host(), 6379, None, None, None)),
            ("redis://db:7/", (host(), 7, None, None, None)),
            ("redis://db/3", (host(), 6379, None, None, Some(3))),
            ("redis://:pw@db:7/3", (host(), 7, None, some("pw"), Some(3))),
            (
                "redis://me:p:w@db",
                (host(), 6379, some("me"), some("p:w"), None),
            ),
            (
                "redis://me:p@w%2f%25@db",
                (host(), 6379, some("me"), some("p@w/%"), None),
            ),
            ("redis://[::1]:7", ("::1".to_owned(), 7, None, None, None)),
        ] {
            assert_eq!(parts(text), expected, "{text}");
        }
    }

    #[test]
    fn an_address_can_be_that_of_a_unix_socket() {
        let some = |text: &str| Some(text.to_owned());
        let path = || "/run/q.sock".to_owned();
        for (text, expected) in [
            ("unix:///run/q.sock", (path(), 0, None, None, None)),
            (
                "unix://me:p%2fw@/run/q.sock?db=3",
                (path(), 0, some("me"), some("p/w"), Some(3)),
            ),
        ] {
            assert_eq!(parts(text), expected, "{text}");
        }
        let shown = Address::parse("unix://me:pw@/run/q.sock")
            .unwrap()
            .to_string();
        assert_eq!(shown, "unix:///run/q.sock");
        for text in ["unix://run", "unix://me/run", "unix:///run?db=x"] {
            assert!(Address::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_second_s_is_for_tls() {
        let address = Address::parse("rediss://db:7").unwrap();
        assert_eq!(address.tls, Some(Box::default()));
        assert_eq!(address.to_string(), "rediss://db:7");
        assert_eq!(Address::parse("redis://db").unwrap().tls, None);
    }

    #[test]
    fn what_is_wrong_with_an_address_is_said() {
        for (text, expected) in [
            ("db:6379", "must begin with redis://"),
            ("rediss://", "no host"),
            ("redis://db:x", "not a port number: x"),
            ("redis://db/x", "not a database number: x"),
            ("redis://", "no host"),
            ("redis://u:%2@db", "two hexadecimal digits"),
        ] {
            let error = Address::parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn an_address_is_shown_without_its_password() {
        let address = Address::parse("redis://me:secret@[::1]:7/3").unwrap();
        assert_eq!(
            format!("{address} {address:?}"),
            "redis://[::1]:7 redis://[::1]:7"
        );
    }
}

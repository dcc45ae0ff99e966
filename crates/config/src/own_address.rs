//! The file in the data folder in which a server records its addresses, for tools on the same
//! machine.

use std::fs::OpenOptions;
use std::io;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::error::Origin;
use crate::load::{LoadedSettings, load};
use crate::table::{SETTINGS, Settings};
use quoin_acl::DEFAULT_USER;
use quoin_client::{Access, Address, Beside, Places};
use quoin_tls::ClientOptions;

/// The file in the data folder: a settings file with the addresses of the server.
const NOTE_FILE: &str = "SERVER";
const NOTED: [&str; 6] = [
    "bind",
    "port",
    "unixsocket",
    "tls-port",
    "tls-cert-file",
    "tls-key-file",
];
/// The noted settings that a tool's flags or variables may override.
const PLACES: [&str; 4] = ["bind", "port", "unixsocket", "tls-port"];

/// Writes the addresses of a server into its data folder. Port 0 means no port.
///
/// # Errors
/// If the file cannot be written.
pub fn note_server(settings: &Settings, port: u16, tls_port: u16) -> io::Result<()> {
    let mut listening = settings.clone();
    listening.port = port;
    listening.tls_port = tls_port;
    let paths = [
        &mut listening.unixsocket,
        &mut listening.tls.certificate_file,
        &mut listening.tls.key_file,
    ];
    for path in paths.into_iter().flatten() {
        *path = std::path::absolute(&*path)?;
    }
    let mut text = "# Where the server of this folder listens, for tools beside it.\n".to_owned();
    for row in SETTINGS.iter().filter(|row| NOTED.contains(&row.name)) {
        let value = row.kind.to_toml(&(row.render)(&listening));
        text.push_str(&format!("{} = {value}\n", row.name));
    }
    let path = note_path(&settings.data_dir);
    let unfinished = path.with_extension("new");
    // Not synced: after a crash of the machine no server has the folder open.
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&unfinished)?;
    file.write_all(text.as_bytes())?;
    std::fs::rename(&unfinished, &path)
}

/// Removes the note of a server that ends. A stale note is harmless: it is read only while a server
/// has the folder open, and that server writes its own.
pub fn remove_note(settings: &Settings) {
    let _ = std::fs::remove_file(note_path(&settings.data_dir));
}

fn note_path(data_dir: &Path) -> PathBuf {
    data_dir.join(NOTE_FILE)
}

/// Possible addresses of a data folder's server: that of the command line, otherwise those of its
/// note and of the settings.
pub fn server_places(loaded: &LoadedSettings, beside: &Beside) -> Places {
    let settings = &loaded.settings;
    if let Some(server) = &beside.server {
        return Places {
            noted: None,
            named: server.clone().with(&beside.access),
            is_default: false,
        };
    }
    let origins = PLACES.map(|name| loaded.origin(name));
    let is_named =
        { origins.iter() }.any(|one| matches!(one, Origin::Flag(_) | Origin::Variable(_)));
    let noted = match is_named {
        true => None,
        false => load(Some(note_path(&settings.data_dir)), [], []).ok(),
    };
    let password = settings.requirepass.as_ref();
    let of = |settings: &Settings| own_address(settings, password, &beside.access);
    Places {
        noted: noted.map(|noted| of(&noted.settings)),
        named: of(settings),
        is_default: origins.iter().all(|one| *one == Origin::Default),
    }
}

/// The address of a server with these settings on its own machine: its Unix socket, its TCP port, or its
/// TLS port.
fn own_address(settings: &Settings, requirepass: Option<&String>, access: &Access) -> Address {
    let at = |host, port, tls| {
        let address = Address {
            host,
            port,
            user: None,
            password: None,
            database: None,
            tls,
        };
        let mut address = address.with(access);
        // The password of the settings is that of the user `default`.
        let is_default = |user: &String| user == DEFAULT_USER;
        if address.user.as_ref().is_none_or(is_default) && address.password.is_none() {
            address.password = requirepass.cloned();
        }
        address
    };
    if let Some(path) = &settings.unixsocket {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
        return at(path.display().to_string(), 0, None);
    }
    let ip = match settings.bind.first() {
        Some(IpAddr::V6(ip)) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        Some(IpAddr::V4(ip)) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        Some(ip) => *ip,
        None => IpAddr::V4(Ipv4Addr::LOCALHOST),
    };
    match settings.tcp_port() {
        Some(port) => at(ip.to_string(), port, None),
        None => {
            let options = Box::new(ClientOptions::beside(&settings.tls));
            at(ip.to_string(), settings.tls_port, Some(options))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_folder(folder: &Path) -> LoadedSettings {
        let mut loaded = LoadedSettings::defaults();
        loaded.settings.data_dir = folder.to_owned();
        loaded
    }

    #[test]
    fn a_noted_server_is_found_until_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let loaded = of_folder(folder.path());
        let beside = Beside::default();
        let noted = || server_places(&loaded, &beside).noted;
        assert_eq!(noted(), None);
        note_server(&loaded.settings, 7001, 0).unwrap();
        assert_eq!(noted().unwrap().to_string(), "redis://127.0.0.1:7001");
        let mut of_tls = loaded.settings.clone();
        of_tls.port = 0;
        of_tls.tls.certificate_file = Some("server.pem".into());
        note_server(&of_tls, 0, 7002).unwrap();
        let address = noted().unwrap();
        assert_eq!(address.to_string(), "rediss://127.0.0.1:7002");
        let file = address.tls.unwrap().server_file.unwrap();
        assert!(file.is_absolute() && file.ends_with("server.pem"));
        of_tls.unixsocket = Some("/run/q.sock".into());
        note_server(&of_tls, 0, 7002).unwrap();
        assert_eq!(noted().unwrap().to_string(), "unix:///run/q.sock");
        remove_note(&loaded.settings);
        assert_eq!(noted(), None);
    }

    #[test]
    fn a_place_is_that_of_the_defaults_unless_something_names_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("quoin.toml");
        for (text, expected) in [("timeout = 7\n", true), ("port = 7001\n", false)] {
            std::fs::write(&path, text).unwrap();
            let loaded = load(Some(path.clone()), [], []).unwrap();
            let places = server_places(&loaded, &Beside::default());
            assert_eq!(places.is_default, expected, "{text}");
        }
        let beside = Beside {
            server: Some(Address::parse("redis://there").unwrap()),
            ..Beside::default()
        };
        let loaded = of_folder(folder.path());
        assert!(!server_places(&loaded, &beside).is_default);
    }

    #[test]
    fn the_password_of_the_settings_is_for_the_default_user_only() {
        let folder = tempfile::tempdir().unwrap();
        let mut loaded = of_folder(folder.path());
        loaded.settings.requirepass = Some("secret".to_owned());
        let named = |beside: &Beside| server_places(&loaded, beside).named;
        let password = named(&Beside::default()).password;
        assert_eq!(password.as_deref(), Some("secret"));
        let of_another = Beside {
            server: Some(Address::parse("redis://me@there").unwrap()),
            ..Beside::default()
        };
        assert_eq!(named(&of_another).password, None);
    }
}

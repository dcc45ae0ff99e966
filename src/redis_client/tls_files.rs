//! The files of TLS on the command lines of the tools, named as redis-cli names them.

use std::path::PathBuf;

use clap::{Arg, ArgMatches};

use super::address::Address;

const CA_FILE: &str = "cacert";
const CERTIFICATE_FILE: &str = "cert";
const KEY_FILE: &str = "key";

/// The flags.
pub(crate) fn tls_flags() -> [Arg; 3] {
    [
        (
            CA_FILE,
            "Certificates by which servers at rediss:// addresses are judged (PEM) [default: those of \
             the system]",
        ),
        (
            CERTIFICATE_FILE,
            "Certificate to show to them, where they ask for one (PEM)",
        ),
        (KEY_FILE, "Key that belongs to it (PEM, not encrypted)"),
    ]
    .map(|(name, help)| {
        Arg::new(name)
            .long(name)
            .value_name("PATH")
            .value_parser(clap::value_parser!(PathBuf))
            .help(help)
    })
}

impl Address {
    /// This address with the files that the flags name, if it is a `rediss://` address.
    pub(crate) fn with_tls_files(mut self, matches: &ArgMatches) -> Self {
        let file = |name: &str| matches.get_one::<PathBuf>(name).cloned();
        if let Some(tls) = &mut self.tls {
            tls.ca_file = file(CA_FILE);
            tls.certificate_file = file(CERTIFICATE_FILE);
            tls.key_file = file(KEY_FILE);
        }
        self
    }
}

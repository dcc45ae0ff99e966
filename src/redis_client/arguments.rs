//! Options that the tools which read and write servers have in common.

use std::ffi::OsString;

use clap::Arg;

use super::Address;

/// `--databases`.
pub(crate) fn databases_argument(help: &'static str) -> Arg {
    Arg::new("databases")
        .long("databases")
        .value_name("all|N,…")
        .help(help)
}

/// `--match`.
pub(crate) fn match_argument(help: &'static str) -> Arg {
    Arg::new("match")
        .long("match")
        .value_name("PATTERN")
        .help(help)
}

/// Gives addresses without a password that of a variable: the command line can be seen by others. As
/// with settings, an empty variable counts as one that is not there.
///
/// # Errors
/// What is wrong, for people.
pub(crate) fn take_passwords(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    ends: &mut [(&str, &mut Address)],
) -> Result<(), String> {
    for (name, value) in variables {
        let end = ends.iter_mut().find(|(variable, _)| name == *variable);
        let Some((_, address)) = end.filter(|_| !value.is_empty()) else {
            continue;
        };
        let value = value.to_str().ok_or("a password is not UTF-8")?.to_owned();
        address.password.get_or_insert(value);
    }
    Ok(())
}

//! Libraries of functions.

use bytes::Bytes;

use super::report::Counts;
use super::source::field;
use super::target::Target;
use quoin_client::{Client, ClientError};
use quoin_rdb::{libraries_payload, read_libraries};
use quoin_resp::wire::reply_reader::Value;

/// Reason for skipping functions that a source does not show.
const FUNCTIONS: &str = "all functions";

/// The code of a server's libraries, or why it does not show them.
fn of_server(client: &mut Client) -> Result<Result<Vec<Bytes>, String>, ClientError> {
    let reply = client.call(&["FUNCTION", "DUMP"])?;
    if let Some(payload) = reply.bytes()
        && let Ok(codes) = read_libraries(&Bytes::copy_from_slice(payload))
    {
        return Ok(Ok(codes));
    }
    let mut error = reply.error_text().into_iter();
    if error.any(|line| line.starts_with("ERR unknown command")) {
        // Redis before 7.0 has none.
        return Ok(Ok(Vec::new()));
    }
    // A payload of a later version, or none.
    let reply = client.call(&["FUNCTION", "LIST", "WITHCODE"])?;
    if let Some(line) = reply.error_text() {
        return Ok(Err(line.into_owned()));
    }
    let codes = reply.items().and_then(|libraries| {
        let codes = libraries.iter().map(code_of);
        codes.collect::<Option<Vec<Bytes>>>()
    });
    codes.map(Ok).ok_or_else(|| client.unexpected(&reply))
}

fn code_of(library: &Value) -> Option<Bytes> {
    let code = field(library, "library_code")?.bytes()?;
    Some(Bytes::copy_from_slice(code))
}

/// The name in a library's first line, such as `#!lua name=mylib`.
fn name_of(code: &[u8]) -> String {
    let line = code.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let text = String::from_utf8_lossy(line);
    let mut words = text.split_whitespace();
    let name = words.find_map(|word| word.strip_prefix("name="));
    name.unwrap_or("?").to_owned()
}

/// Copies all libraries of a server.
pub(super) fn copy_all(
    source: &mut Client,
    target: &mut Target,
    counts: &mut Counts,
) -> Result<(), ClientError> {
    match of_server(source)? {
        Ok(codes) => codes.iter().try_for_each(|code| copy(code, target, counts)),
        Err(why) => {
            counts.skip_named(
                FUNCTIONS.to_owned(),
                format!("the source does not show it: {why}"),
            );
            Ok(())
        }
    }
}

/// Copies a library.
pub(super) fn copy(
    code: &Bytes,
    target: &mut Target,
    counts: &mut Counts,
) -> Result<(), ClientError> {
    if counts.is_dry_run {
        counts.libraries += 1;
        return Ok(());
    }
    let payload = libraries_payload([code]);
    let policy: &[u8] = match target.replaces {
        true => b"REPLACE",
        false => b"APPEND",
    };
    let words: [&[u8]; 4] = [b"FUNCTION", b"RESTORE", &payload, policy];
    let reply = target.client.call(&words)?;
    let name = name_of(code);
    match reply.error_text() {
        None => counts.libraries += 1,
        Some(_) if has(&mut target.client, &name, code)? => counts.present_libraries += 1,
        Some(line) => counts.library_failed(&name, &line),
    }
    Ok(())
}

/// Whether a server has a library of this name with this code.
fn has(client: &mut Client, name: &str, code: &Bytes) -> Result<bool, ClientError> {
    let question = ["FUNCTION", "LIST", "LIBRARYNAME", name, "WITHCODE"];
    let reply = client.call(&question)?;
    let found = reply.items().and_then(|libraries| match libraries {
        [library] => code_of(library),
        _ => None,
    });
    Ok(found.as_ref() == Some(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_says_its_name_in_its_first_line() {
        assert_eq!(name_of(b"#!lua name=mylib\nreturn 1 -- name=no"), "mylib");
        assert_eq!(name_of(b"return"), "?");
    }
}

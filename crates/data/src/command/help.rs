//! Replies of the HELP subcommands, in the form of Redis's `addReplyHelp`.

use quoin_resp::reply::Reply;

/// A help text: the first line, the lines for each subcommand, and those for HELP itself.
pub fn help(first_line: &'static str, lines: &[&'static str]) -> Reply {
    let all = std::iter::once(first_line)
        .chain(lines.iter().copied())
        .chain(["HELP", "    Print this help."]);
    Reply::Array(all.map(Reply::Simple).collect())
}

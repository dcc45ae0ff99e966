//! The server's messages about problems, and docs/operate/troubleshooting.md.

use std::path::Path;

/// Files with the errors that end a start.
const START_ERRORS: [&str; 5] = [
    "config/src/error.rs",
    "server/src/error.rs",
    "store-embedded/src/error.rs",
    "store-fdb/src/error.rs",
    "data/src/unit/startup.rs",
];
/// Targets that are not messages of the server: scripts' own log lines.
const EXCEPTIONS: [&str; 1] = ["quoin::script"];
/// Minimum number of characters of a message, in whole words, that must be in the document.
const LENGTH_MIN: usize = 18;
/// Shorter pieces of messages between details say nothing.
const PIECE_MIN: usize = 10;

/// The longest text in each call or attribute that begins with `begin`.
fn messages(source: &str, begin: &str) -> Vec<String> {
    let parts = source.split(begin).skip(1);
    parts
        .filter_map(|part| texts(part).into_iter().max_by_key(String::len))
        .collect()
}

/// The texts up to the bracket that closes.
fn texts(part: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = 1;
    let mut letters = part.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '(' | '[' | '{' => open += 1,
            ')' | ']' | '}' => open -= 1,
            '"' => {
                let mut text = String::new();
                while let Some(letter) = letters.next().filter(|letter| *letter != '"') {
                    match letter {
                        '\\' => match letters.next() {
                            // A line that continues.
                            Some('\n') => {
                                while letters.next_if(|letter| letter.is_whitespace()).is_some() {}
                            }
                            other => text.extend(other),
                        },
                        letter => text.push(letter),
                    }
                }
                found.push(text);
            }
            _ => {}
        }
        if open == 0 {
            break;
        }
    }
    found
}

/// The sources below a folder that are not tests, by their paths.
fn sources(root: &Path) -> Vec<(String, String)> {
    let mut folders = vec![root.to_owned()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            if path.is_dir() {
                folders.push(path);
            } else if !name.contains("test") && name.ends_with(".rs") {
                found.push((name, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found
}

/// Whether enough consecutive words of a message are in the document.
fn is_there(message: &str, document: &str) -> bool {
    let mut pieces = Vec::new();
    let mut rest = message;
    while let Some((piece, behind)) = rest.split_once('{') {
        pieces.push(piece);
        rest = behind.split_once('}').map_or("", |(_, rest)| rest);
    }
    pieces.push(rest);
    let pieces = pieces
        .iter()
        .map(|piece| piece.trim_matches([' ', ':', ';', ',', '(', ')']));
    let pieces: Vec<&str> = pieces.filter(|piece| piece.len() >= PIECE_MIN).collect();
    pieces.is_empty()
        || pieces.iter().any(|piece| {
            let least = piece.len().min(LENGTH_MIN);
            let words: Vec<&str> = piece.split(' ').collect();
            (0..words.len()).any(|first| {
                let ends = first + 1..=words.len();
                let runs = ends.map(|end| words[first..end].join(" "));
                let mut long_enough = runs.filter(|run| run.len() >= least);
                long_enough
                    .next()
                    .is_some_and(|run| document.contains(&run))
            })
        })
}

#[test]
fn what_the_server_says_stands_in_troubleshooting() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let document = std::fs::read_to_string(root.join("docs/operate/troubleshooting.md")).unwrap();
    let document = document.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut missing = Vec::new();
    let mut count = 0;
    for (name, source) in sources(&root.join("crates")) {
        let source = source
            .split("#[cfg(test)]\nmod tests {")
            .next()
            .unwrap_or_default();
        let mut said = messages(source, "tracing::warn!(");
        said.extend(messages(source, "tracing::error!("));
        if START_ERRORS.contains(&name.as_str()) {
            said.extend(messages(source, "#[error("));
        }
        count += said.len();
        let unknown = said.into_iter().filter(|message| {
            !EXCEPTIONS.contains(&message.as_str()) && !is_there(message, &document)
        });
        missing.extend(unknown.map(|message| format!("{name}: {message}")));
    }
    assert!(count > 80, "{count}");
    assert!(
        missing.is_empty(),
        "troubleshooting.md lacks:\n{}",
        missing.join("\n")
    );
}

#[test]
fn a_message_is_found_by_its_words() {
    let document = "| `data folder … is in use by another server (process …); …` |";
    assert!(is_there(
        "data folder {} is in use by another server{}; stop it",
        document
    ));
    assert!(!is_there(
        "a folder {} is used by something else entirely",
        document
    ));
    let source = "tracing::warn!(folder, \"the disk is \\\n     full\"); tracing::warn!(\"x\")";
    assert_eq!(
        messages(source, "tracing::warn!("),
        ["the disk is full", "x"]
    );
}

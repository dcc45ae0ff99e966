//! The modules of a crate, and what each imports from which.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::tokens::{self, Token};

/// A path of names from the root of the crate.
type Names = Vec<String>;

/// A crate.
pub(crate) struct Modules {
    /// By path (`types/list`), what each file imports: other files, except itself.
    imports: BTreeMap<String, BTreeSet<String>>,
}

struct File {
    module: Names,
    tokens: Vec<Token>,
    children: BTreeSet<String>,
    /// The names in it, each with its path if it is of this crate.
    names: BTreeMap<String, Option<Names>>,
}

/// The first name of a file's path.
pub(crate) fn room(file: &str) -> &str {
    file.split('/').next().unwrap()
}

impl Modules {
    /// Reads the sources of a crate, from its lib.rs.
    pub(crate) fn read(source: &Path) -> Self {
        let mut files = BTreeMap::new();
        let root = read_file(Vec::new(), &source.join("lib.rs"));
        for child in &root.children {
            read_module(source, vec![child.clone()], &mut files);
        }
        files.insert(Vec::new(), root);
        let imports = files.values().map(|file| {
            let imported = file
                .paths()
                .into_iter()
                .filter_map(|path| resolve(&path, &files, 0));
            let others = imported.filter(|other| *other != file.module);
            (
                file.module.join("/"),
                others.map(|other| other.join("/")).collect(),
            )
        });
        Self {
            imports: imports.collect(),
        }
    }

    /// Which file imports from which.
    pub(crate) fn imports(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.imports.iter();
        all.flat_map(|(from, others)| others.iter().map(move |to| (from.as_str(), to.as_str())))
    }
}

fn read_module(folder: &Path, module: Names, files: &mut BTreeMap<Names, File>) {
    let name = module.last().unwrap();
    let own_folder = folder.join(name);
    let flat = folder.join(format!("{name}.rs"));
    let path = if flat.exists() {
        flat
    } else {
        own_folder.join("mod.rs")
    };
    let file = read_file(module.clone(), &path);
    for child in &file.children {
        let child = [module.as_slice(), std::slice::from_ref(child)].concat();
        read_module(&own_folder, child, files);
    }
    files.insert(module, file);
}

fn read_file(module: Names, path: &Path) -> File {
    let source = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let (tokens, tests) = tokens::read(&source);
    let declares = |window: &[Token]| match window {
        [Token::Word(word), Token::Word(name), Token::Mark(';')] if word == "mod" => {
            Some(name.clone())
        }
        _ => None,
    };
    let children: BTreeSet<String> = tokens.windows(3).filter_map(declares).collect();
    assert!(
        children.iter().all(|child| !tests.contains(child)),
        "{path:?}"
    );
    let mut file = File {
        module,
        tokens,
        children,
        names: BTreeMap::new(),
    };
    file.names = file.read_names();
    file
}

impl File {
    /// A path in this file, from the root. `None` if it does not belong to the library.
    fn absolute(&self, path: &[String]) -> Option<Names> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            "self" => Some([self.module.as_slice(), rest].concat()),
            "super" => {
                let mut module = self.module.clone();
                let mut rest = path;
                while let Some((first, others)) = rest.split_first()
                    && first == "super"
                {
                    module.pop();
                    rest = others;
                }
                Some([module.as_slice(), rest].concat())
            }
            name if self.children.contains(name) => Some([self.module.as_slice(), path].concat()),
            _ => None,
        }
    }

    /// All paths of this file that lead into the library, except those that it only re-exports.
    fn paths(&self) -> Vec<Names> {
        let mut paths = Vec::new();
        let mut at = 0;
        while at < self.tokens.len() {
            if self.passes_on(at) {
                let (found, after) = read_tree(&self.tokens, at + 1);
                let absolute = found.iter().filter_map(|(path, _)| self.absolute(path));
                // A re-export from another room counts as knowing it. The root re-exports what the
                // crate publishes.
                let is_of_another = |path: &Names| path.first() != self.module.first();
                paths
                    .extend(absolute.filter(|path| !self.module.is_empty() && is_of_another(path)));
                at = after;
                continue;
            }
            let is_begin = matches!(self.tokens[at], Token::Word(_))
                && self.tokens.get(at + 1) == Some(&Token::Path)
                && (at == 0 || self.tokens[at - 1] != Token::Path)
                && !self.is_visibility(at);
            if !is_begin {
                at += 1;
                continue;
            }
            let (found, after) = read_tree(&self.tokens, at);
            paths.extend(found.iter().filter_map(|(path, _)| self.absolute(path)));
            at = after;
        }
        paths
    }

    /// Whether the path of a `pub(in ...)` is at this position.
    fn is_visibility(&self, at: usize) -> bool {
        let before = at.checked_sub(2).map(|before| &self.tokens[before..at]);
        before == Some(&[Token::Mark('('), Token::Word("in".to_owned())])
    }

    /// Whether a `pub use`, or a `pub(...) use`, is at this position.
    fn passes_on(&self, at: usize) -> bool {
        let word = |token: Option<&Token>, word: &str| token == Some(&Token::Word(word.to_owned()));
        let before = self.tokens.get(at.wrapping_sub(1));
        word(self.tokens.get(at), "use")
            && (word(before, "pub") || before == Some(&Token::Mark(')')))
    }

    fn read_names(&self) -> BTreeMap<String, Option<Names>> {
        let mut names = BTreeMap::new();
        for (at, token) in self.tokens.iter().enumerate() {
            if *token != Token::Word("use".to_owned()) {
                continue;
            }
            for (path, name) in read_tree(&self.tokens, at + 1).0 {
                names.insert(name, self.absolute(&path));
            }
        }
        names
    }
}

/// The paths in a path or a tree of paths, each with the name that it gets, and where it ends.
fn read_tree(tokens: &[Token], at: usize) -> (Vec<(Names, String)>, usize) {
    let (mut path, mut at) = (Names::new(), at);
    loop {
        match tokens.get(at) {
            Some(Token::Word(word)) => {
                path.push(word.clone());
                at += 1;
            }
            Some(Token::Mark('{')) => {
                let mut paths = Vec::new();
                at += 1;
                while let Some(token) = tokens.get(at) {
                    match token {
                        Token::Mark('}') => return (paths, at + 1),
                        Token::Mark(',') => at += 1,
                        _ => {
                            let (found, after) = read_tree(tokens, at);
                            paths.extend(found.into_iter().map(|(rest, name)| {
                                let rest = rest.into_iter().filter(|word| word != "self");
                                (path.iter().cloned().chain(rest).collect(), name)
                            }));
                            at = after.max(at + 1);
                        }
                    }
                }
                return (paths, at);
            }
            _ => break,
        }
        if tokens.get(at) != Some(&Token::Path) {
            break;
        }
        at += 1;
    }
    let mut name = path.last().cloned().unwrap_or_default();
    if let [Token::Word(word), Token::Word(other)] = tokens.get(at..at + 2).unwrap_or_default()
        && word == "as"
    {
        name = other.clone();
        at += 2;
    }
    (vec![(path, name)], at)
}

/// The file of what a path names: the longest prefix that is a module, or if that module only
/// re-exports it, the file that it comes from.
fn resolve(path: &[String], files: &BTreeMap<Names, File>, depth: usize) -> Option<Names> {
    let length = (0..=path.len())
        .rev()
        .find(|length| files.contains_key(&path[..*length]))?;
    let file = &files[&path[..length]];
    let passed_on = path.get(length).and_then(|name| file.names.get(name));
    match passed_on {
        // Another crate's.
        Some(None) => None,
        Some(Some(other)) if depth < 8 => {
            let rest = &path[length + 1..];
            resolve(&[other.as_slice(), rest].concat(), files, depth + 1)
        }
        _ => Some(file.module.clone()),
    }
}

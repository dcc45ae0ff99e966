//! Libraries of functions, and what a server knows about them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;

use super::script::{Script, ScriptFlags};

/// The flags of a function, a bit each. The bits are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FunctionFlags(pub u8);

impl FunctionFlags {
    /// Redis's flags in the order of FUNCTION LIST, then `atomic`, which Redis does not have.
    const NAMES: [(&'static str, u8); 6] = [
        ("no-writes", 1),
        ("allow-oom", 1 << 1),
        ("allow-stale", 1 << 2),
        ("no-cluster", 1 << 3),
        ("allow-cross-slot-keys", 1 << 4),
        ("atomic", 1 << 5),
    ];

    /// The flags' names.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let all = Self::NAMES.into_iter();
        all.filter(move |(_, bit)| self.0 & bit != 0)
            .map(|(name, _)| name)
    }

    /// Adds the flag of this name. `None` if no flag has this name.
    pub(super) fn with(self, name: &[u8]) -> Option<Self> {
        let is_named = |(known, _): &&(&str, u8)| known.as_bytes().eq_ignore_ascii_case(name);
        let (_, bit) = Self::NAMES.iter().find(is_named)?;
        Some(Self(self.0 | bit))
    }

    fn has(self, name: &str) -> bool {
        self.names().any(|known| known == name)
    }
}

/// A library's description of one of its functions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its description, if the library gives one.
    pub description: Option<Bytes>,
    /// Its flags.
    pub flags: FunctionFlags,
}

/// A library that FUNCTION LOAD has taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    /// A number that no other library has, not even an earlier one with this name.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Its whole code, with the line that names it.
    pub code: Bytes,
    /// Its functions, in the order of their registration.
    pub functions: Vec<Function>,
}

/// The code of a library that Lua gets: the first line is empty, so lines keep their numbers.
pub fn library_source(code: &Bytes) -> Bytes {
    let end = code.iter().position(|byte| *byte == b'\n');
    code.slice(end.unwrap_or(code.len())..)
}

/// A program that a machine can run.
#[derive(Debug, Clone)]
pub enum Program {
    /// A script.
    Script(Arc<Script>),
    /// A function of a library, by its index there.
    Function(Arc<Library>, usize),
}

impl Program {
    /// The name that errors show.
    pub fn name(&self) -> &str {
        match self {
            Program::Script(script) => &script.sha,
            Program::Function(library, place) => {
                let function = library.functions.get(*place);
                function.map_or("", |function| &function.name)
            }
        }
    }

    /// Its flags.
    pub fn flags(&self) -> ScriptFlags {
        match self {
            Program::Script(script) => script.flags,
            Program::Function(library, place) => {
                let flags = library.functions.get(*place).map(|function| function.flags);
                let flags = flags.unwrap_or_default();
                ScriptFlags {
                    is_plain: false,
                    no_writes: flags.has("no-writes"),
                    allow_oom: flags.has("allow-oom"),
                    is_atomic: flags.has("atomic"),
                }
            }
        }
    }
}

/// The libraries of a store at one moment.
#[derive(Debug, Default)]
pub struct Libraries {
    /// The number of that moment: other libraries have another.
    pub version: u64,
    by_name: BTreeMap<String, Arc<Library>>,
    /// By the function's name in lower case, as Redis compares them.
    functions: HashMap<String, (Arc<Library>, usize)>,
}

impl Libraries {
    /// The collection of these libraries.
    pub fn new(version: u64, all: impl IntoIterator<Item = Arc<Library>>) -> Self {
        let mut libraries = Self {
            version,
            ..Self::default()
        };
        for library in all {
            libraries.add(library);
        }
        libraries
    }

    /// Adds a library. If several functions have one name, the first one stays.
    pub fn add(&mut self, library: Arc<Library>) {
        for (place, function) in library.functions.iter().enumerate() {
            let name = function.name.to_ascii_lowercase();
            let entry = (Arc::clone(&library), place);
            self.functions.entry(name).or_insert(entry);
        }
        self.by_name.insert(library.name.clone(), library);
    }

    /// All libraries, by name.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Library>> {
        self.by_name.values()
    }

    /// The number of libraries.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// How many functions they have.
    pub fn function_count(&self) -> usize {
        self.all().map(|library| library.functions.len()).sum()
    }

    /// A library.
    pub fn library(&self, name: &str) -> Option<&Arc<Library>> {
        self.by_name.get(name)
    }

    /// A function as a program for machines.
    pub fn function(&self, name: &[u8]) -> Option<Program> {
        let name = std::str::from_utf8(name).ok()?.to_ascii_lowercase();
        let (library, place) = self.functions.get(&name)?;
        Some(Program::Function(Arc::clone(library), *place))
    }

    /// Whether a library has a function of this name.
    pub fn has_function(&self, name: &str) -> bool {
        self.functions.contains_key(&name.to_ascii_lowercase())
    }
}

//! A model of a disk: what is on it for certain, and what may be.
//!
//! It receives operations in order. What a sync covers (for a file, its bytes and its length; for a
//! folder, its names) survives a power loss. Of the rest, each sector of 512 bytes is in the state
//! after any of the writes to it, a length is any that the file has had since, and each name may or
//! may not have been changed.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rand::RngExt;
use rand::rngs::StdRng;

use super::entry::{self, Entry};

const SECTOR_BYTES: usize = 512;

/// A disk, and what was done to it so far.
#[derive(Clone, Default)]
pub(crate) struct Disk {
    root: PathBuf,
    files: BTreeMap<u64, File>,
    /// Names, relative to the root, that the disk has for certain.
    names: BTreeMap<PathBuf, u64>,
    pending_names: Vec<(u64, NameChange)>,
    folders: BTreeMap<u64, PathBuf>,
    /// Syncs that have begun and not ended, and how many operations they cover.
    syncs: BTreeMap<u64, u64>,
    /// Files that were mapped for writing. Nothing is known about their content.
    mapped: BTreeSet<u64>,
    operations: u64,
}

/// A file's bytes on the disk, and later operations with their numbers.
#[derive(Clone, Default)]
struct File {
    durable: Vec<u8>,
    pending: Vec<(u64, Change)>,
}

#[derive(Clone)]
enum Change {
    /// The last says that it was written with `O_DSYNC`.
    Write(usize, Vec<u8>, bool),
    Truncate(usize),
}

#[derive(Clone)]
enum NameChange {
    Create(PathBuf, u64),
    Rename(PathBuf, PathBuf, u64),
    /// Two names and the files that they belong to afterwards.
    Exchange([(PathBuf, u64); 2]),
    Unlink(PathBuf),
}

/// Files by their names relative to the root; `None` for a folder.
pub(crate) type Image = BTreeMap<PathBuf, Option<Vec<u8>>>;

impl Change {
    /// Carries it out. Returns which bytes it touched.
    fn apply(&self, bytes: &mut Vec<u8>) -> std::ops::Range<usize> {
        match self {
            Self::Write(at, data, _) => {
                let end = at + data.len();
                let from = bytes.len().min(*at);
                bytes.resize(bytes.len().max(end), 0);
                bytes[*at..end].copy_from_slice(data);
                from..end
            }
            Self::Truncate(length) => {
                let from = bytes.len().min(*length);
                bytes.resize(*length, 0);
                from..*length
            }
        }
    }
}

impl NameChange {
    fn apply(self, names: &mut BTreeMap<PathBuf, u64>) {
        match self {
            Self::Create(name, file) => {
                names.insert(name, file);
            }
            Self::Rename(from, to, file) => {
                names.retain(|name, of| *name != from || *of != file);
                names.insert(to, file);
            }
            Self::Exchange(both) => names.extend(both),
            Self::Unlink(name) => {
                names.remove(&name);
            }
        }
    }

    /// The folder whose sync makes it durable.
    fn folder(&self) -> &Path {
        let (Self::Create(name, _)
        | Self::Rename(_, name, _)
        | Self::Exchange([(name, _), _])
        | Self::Unlink(name)) = self;
        name.parent().unwrap_or(Path::new(""))
    }
}

impl File {
    fn now(&self) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        for (_, change) in &self.pending {
            change.apply(&mut bytes);
        }
        bytes
    }

    fn synced(&mut self, operations: u64) {
        let covered = self.pending.partition_point(|(at, _)| *at < operations);
        for (_, change) in self.pending.drain(..covered) {
            change.apply(&mut self.durable);
        }
    }

    /// A possible result of a power loss: after each change, each sector that it touched may have
    /// been written to the disk in that state, and so may the length.
    fn after_power_loss(&self, random: &mut StdRng) -> Vec<u8> {
        let likelihood = [0.0, 0.02, 0.5, 0.9, 1.0][random.random_range(0..5)];
        let until = match random.random() {
            true => self.pending.len(),
            false => random.random_range(0..=self.pending.len()),
        };
        // Blocks that the file got and that were never written may have old bytes in them.
        let junk = if random.random_range(0..4) == 0 {
            0xa5
        } else {
            0
        };
        let mut now = self.durable.clone();
        let mut disk = self.durable.clone();
        let mut length = disk.len();
        for (index, (_, change)) in self.pending.iter().enumerate() {
            let touched = change.apply(&mut now);
            let is_synced = matches!(change, Change::Write(.., true));
            let mut goes_out = || is_synced || index < until && random.random_bool(likelihood);
            if goes_out() {
                length = now.len();
            }
            let sectors = touched.start / SECTOR_BYTES..touched.end.div_ceil(SECTOR_BYTES);
            for sector in sectors.filter(|_| goes_out()) {
                let begin = sector * SECTOR_BYTES;
                let end = now.len().min(begin + SECTOR_BYTES);
                if disk.len() < end {
                    disk.resize(end, junk);
                }
                disk[begin..end].copy_from_slice(&now[begin..end]);
            }
        }
        disk.resize(length, junk);
        disk
    }
}

impl Disk {
    /// A disk with everything below `root`.
    pub(crate) fn of_folder(root: &Path) -> io::Result<Self> {
        let mut disk = Self {
            root: root.to_owned(),
            ..Self::default()
        };
        disk.names.insert(PathBuf::new(), root.metadata()?.ino());
        disk.folders.insert(root.metadata()?.ino(), PathBuf::new());
        for (name, bytes) in read_folder(root)? {
            let file = root.join(&name).metadata()?.ino();
            disk.names.insert(name.clone(), file);
            match bytes {
                Some(durable) => {
                    let pending = Vec::new();
                    disk.files.insert(file, File { durable, pending });
                }
                None => {
                    disk.folders.insert(file, name);
                }
            }
        }
        Ok(disk)
    }

    /// Carries out the operation in an entry of the log.
    pub(crate) fn apply(&mut self, entry: &Entry<'_>) -> Result<(), String> {
        self.operations += 1;
        let at = entry.a as usize;
        match entry.kind {
            entry::CREATE => self.create(self.name(entry.name), entry),
            entry::WRITE | entry::ZEROS => {
                let zeros = || vec![0; entry.b as usize];
                let data = match entry.kind {
                    entry::ZEROS => zeros(),
                    _ => entry.data.to_vec(),
                };
                let is_synced = entry.flags & entry::IS_SYNCED != 0;
                self.change(entry.file, Change::Write(at, data, is_synced));
            }
            entry::TRUNCATE => self.change(entry.file, Change::Truncate(at)),
            entry::SYNC_BEGIN => {
                self.syncs.insert(entry.a, self.operations);
            }
            entry::SYNC_END => {
                let covered = self.syncs.remove(&entry.a).ok_or("a sync ends twice")?;
                self.synced(entry.file, covered);
            }
            entry::RENAME => {
                let (from, to) = (self.name(entry.name), self.name(entry.data));
                self.rename(NameChange::Rename(from, to, entry.file));
            }
            entry::EXCHANGE => {
                let (from, to) = (self.name(entry.name), self.name(entry.data));
                self.rename(NameChange::Exchange([(from, entry.a), (to, entry.file)]));
            }
            entry::UNLINK => self.rename(NameChange::Unlink(self.name(entry.name))),
            entry::MAPPED => {
                self.mapped.insert(entry.file);
            }
            _ => {
                let what = String::from_utf8_lossy(entry.name);
                return Err(format!("the recorder does not follow {what}"));
            }
        }
        Ok(())
    }

    /// The process has ended, and so will not end syncs that it had begun.
    pub(crate) fn process_ended(&mut self) {
        self.syncs.clear();
    }

    fn name(&self, path: &[u8]) -> PathBuf {
        let path = PathBuf::from(String::from_utf8_lossy(path).into_owned());
        path.strip_prefix(&self.root).unwrap_or(&path).to_owned()
    }

    fn create(&mut self, name: PathBuf, entry: &Entry<'_>) {
        // The number may have belonged to another file, which is gone.
        self.mapped.remove(&entry.file);
        if entry.flags & entry::IS_FOLDER != 0 {
            self.folders.insert(entry.file, name.clone());
        } else {
            self.files.insert(entry.file, File::default());
        }
        self.rename(NameChange::Create(name, entry.file));
    }

    fn rename(&mut self, change: NameChange) {
        self.pending_names.push((self.operations, change));
    }

    fn change(&mut self, file: u64, change: Change) {
        let pending = &mut self.files.entry(file).or_default().pending;
        pending.push((self.operations, change));
    }

    fn synced(&mut self, file: u64, operations: u64) {
        if let Some(file) = self.files.get_mut(&file) {
            file.synced(operations);
        }
        let Some(folder) = self.folders.get(&file) else {
            return;
        };
        let is_covered =
            |(at, change): &(u64, NameChange)| *at < operations && change.folder() == folder;
        let (covered, pending) = std::mem::take(&mut self.pending_names)
            .into_iter()
            .partition(is_covered);
        self.pending_names = pending;
        for (_, change) in covered {
            change.apply(&mut self.names);
        }
    }

    /// The file's name now.
    pub(crate) fn name_of(&self, file: u64) -> Option<PathBuf> {
        let names = self.names_now();
        names
            .into_iter()
            .find(|(_, of)| *of == file)
            .map(|(name, _)| name)
    }

    pub(crate) fn is_folder(&self, file: u64) -> bool {
        self.folders.contains_key(&file)
    }

    /// An entry in words.
    pub(crate) fn describe(&self, entry: &Entry<'_>) -> String {
        let name = match entry.name {
            [] => self.name_of(entry.file).unwrap_or_default(),
            name => self.name(name),
        };
        let what = match entry.kind {
            entry::CREATE => "create",
            entry::WRITE => "write",
            entry::ZEROS => "write zeros",
            entry::TRUNCATE => "truncate",
            entry::SYNC_BEGIN => "begin of sync",
            entry::SYNC_END => "end of sync",
            entry::RENAME => "rename",
            entry::EXCHANGE => "exchange",
            entry::UNLINK => "unlink",
            _ => "other",
        };
        format!("{what} {} at {}", name.display(), entry.a)
    }

    fn names_now(&self) -> BTreeMap<PathBuf, u64> {
        let mut names = self.names.clone();
        for (_, change) in &self.pending_names {
            change.clone().apply(&mut names);
        }
        names
    }

    /// A possible result of a power loss.
    pub(crate) fn after_power_loss(&self, random: &mut StdRng) -> Image {
        let mut names = self.names.clone();
        let until = random.random_range(0..=self.pending_names.len());
        // In their order, as file systems with a journal do it, or each by itself.
        let is_ordered = random.random();
        for (index, (_, change)) in self.pending_names.iter().enumerate() {
            if if is_ordered {
                index < until
            } else {
                random.random()
            } {
                change.clone().apply(&mut names);
            }
        }
        let mut image = Image::new();
        for (name, file) in &names {
            let bytes = self.files.get(file).map(|content| {
                let mut bytes = content.after_power_loss(random);
                if self.mapped.contains(file) {
                    bytes.fill(random.random());
                }
                bytes
            });
            // A file in a folder that does not exist has no name.
            let parent = name.parent().unwrap_or(Path::new(""));
            if names.contains_key(parent) && !name.as_os_str().is_empty() {
                image.insert(name.clone(), bytes);
            }
        }
        image
    }

    /// Takes over from the real folder the effects of an operation that was not yet logged when the
    /// process was killed. Returns which files that concerns.
    pub(crate) fn take_over(&mut self) -> io::Result<BTreeSet<PathBuf>> {
        self.operations += 1;
        let mut changed = BTreeSet::new();
        let mut names = self.names_now();
        for (name, bytes) in read_folder(&self.root)? {
            let number = self.root.join(&name).metadata()?.ino();
            if names.remove(&name) != Some(number) {
                changed.insert(name.clone());
                self.rename(NameChange::Create(name.clone(), number));
                // Not one that was only renamed.
                let is_known = |file: &File| bytes.as_ref() == Some(&file.now());
                match &bytes {
                    Some(_) if self.files.get(&number).is_some_and(is_known) => {}
                    Some(_) => drop(self.files.insert(number, File::default())),
                    None => drop(self.folders.insert(number, name.clone())),
                }
            }
            let Some(bytes) = bytes else { continue };
            let now = self.files.entry(number).or_default().now();
            if now == bytes || self.mapped.contains(&number) {
                continue;
            }
            changed.insert(name);
            let length = bytes.len();
            let mut write = |begin: usize, end: usize| {
                let change = Change::Write(begin, bytes[begin..end].to_vec(), false);
                self.change(number, change);
            };
            for begin in (0..length).step_by(SECTOR_BYTES) {
                let end = length.min(begin + SECTOR_BYTES);
                if now.get(begin..end) != Some(&bytes[begin..end]) {
                    write(begin, end);
                }
            }
            if now.len() > length {
                self.change(number, Change::Truncate(length));
            }
        }
        names.remove(Path::new(""));
        for name in names.into_keys() {
            changed.insert(name.clone());
            self.rename(NameChange::Unlink(name));
        }
        Ok(changed)
    }
}

fn read_folder(root: &Path) -> io::Result<Image> {
    let mut image = Image::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for found in folder.read_dir()? {
            let path = found?.path();
            let name = path.strip_prefix(root).unwrap_or(&path).to_owned();
            if path.is_dir() {
                image.insert(name, None);
                folders.push(path);
            } else {
                image.insert(name, Some(std::fs::read(&path)?));
            }
        }
    }
    Ok(image)
}

/// Creates a folder with a disk's content.
pub(crate) fn write_image(image: &Image, root: &Path) -> io::Result<()> {
    for (name, bytes) in image {
        let path = root.join(name);
        match bytes {
            Some(bytes) => std::fs::write(path, bytes)?,
            None => std::fs::create_dir(path)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;

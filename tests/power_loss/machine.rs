//! A machine that repeatedly loses its power. Servers run on its disk and are killed. From what
//! they did to the disk, the test computes what a power loss would have left.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;

use super::disk::{Disk, Image, write_image};
use super::entry::{self, Entry};
use super::history::{Bounds, Contents, History};
use super::load::{ALL, Clock, Load, contents, load_and_end};
use super::recorded::{self, Log, Start};
use super::steps::Own;
use crate::server::Server;

/// Clients that load a server.
pub(crate) const CLIENTS: usize = 6;
/// Maximum number of operations that a killed process may have done without logging them: one for
/// each thread that writes files.
const UNTOLD_MAX: usize = 3;
/// What a server logs when it goes back to a checkpoint.
pub(crate) const WENT_BACK: &str = "the store is back at its last checkpoint";

/// What to do, apart from random decisions.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// Power losses in every run of a server.
    pub(crate) points: usize,
    /// How long clients load a server.
    pub(crate) load_ms: Range<u64>,
    /// The `fsync` setting; `None` for either, by chance.
    pub(crate) fsync: Option<&'static str>,
    /// Whether the disk really has what it reports to have synced of the journal.
    pub(crate) disk_is_honest: bool,
    /// Whether some payloads are so long that LMDB gets megabytes at a time.
    pub(crate) is_large: bool,
    /// If set, the disk is full for a while: for all writes ([`ALL`]), or for those that make a
    /// file longer.
    pub(crate) fills_disk: Option<&'static str>,
}

/// What a power loss left, and what must be found there.
struct Loss {
    image: Image,
    history: Rc<History>,
    bounds: Bounds,
    /// When it happened.
    at: String,
}

/// One process, from start to end.
struct Run {
    /// The disk when it was started.
    disk: Disk,
    log: Log,
    /// Length of all logs before its own, and until it took connections.
    begin: u64,
    ready: u64,
    start: Start,
    /// What was answered when the logs were this long is on the disk, whatever this run does.
    durable: u64,
}

/// Tracks what is on the disk for certain: what was answered when the logs had a given length.
struct Durable<'r> {
    run: &'r Run,
    position: u64,
    /// Syncs of the journal that have begun: how long the logs were, and when.
    journal_syncs: BTreeMap<u64, (u64, u64)>,
    /// When the last completed sync began, in nanoseconds.
    synced_at: Option<u64>,
}

impl<'r> Durable<'r> {
    fn new(run: &'r Run) -> Self {
        Self {
            run,
            position: run.durable,
            journal_syncs: BTreeMap::new(),
            synced_at: None,
        }
    }

    fn apply(&mut self, range: &Range<usize>, entry: &Entry<'_>, disk: &Disk) {
        let (begin, end) = (
            self.run.begin + range.start as u64,
            self.run.begin + range.end as u64,
        );
        if end < self.run.ready {
            // It syncs the files of the previous process one by one.
            return;
        }
        // A start ends with a synced data file that has everything.
        self.position = self.position.max(self.run.ready);
        if self.run.start.fsync == "always" {
            self.position = end;
        } else if entry.kind == entry::SYNC_BEGIN && is_journal(disk, entry) {
            self.journal_syncs
                .insert(entry.a, (begin, entry.nanoseconds));
        } else if entry.kind == entry::SYNC_END
            && let Some((begin, at)) = self.journal_syncs.remove(&entry.a)
        {
            self.position = self.position.max(begin);
            self.synced_at = Some(at);
        }
    }
}

fn is_journal(disk: &Disk, entry: &Entry<'_>) -> bool {
    let name = disk.name_of(entry.file);
    name.is_some_and(|name| name.to_string_lossy().contains("JOURNAL"))
}

/// The machine.
pub(crate) struct Machine {
    plan: Plan,
    random: StdRng,
    folder: PathBuf,
    boots: u64,
    folders: u64,
    loads: u64,
    loss: Loss,
    /// How many power losses servers have outlived.
    pub(crate) losses: usize,
    /// How many steps of clients were answered.
    pub(crate) answered: usize,
    /// How old the journal's last sync was at a power loss, at most, with `fsync = everysec`.
    pub(crate) age_max: Duration,
}

impl Machine {
    /// A machine with an empty disk, using a folder.
    pub(crate) fn new(folder: &Path, plan: Plan, random: StdRng) -> Self {
        let base = Contents {
            own: vec![Own::default(); CLIENTS],
            ..Contents::default()
        };
        let history = History::new(base);
        Self {
            plan,
            random,
            folder: folder.canonicalize().unwrap(),
            boots: 0,
            folders: 0,
            loads: 0,
            loss: Loss {
                image: Image::new(),
                bounds: history.bounds(0, 0),
                history: Rc::new(history),
                at: "an empty disk".to_owned(),
            },
            losses: 0,
            answered: 0,
            age_max: Duration::ZERO,
        }
    }

    fn new_folder(&mut self, image: &Image) -> PathBuf {
        self.folders += 1;
        let root = self.folder.join(format!("disk-{}", self.folders));
        std::fs::create_dir(&root).unwrap();
        write_image(image, &root).unwrap();
        root
    }

    fn new_start(&mut self) -> Start {
        self.boots += 1;
        let either = ["always", "everysec"][self.random.random_range(0..2)];
        Start {
            // Occasionally the system does not say.
            boot: (self.random.random_range(0..8) > 0).then_some(self.boots),
            fsync: self.plan.fsync.unwrap_or(either),
            sync_us_max: [0, 300, 3_000, 20_000][self.random.random_range(0..4)],
            kill_at: None,
        }
    }

    /// A start that may die during the writes of a drain.
    fn new_loaded_start(&mut self) -> Start {
        let writes = self.random.random_range(20..400);
        Start {
            kill_at: (self.plan.fills_disk.is_none() && self.random.random()).then_some(writes),
            ..self.new_start()
        }
    }

    /// Starts a server on what the last power loss left and uses it, with further starts if it ends
    /// without a power loss. Then simulates power losses in all of that. The machine continues from
    /// one of them.
    pub(crate) fn live(&mut self) -> Result<(), String> {
        let root = self.new_folder(&self.loss.image.clone());
        let mut disk = Disk::of_folder(&root).unwrap();
        let mut start = self.new_loaded_start();
        let (server, base) = start_after(&self.loss, &root, &log_path(&root, 0), &start)?;
        let mut history = History::new(base);
        let mut server = Some(server);
        let (mut begin, mut durable) = (0, 0);
        let mut losses = Vec::new();
        let processes = [1, 1, 2, 3][self.random.random_range(0..4)];
        for process in 0..processes {
            let log = log_path(&root, process);
            let mut server = match server.take() {
                Some(server) => server,
                None => start_again(&root, &log, &start, &mut history)
                    .map_err(|wrong| format!("process {process}: {wrong}"))?,
            };
            let clock = Clock {
                ticks: AtomicU64::new(process << 40),
                log: log.clone(),
                before: begin,
            };
            let ready = clock.position();
            let kills = start.kill_at.is_some()
                || self.plan.fills_disk == Some(ALL)
                || self.random.random_range(0..4) > 0;
            std::fs::write(recorded::armed_file(&log), b"").unwrap();
            let time = Duration::from_millis(self.random.random_range(self.plan.load_ms.clone()));
            self.loads += 1;
            let load = Load {
                seed: self.loads,
                time,
                kills,
                is_large: self.plan.is_large,
                fills: self
                    .plan
                    .fills_disk
                    .map(|what| (recorded::full_file(&root), what)),
            };
            load_and_end(&mut server, &clock, &mut history, &load)?;
            let run = Run {
                disk: disk.clone(),
                log: Log::read(&log).unwrap(),
                begin,
                ready,
                start: start.clone(),
                durable,
            };
            begin += run.log.bytes.len() as u64;
            durable = run_ended(&run, &mut disk, kills)?;
            losses.extend(self.lose_power(&run, process, &history)?);
            start = Start {
                boot: start.boot,
                ..self.new_loaded_start()
            };
        }
        let steps = history.clients.iter().flatten();
        self.answered += steps.filter(|step| step.answered.is_some()).count();
        self.remove(&root);
        let index = self.random.random_range(0..losses.len());
        self.loss = losses.swap_remove(index);
        Ok(())
    }

    /// Simulates power losses in a run, and starts a server after each. Returns one of them.
    fn lose_power(
        &mut self,
        run: &Run,
        process: u64,
        history: &History,
    ) -> Result<Option<Loss>, String> {
        let entries: Vec<_> = run.log.entries().collect();
        let mut points: Vec<usize> = (0..self.plan.points)
            .map(|_| self.point(run, &entries))
            .collect();
        points.sort_unstable();
        let counts = self.random.random_range(0..points.len());
        let history = Rc::new(history.clone());
        let mut disk = run.disk.clone();
        let mut durable = Durable::new(run);
        let mut at = 0;
        let mut chosen = None;
        for (number, point) in points.into_iter().enumerate() {
            for (range, entry) in &entries[at..=point] {
                let lies = !self.plan.disk_is_honest
                    && entry.kind == entry::SYNC_END
                    && is_journal(&disk, entry);
                if !lies {
                    disk.apply(entry)?;
                }
                durable.apply(range, entry, &disk);
            }
            at = point + 1;
            let (range, entry) = &entries[point];
            let end = run.begin + range.end as u64;
            let (history, bounds) = if end < run.ready && process == 0 {
                (Rc::clone(&self.loss.history), self.loss.bounds.clone())
            } else {
                let bounds = history.bounds(durable.position, end);
                (Rc::clone(&history), bounds)
            };
            let loss = Loss {
                image: disk.after_power_loss(&mut self.random),
                history,
                bounds,
                at: format!(
                    "process {process} ({:?}), operation {point} of {} ({})",
                    run.start,
                    entries.len(),
                    disk.describe(entry),
                ),
            };
            self.check(&loss)?;
            if let Some(at) = durable.synced_at {
                let age = Duration::from_nanos(entry.nanoseconds - at);
                self.age_max = self.age_max.max(age);
            }
            if number == counts {
                chosen = Some(loss);
            }
        }
        Ok(chosen)
    }

    /// Has power losses amid a first start.
    pub(crate) fn lose_power_amid_the_first_start(&mut self, points: u64) -> Result<(), String> {
        let root = self.new_folder(&Image::new());
        let empty = Disk::of_folder(&root).unwrap();
        let log = log_path(&root, 0);
        drop(recorded::start(&root, &log, &self.new_start())?);
        let log = Log::read(&log).unwrap();
        let entries: Vec<_> = log.entries().map(|(_, entry)| entry).collect();
        for _ in 0..points {
            let mut disk = empty.clone();
            let last = self.random.random_range(0..entries.len());
            for entry in &entries[..=last] {
                disk.apply(entry)?;
            }
            let loss = Loss {
                image: disk.after_power_loss(&mut self.random),
                history: Rc::clone(&self.loss.history),
                bounds: self.loss.bounds.clone(),
                at: disk.describe(&entries[last]),
            };
            self.check(&loss)?;
        }
        Ok(())
    }

    /// The operation after which the power fails.
    fn point(&mut self, run: &Run, entries: &[(Range<usize>, Entry<'_>)]) -> usize {
        let last = entries.len() - 1;
        let is_at_start =
            |(range, _): &(Range<usize>, Entry<'_>)| run.begin + (range.end as u64) < run.ready;
        match self.random.random_range(0..6) {
            0 => last,
            1 => {
                let started = entries.partition_point(is_at_start);
                self.random.random_range(0..=started.min(last))
            }
            2 | 3 => self.random.random_range(0..=last),
            _ => {
                // Near rare events.
                let is_rare = |(index, (_, entry)): (usize, &(Range<usize>, Entry<'_>))| {
                    let is_common = matches!(
                        entry.kind,
                        entry::WRITE | entry::SYNC_BEGIN | entry::SYNC_END
                    );
                    let is_in_folder = entry.file != 0 && run.disk.is_folder(entry.file);
                    (!is_common || is_in_folder).then_some(index)
                };
                let rare: Vec<usize> = entries.iter().enumerate().filter_map(is_rare).collect();
                if rare.is_empty() {
                    return last;
                }
                let near = rare[self.random.random_range(0..rare.len())];
                (near + self.random.random_range(0..8))
                    .saturating_sub(3)
                    .min(last)
            }
        }
    }

    /// Starts a server on what a power loss left and checks its content.
    fn check(&mut self, loss: &Loss) -> Result<(), String> {
        let root = self.new_folder(&loss.image);
        let start = self.new_start();
        let log = log_path(&root, 0);
        let (server, _) = start_after(loss, &root, &log, &start)?;
        drop(server);
        self.losses += 1;
        self.remove(&root);
        Ok(())
    }

    fn remove(&self, root: &Path) {
        std::fs::remove_dir_all(root).unwrap();
        for process in 0..3 {
            let log = log_path(root, process);
            let _ = std::fs::remove_file(recorded::boot_id_file(&log));
            let _ = std::fs::remove_file(recorded::armed_file(&log));
            let _ = std::fs::remove_file(log);
        }
    }
}

fn log_path(root: &Path, process: u64) -> PathBuf {
    root.with_extension(format!("{process}.log"))
}

fn start_after(
    loss: &Loss,
    root: &Path,
    log: &Path,
    start: &Start,
) -> Result<(Server, Contents), String> {
    let had_checkpoint = loss.image.contains_key(Path::new("data/CHECKPOINT"));
    let found = || {
        let server = recorded::start(root, log, start)?;
        if server.log().contains(WENT_BACK) != had_checkpoint {
            return Err(format!("a power loss was not noticed: {}", server.log()));
        }
        let contents = contents(&server, CLIENTS)?;
        loss.history.check(&loss.bounds, &contents)?;
        Ok((server, contents))
    };
    found().map_err(|wrong: String| {
        format!(
            "{wrong}\nafter a power loss at {}, started {start:?} in {}",
            loss.at,
            root.display()
        )
    })
}

/// Starts a server after another has ended without a power loss.
fn start_again(
    root: &Path,
    log: &Path,
    start: &Start,
    history: &mut History,
) -> Result<Server, String> {
    let server = recorded::start(root, log, start)?;
    if start.boot.is_some() && server.log().contains(WENT_BACK) {
        return Err("an end of the process was taken for a power loss".to_owned());
    }
    let contents = contents(&server, CLIENTS)?;
    let all = history.bounds(u64::MAX, u64::MAX);
    let prefixes = history.check(&all, &contents)?;
    history.go_on(&prefixes);
    Ok(server)
}

/// Brings the disk to the state at the end of the run. Returns what is durable then.
fn run_ended(run: &Run, disk: &mut Disk, kills: bool) -> Result<u64, String> {
    let mut durable = Durable::new(run);
    for (range, entry) in run.log.entries() {
        disk.apply(&entry)?;
        durable.apply(&range, &entry, disk);
    }
    disk.process_ended();
    let untold = disk.take_over().unwrap();
    if untold.len() > if kills { UNTOLD_MAX } else { 0 } {
        return Err(format!(
            "the recorder did not see what was done to {untold:?}"
        ));
    }
    let end = run.begin + run.log.bytes.len() as u64;
    Ok(match run.start.fsync {
        "always" => end,
        _ if !kills => end,
        _ => durable.position,
    })
}

//! Memory and processor time of this process and this machine, read from /proc. Without /proc all
//! numbers are 0.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

/// Memory of this machine if the system does not report it.
const UNKNOWN_MEMORY_BYTES: u64 = 8 * 1024 * 1024 * 1024;
/// Clock ticks in a second, as Linux reports them to programs.
const TICKS_PER_SECOND: u64 = 100;

/// Memory of this process.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Memory that this process has allocated and touched.
    pub(super) allocated_bytes: u64,
    /// All memory that it uses. This includes pages of the store's file, which the system can reclaim
    /// at any time.
    pub(super) resident_bytes: u64,
    /// Addresses that it has mapped, whether they are in memory or not.
    pub(super) virtual_bytes: u64,
}

/// The memory of this process.
pub(super) fn memory() -> Memory {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    Memory {
        allocated_bytes: kibibytes(&status, "RssAnon:"),
        resident_bytes: kibibytes(&status, "VmRSS:"),
        virtual_bytes: kibibytes(&status, "VmSize:"),
    }
}

/// Files, connections included, that this process has open.
pub(super) fn open_files() -> u64 {
    fs::read_dir("/proc/self/fd").map_or(0, |files| files.count() as u64)
}

/// The maximum number of open files of this process. `None` means no limit.
pub(super) fn open_files_max() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// The memory of this machine, in bytes.
pub(super) fn total_memory_bytes() -> u64 {
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    kibibytes(&memory, "MemTotal:")
}

/// The memory that this process may use: the machine's, or less if it runs in a container or a systemd
/// unit with a limit.
pub(super) fn usable_memory_bytes() -> u64 {
    let machine = match total_memory_bytes() {
        0 => UNKNOWN_MEMORY_BYTES,
        bytes => bytes,
    };
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    group_limit_files(&groups)
        .filter_map(|file| fs::read_to_string(file).ok()?.trim().parse().ok())
        .fold(machine, u64::min)
}

/// Files with the memory limits of this process's control groups, of versions 2 and 1. Limits of parent
/// groups apply too. A file says `max` or a huge number if there is no limit.
fn group_limit_files(groups: &str) -> impl Iterator<Item = PathBuf> {
    let files = groups.lines().flat_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let controllers = fields.next().unwrap_or_default();
        let path = fields.next().unwrap_or_default().trim_start_matches('/');
        let place = match controllers {
            // Above `memory.high` the group is slowed down and its memory taken back.
            "" => Some(("/sys/fs/cgroup", ["memory.max", "memory.high"].as_slice())),
            _ if controllers.split(',').any(|one| one == "memory") => {
                let file = ["memory.limit_in_bytes"].as_slice();
                Some(("/sys/fs/cgroup/memory", file))
            }
            _ => None,
        };
        place.into_iter().flat_map(move |(root, files)| {
            let groups = Path::new(path).ancestors();
            groups.flat_map(move |group| {
                let folder = Path::new(root).join(group);
                files.iter().map(move |file| folder.join(file))
            })
        })
    });
    files.collect::<Vec<_>>().into_iter()
}

/// The line `name   1234 kB`, in bytes.
fn kibibytes(text: &str, name: &str) -> u64 {
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    value
        .and_then(|value| value.split_whitespace().next())
        .and_then(|number| number.parse::<u64>().ok())
        .map_or(0, |number| number * 1024)
}

/// Processor time that this process has used, in microseconds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ProcessorTime {
    pub(super) user_us: u64,
    pub(super) system_us: u64,
    pub(super) children_user_us: u64,
    pub(super) children_system_us: u64,
}

/// Processor time of this process.
pub(super) fn processor_time() -> ProcessorTime {
    parse_stat(&fs::read_to_string("/proc/self/stat").unwrap_or_default())
}

/// Processor time of the thread that the process began with.
pub(super) fn processor_time_of_main_thread() -> ProcessorTime {
    let file = format!("/proc/self/task/{}/stat", std::process::id());
    parse_stat(&fs::read_to_string(file).unwrap_or_default())
}

fn parse_stat(stat: &str) -> ProcessorTime {
    // The second field is a name in parentheses and may hold anything.
    let Some((_, fields)) = stat.rsplit_once(')') else {
        return ProcessorTime::default();
    };
    // The first field here is the third of the file; utime is its fourteenth.
    let mut ticks = fields
        .split_whitespace()
        .skip(11)
        .map(|field| field.parse::<u64>().unwrap_or(0));
    let mut next_us = || ticks.next().unwrap_or(0) * (1_000_000 / TICKS_PER_SECOND);
    ProcessorTime {
        user_us: next_us(),
        system_us: next_us(),
        children_user_us: next_us(),
        children_system_us: next_us(),
    }
}

/// Name, release and processor of the system.
pub(super) fn system() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let name = fs::read_to_string("/proc/sys/kernel/ostype").unwrap_or_default();
    let architecture = std::env::consts::ARCH;
    format!("{} {} {architecture}", name.trim(), release.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_found_behind_a_strange_name() {
        let stat = "1 (a) b) S 2 3 4 5 6 7 8 9 10 11 120 34 5 6 20 0";
        let time = ProcessorTime {
            user_us: 1_200_000,
            system_us: 340_000,
            children_user_us: 50_000,
            children_system_us: 60_000,
        };
        assert_eq!(parse_stat(stat), time);
        assert_eq!(parse_stat(""), ProcessorTime::default());
    }

    #[test]
    fn limits_of_control_groups_above_are_looked_at_too() {
        let files: Vec<_> = group_limit_files("5:cpu:/x\n4:memory:/\n0::/a/b\n").collect();
        let expected = [
            "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            "/sys/fs/cgroup/a/b/memory.max",
            "/sys/fs/cgroup/a/b/memory.high",
            "/sys/fs/cgroup/a/memory.max",
            "/sys/fs/cgroup/a/memory.high",
            "/sys/fs/cgroup/memory.max",
            "/sys/fs/cgroup/memory.high",
        ];
        assert_eq!(files, expected.map(PathBuf::from));
        assert!(usable_memory_bytes() > 0);
    }

    #[test]
    fn lines_of_proc_are_in_kibibytes() {
        assert_eq!(
            kibibytes("A:  1 kB\nMemTotal:   12 kB\n", "MemTotal:"),
            12_288
        );
        assert_eq!(kibibytes("", "MemTotal:"), 0);
    }
}

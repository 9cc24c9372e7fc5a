//! What the process knows of itself and its machine.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use tidelake_model::{Holder, RunId};
use tidelake_sync::Host;

/// This machine, as far as `/proc` describes it. Elsewhere a holder is never
/// known to be gone, and a lease ends by its time alone.
pub(crate) struct Machine {
    holder: Holder,
    runs: Mutex<ulid::Generator>,
}

impl Machine {
    /// This process on this machine.
    pub(crate) fn new() -> Self {
        let process_id = std::process::id();
        let holder = Holder {
            host: host_name(),
            boot_id: boot_id().unwrap_or_default(),
            process_id,
            process_started: started(process_id).unwrap_or_default(),
        };
        Self { holder, runs: Mutex::new(ulid::Generator::new()) }
    }
}

impl Host for Machine {
    fn new_run_id(&self) -> RunId {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        // The generator only fails after 2^80 ids in one millisecond.
        RunId::from_number(runs.generate().unwrap_or_else(|_| ulid::Ulid::new()).0)
    }

    fn holder(&self) -> Holder {
        self.holder.clone()
    }

    fn is_gone(&self, holder: &Holder) -> bool {
        let here = !holder.boot_id.is_empty()
            && holder.boot_id == self.holder.boot_id
            && holder.host == self.holder.host;
        // Started at another time, it is another process with a reused id.
        here && started(holder.process_id) != Some(holder.process_started)
    }
}

fn host_name() -> String {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    read("/proc/sys/kernel/hostname")
        .or_else(|| read("/etc/hostname"))
        .or_else(|| std::env::var("HOSTNAME").ok())
        .or_else(|| std::env::var("COMPUTERNAME").ok())
        .map_or_else(|| "localhost".to_owned(), |name| name.trim().to_owned())
}

/// The boot, and the space of process ids: in two containers of one machine the
/// same id means two processes.
fn boot_id() -> Option<String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let space = std::fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("{}/{}", boot.trim(), space.display()))
}

/// When a process started, in clock ticks since the boot; `None` when it is gone.
fn started(process: u32) -> Option<u64> {
    let path = Path::new("/proc").join(process.to_string()).join("stat");
    start_time(&std::fs::read_to_string(path).ok()?)
}

/// Field 22 of `/proc/<pid>/stat`. The second field is the program's name in
/// parentheses, and may hold anything.
fn start_time(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    // A zombie holds nothing any more.
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_ids_rise() {
        let machine = Machine::new();
        let ids: Vec<_> = (0..1000).map(|_| machine.new_run_id()).collect();
        assert!(ids.is_sorted_by(|left, right| left < right));
    }

    #[test]
    fn the_start_is_found_behind_any_name() {
        let fields = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";
        assert_eq!(start_time(&format!("42 (a) b (c)) {fields}")), Some(4711));
        assert_eq!(start_time(&format!("42 (x) {}", fields.replacen('S', "Z", 1))), None);
        assert_eq!(start_time("garbage"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_that_ended_is_gone() {
        let machine = Machine::new();
        assert!(!machine.is_gone(&machine.holder()), "this process runs");
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let mut holder = machine.holder();
        holder.process_id = child.id();
        child.wait().unwrap();
        assert!(machine.is_gone(&holder));
        holder.boot_id = "another boot".into();
        assert!(!machine.is_gone(&holder), "nothing is known of other boots");
        let mut reused = machine.holder();
        reused.process_started += 1;
        assert!(machine.is_gone(&reused));
    }
}

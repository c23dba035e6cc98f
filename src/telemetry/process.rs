//! What the system says of this process, as Prometheus names it. Known on Linux only; elsewhere nothing is said.
use std::{fs, sync::LazyLock};

/// What all Linux systems of today count time by in `/proc`.
const TICKS: f64 = 100.0;

/// Processor time, in seconds.
pub(super) fn cpu() -> Option<f64> {
    let user: f64 = stat(14)?;
    let system: f64 = stat(15)?;
    Some((user + system) / TICKS)
}

/// Memory, in bytes.
pub(super) fn memory() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"))?;
    let kilobytes: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1024.0)
}

/// Open files.
pub(super) fn files() -> Option<f64> {
    let open = fs::read_dir("/proc/self/fd").ok()?.count();
    u32::try_from(open.saturating_sub(1)).ok().map(f64::from) // the folder itself
}

/// The most of them.
pub(super) fn most_files() -> Option<f64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits
        .lines()
        .find_map(|l| l.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// When it began, in Unix time.
pub(super) fn began() -> Option<f64> {
    static BEGAN: LazyLock<Option<f64>> = LazyLock::new(|| {
        let ticks: f64 = stat(22)?;
        let text = fs::read_to_string("/proc/stat").ok()?;
        let boot = text.lines().find_map(|l| l.strip_prefix("btime "))?;
        Some(boot.trim().parse::<f64>().ok()? + ticks / TICKS)
    });
    *BEGAN
}

/// A field of `/proc/self/stat`, counted from 1 as its manual does; the second may hold blanks.
fn stat(field: usize) -> Option<f64> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    let (_, rest) = text.rsplit_once(") ")?;
    rest.split(' ').nth(field - 3)?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_process_is_known() {
        assert!(cpu().unwrap() >= 0.0);
        assert!(memory().unwrap() > 100_000.0);
        let before = files().unwrap();
        let more: Vec<_> = (0..5)
            .map(|_| fs::File::open("/dev/null").unwrap())
            .collect();
        assert!(files().unwrap() >= before + 4.0, "others may close some");
        drop(more);
        assert!(most_files().unwrap() > before);
        let now = jiff::Timestamp::now().as_second();
        let now = f64::from(u32::try_from(now).unwrap());
        let began = began().unwrap();
        assert!(began <= now + 2.0 && began > now - 3600.0 * 24.0);
    }
}

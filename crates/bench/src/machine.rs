//! Where and when the numbers were taken. A time without its machine says nothing.

use std::path::Path;
use std::thread;

use serde::Serialize;

use super::lab::Lab;

/// The machine, as far as it matters for start times.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    pub date: String,
    pub kernel: String,
    pub cpu: String,
    pub cores: usize,
    pub memory: String,
    /// Of the directory everything was measured in.
    pub file_system: String,
    pub load_before: String,
    pub load_after: String,
}

impl Machine {
    pub fn look(lab: &Lab) -> Self {
        let ask = |argv: &[&str]| {
            let answer =
                lab.anybody().and_then(|caller| caller.invoke(lab.base(), argv.iter().copied()).output());
            answer.unwrap_or_else(|reason| format!("unknown ({reason})"))
        };
        let base = lab.base().display().to_string();
        let load = load();
        Self {
            date: ask(&["date", "--utc", "+%Y-%m-%d %H:%M UTC"]),
            kernel: ask(&["uname", "-srm"]),
            cpu: field("/proc/cpuinfo", "model name"),
            cores: thread::available_parallelism().map_or(0, usize::from),
            memory: field("/proc/meminfo", "MemTotal"),
            file_system: ask(&["findmnt", "--noheadings", "--output", "FSTYPE", "--target", &base]),
            load_before: load.clone(),
            load_after: load,
        }
    }
}

/// The load averages over one, five and fifteen minutes.
pub fn load() -> String {
    let text = fs_err::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

fn field(file: impl AsRef<Path>, name: &str) -> String {
    let text = fs_err::read_to_string(file.as_ref()).unwrap_or_default();
    let value = text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    });
    value.unwrap_or_else(|| "unknown".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("info");
        fs_err::write(&file, "model\t: 1\nmodel name\t: Fast: 2\n").unwrap();
        assert_eq!(field(&file, "model name"), "Fast: 2");
        assert_eq!(field(&file, "name"), "unknown");
    }
}

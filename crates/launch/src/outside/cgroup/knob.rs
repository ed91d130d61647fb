//! The files of a control group: which value goes where, and whether it is there.

use std::io::{ErrorKind, Write as _};
use std::path::Path;

use fs_err as fs;
use sandtable_protocol::op::Limits;
use sandtable_protocol::report::Control;

use super::hierarchy::Version;

/// The stretch over which processor time is counted, in microseconds: the kernel's own choice.
const PERIOD: u64 = 100_000;

/// One value in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Knob {
    file: &'static str,
    value: String,
    need: Need,
}

/// Whether a kernel without the file can still limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    Always,
    IfThere,
}

/// Whether `limits` has something to say about `control`.
pub(super) fn is_asked(control: Control, limits: &Limits) -> bool {
    !knobs(control, Version::Two, limits).is_empty()
}

/// The controller behind a limit.
pub(super) fn controller(control: Control) -> &'static str {
    match control {
        Control::MemoryLimit => "memory",
        Control::CpuLimit => "cpu",
        Control::PidsLimit => "pids",
        other => unreachable!("`{other}` is no limit"),
    }
}

/// What a limit consists of, in the order of writing. Memory includes swap: a limit that only made the
/// machine swap would be none.
pub(super) fn knobs(control: Control, version: Version, limits: &Limits) -> Vec<Knob> {
    let always = |file, value: String| Knob { file, value, need: Need::Always };
    let if_there = |file, value: String| Knob { file, value, need: Need::IfThere };
    match (control, version) {
        (Control::MemoryLimit, Version::One) => limits.memory.map_or(Vec::new(), |bytes| {
            vec![
                always("memory.limit_in_bytes", bytes.to_string()),
                if_there("memory.memsw.limit_in_bytes", bytes.to_string()),
            ]
        }),
        (Control::MemoryLimit, Version::Two) => limits.memory.map_or(Vec::new(), |bytes| {
            vec![
                always("memory.max", bytes.to_string()),
                if_there("memory.swap.max", "0".to_owned()),
                if_there("memory.oom.group", "1".to_owned()),
            ]
        }),
        (Control::CpuLimit, version) => limits.cpus.map_or(Vec::new(), |thousandths| {
            let quota = u64::from(thousandths) * PERIOD / 1000;
            match version {
                Version::One => vec![
                    always("cpu.cfs_period_us", PERIOD.to_string()),
                    always("cpu.cfs_quota_us", quota.to_string()),
                ],
                Version::Two => vec![always("cpu.max", format!("{quota} {PERIOD}"))],
            }
        }),
        (Control::PidsLimit, _) => {
            limits.pids.map_or(Vec::new(), |most| vec![always("pids.max", most.to_string())])
        }
        _ => Vec::new(),
    }
}

/// How often the kernel killed something in this group for want of memory.
pub(super) fn memory_kills(directory: &Path, version: Version) -> u64 {
    let file = match version {
        Version::One => "memory.oom_control",
        Version::Two => "memory.events",
    };
    let text = fs::read_to_string(directory.join(file)).unwrap_or_default();
    let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
    count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

impl Knob {
    /// Whether it bounds something, and does not only say what happens at the bound.
    pub(super) fn is_limit(&self) -> bool {
        self.file != "memory.oom.group"
    }

    /// Writes the value, or says why that cannot be.
    pub(super) fn set(&self, directory: &Path) -> Result<(), String> {
        let written = fs::OpenOptions::new()
            .write(true)
            .open(directory.join(self.file))
            .and_then(|mut file| file.write_all(self.value.as_bytes()));
        match written {
            Err(error) if self.need == Need::IfThere && error.kind() == ErrorKind::NotFound => Ok(()),
            written => written
                .map_err(|error| format!("cannot set `{}` to {}: {}", self.file, self.value, cause(&error))),
        }
    }

    /// Says what is wrong unless the kernel shows the value.
    pub(super) fn check(&self, directory: &Path) -> Result<(), String> {
        match fs::read_to_string(directory.join(self.file)) {
            Ok(text) if agree(text.trim(), &self.value) => Ok(()),
            Ok(text) => Err(format!("`{}` is {}, not {}", self.file, text.trim(), self.value)),
            Err(error) if self.need == Need::IfThere && error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(format!("cannot read `{}`: {}", self.file, cause(&error))),
        }
    }
}

/// The bare reason, without the path that `fs_err` puts before it.
pub(super) fn cause(error: &std::io::Error) -> String {
    error.kind().to_string()
}

/// Whether the kernel's answer is what was written: it rounds bytes down to whole pages.
fn agree(found: &str, written: &str) -> bool {
    const LARGEST_PAGE: u64 = 64 << 10;
    match (found.parse::<u64>(), written.parse::<u64>()) {
        (Ok(found), Ok(written)) if written > LARGEST_PAGE => {
            found <= written && written - found < LARGEST_PAGE
        }
        _ => found == written,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits {
            group: "sandtable-a".to_owned(),
            journal: "/j".into(),
            memory: Some(100 << 20),
            cpus: Some(500),
            pids: Some(64),
            systemd: None,
        }
    }

    fn shown(version: Version) -> Vec<String> {
        let all = Control::LIMITS.into_iter().flat_map(|control| knobs(control, version, &limits()));
        all.map(|knob| format!("{} = {}", knob.file, knob.value)).collect()
    }

    #[test]
    fn both_versions_say_the_same() {
        assert_eq!(
            shown(Version::One),
            [
                "memory.limit_in_bytes = 104857600",
                "memory.memsw.limit_in_bytes = 104857600",
                "cpu.cfs_period_us = 100000",
                "cpu.cfs_quota_us = 50000",
                "pids.max = 64",
            ]
        );
        assert_eq!(
            shown(Version::Two),
            [
                "memory.max = 104857600",
                "memory.swap.max = 0",
                "memory.oom.group = 1",
                "cpu.max = 50000 100000",
                "pids.max = 64",
            ]
        );
    }

    #[test]
    fn what_was_not_asked_for_is_not_there() {
        let none = Limits { memory: None, cpus: None, ..limits() };
        let asked: Vec<_> = Control::LIMITS.into_iter().filter(|control| is_asked(*control, &none)).collect();
        assert_eq!(asked, [Control::PidsLimit]);
    }

    #[test]
    fn a_value_that_was_not_taken_is_found() {
        assert!(agree("64", "64") && agree("50000 100000", "50000 100000"));
        assert!(agree("104857600", "104857601"), "rounded to a page");
        assert!(!agree("max", "64") && !agree("63", "64") && !agree("-1", "50000"));
        assert!(!agree("9223372036854771712", "104857600") && !agree("4096", "104857600"));
    }
}

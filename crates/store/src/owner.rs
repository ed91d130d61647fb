//! Who a temporary file or a lease belongs to: a process, told apart from a later one of the same number by
//! the moment it started.

use std::fmt;
use std::str::FromStr;

/// A process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    pub pid: u32,
    /// In ticks since the machine started.
    pub start: u64,
}

impl Owner {
    /// This process.
    pub fn current() -> Self {
        let pid = std::process::id();
        Self { pid, start: start_of(pid).unwrap_or_default() }
    }

    pub fn is_alive(&self) -> bool {
        start_of(self.pid) == Some(self.start)
    }
}

/// When a process started; `None` if there is none.
fn start_of(pid: u32) -> Option<u64> {
    let stat = fs_err::read(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain anything, so the fields are counted from its end.
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields = str::from_utf8(&stat[end + 1..]).ok()?;
    fields.split_ascii_whitespace().nth(19)?.parse().ok()
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.pid, self.start)
    }
}

/// From the start of the name of a temporary file.
impl FromStr for Owner {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.splitn(3, '-');
        let mut number = || parts.next().and_then(|part| part.parse::<u64>().ok()).ok_or(());
        let pid = u32::try_from(number()?).map_err(|_| ())?;
        Ok(Self { pid, start: number()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_from_a_later_one() {
        let me = Owner::current();
        assert!(me.is_alive());
        assert!(me.start > 0);
        assert!(!Owner { start: me.start + 1, ..me }.is_alive());
        assert_eq!(format!("{me}-7.pack").parse(), Ok(me));
        assert_eq!("x-1-2".parse::<Owner>(), Err(()));
        assert_eq!("12".parse::<Owner>(), Err(()));
    }
}

//! The names of the settings, one list for flags, variables and files.

pub use super::row::{Fallback, Flag, Heading, InPolicy, Negative, Row, Scope};
pub use super::table::Key;

/// What kind of value a setting takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Path,
    Switch,
    List,
    /// A list whose items are taken as they are.
    Words,
    /// A list that a variable writes as one line, in the manner of a shell.
    Line,
}

/// The candidate that `given` was most likely meant to be, if one is close enough.
pub fn closest<'a>(given: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = given.len() / 3;
    candidates
        .map(|candidate| (strsim::osa_distance(given, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit.max(1))
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_their_setting() {
        for key in Key::ALL {
            assert_eq!(Key::from_word(key.word()), Some(*key));
        }
        assert_eq!(Key::from_word("Network"), None);
    }

    #[test]
    fn a_slip_of_the_pen_is_recognised_and_nonsense_is_not() {
        let words = || Key::ALL.iter().map(|key| key.word());
        assert_eq!(closest("netwrok", words()), Some("network"));
        assert_eq!(closest("git-config", words()), Some("git_config"));
        assert_eq!(closest("mount", words()), Some("mounts"));
        assert_eq!(closest("frobnicate", words()), None);
    }
}

//! One line of the table of settings: what is the same for every type of value.

use super::key::{Key, Kind};

/// A setting's names, place in help, default and reason.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The key in configuration files; in upper case and behind `SANDTABLE_`, the variable.
    pub word: &'static str,
    pub flag: Flag,
    pub heading: Heading,
    pub scope: Scope,
    /// What holds when nobody says anything, for a setting that always has a value.
    pub default: Option<Fallback>,
    pub policy: InPolicy,
}

/// An option of the command line.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// With its dashes.
    pub long: &'static str,
    pub short: Option<char>,
    /// What help calls the value; empty for a switch.
    pub value: &'static str,
    /// Whether this row is the one that the option is made of; of two rows with one option, one is.
    pub own: bool,
    /// Whether `--help` alone shows it.
    pub rare: bool,
    /// The option that switches it off.
    pub negative: Option<Negative>,
    pub conflicts: Option<Key>,
}

/// An option that switches a setting off.
#[derive(Clone, Copy, Debug)]
pub struct Negative {
    pub long: &'static str,
    pub short: char,
    pub help: &'static str,
}

/// A default, written as a variable would have it, and why it is that.
#[derive(Clone, Copy, Debug)]
pub struct Fallback {
    pub value: &'static str,
    pub reason: &'static str,
}

/// Where help lists an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heading {
    Workspace,
    Visibility,
    Network,
    Limits,
    Containers,
    Policy,
    Output,
}

impl Heading {
    pub const ALL: [Self; 7] = [
        Self::Workspace,
        Self::Visibility,
        Self::Network,
        Self::Limits,
        Self::Containers,
        Self::Policy,
        Self::Output,
    ];

    pub fn title(self) -> &'static str {
        match self {
            Self::Workspace => "Workspace",
            Self::Visibility => "Visibility",
            Self::Network => "Network",
            Self::Limits => "Limits",
            Self::Containers => "Containers",
            Self::Policy => "Policy",
            Self::Output => "Output",
        }
    }
}

/// Which commands take the option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those that create a sandbox, or say what it would be like.
    Create,
    /// Those that run a command in a sandbox.
    Command,
    /// `run` alone.
    Run,
}

/// Whether `policy show` lists the setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InPolicy {
    Always,
    /// Only if somebody set it.
    WhenSet,
    /// It is part of another list there, or no part of the policy.
    Never,
}

impl Row {
    /// A setting whose flag takes a value; `""` makes it a switch.
    pub(super) const fn new(
        word: &'static str,
        long: &'static str,
        value: &'static str,
        heading: Heading,
    ) -> Self {
        let flag = Flag { long, short: None, value, own: true, rare: false, negative: None, conflicts: None };
        Self { word, flag, heading, scope: Scope::Create, default: None, policy: InPolicy::Always }
    }

    pub(super) const fn short(self, short: char) -> Self {
        Self { flag: Flag { short: Some(short), ..self.flag }, ..self }
    }

    pub(super) const fn default(self, value: &'static str, reason: &'static str) -> Self {
        Self { default: Some(Fallback { value, reason }), ..self }
    }

    /// Leaves the option out of `-h`.
    pub(super) const fn rare(self) -> Self {
        Self { flag: Flag { rare: true, ..self.flag }, ..self }
    }

    /// The option belongs to another row.
    pub(super) const fn shared(self) -> Self {
        Self { flag: Flag { own: false, ..self.flag }, ..self }
    }

    pub(super) const fn negative(self, long: &'static str, short: char, help: &'static str) -> Self {
        let negative = Some(Negative { long, short, help });
        Self { flag: Flag { negative, ..self.flag }, ..self }
    }

    pub(super) const fn conflicts(self, other: Key) -> Self {
        Self { flag: Flag { conflicts: Some(other), ..self.flag }, ..self }
    }

    pub(super) const fn scope(self, scope: Scope) -> Self {
        Self { scope, ..self }
    }

    pub(super) const fn policy(self, policy: InPolicy) -> Self {
        Self { policy, ..self }
    }
}

impl Key {
    /// The setting's name in configuration files.
    pub fn word(self) -> &'static str {
        self.row().word
    }

    /// The flag on the command line.
    pub fn flag(self) -> &'static str {
        self.row().flag.long
    }

    pub fn kind(self) -> Kind {
        self.form().kind
    }

    /// The setting of that name.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|key| key.word() == word)
    }

    /// The first paragraph of the help.
    pub fn help(self) -> String {
        self.paragraphs().remove(0)
    }

    /// All of the help, if there is more than one paragraph.
    pub fn long_help(self) -> Option<String> {
        let all = self.paragraphs();
        (all.len() > 1).then(|| all.join("\n\n"))
    }

    fn paragraphs(self) -> Vec<String> {
        let lines: Vec<&str> = self.documentation().iter().map(|line| line.trim()).collect();
        lines.split(|line| line.is_empty()).map(|paragraph| paragraph.join(" ")).collect()
    }
}

/// The name of a setting's own variable, as bytes; `N` is its length.
pub(super) const fn variable<const N: usize>(prefix: &str, word: &str) -> [u8; N] {
    let (prefix, word) = (prefix.as_bytes(), word.as_bytes());
    let mut name = [0; N];
    let mut at = 0;
    while at < N {
        name[at] = if at < prefix.len() { prefix[at] } else { word[at - prefix.len()].to_ascii_uppercase() };
        at += 1;
    }
    name
}

pub(super) const fn text(name: &'static [u8]) -> &'static str {
    match std::str::from_utf8(name) {
        Ok(name) => name,
        Err(_) => panic!("a key is in ASCII"),
    }
}

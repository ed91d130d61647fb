//! Settings with a fixed set of words. One definition gives the type, its spelling in every configuration
//! layer and the error for a word that is not in the set.

use std::fmt;
use std::str::FromStr;

/// A word that is not among those a setting knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown value `{given}`; one of {known}")]
pub struct UnknownWord {
    pub given: String,
    pub known: &'static str,
}

/// Such a type.
pub trait Choice: Copy + PartialEq + fmt::Display + FromStr<Err = UnknownWord> + 'static {
    const ALL: &'static [Self];

    /// The word that names this value.
    fn word(self) -> &'static str;
}

/// Defines such a type, its words and how they are read.
#[macro_export]
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $first:ident = $first_word:literal $(, $variant:ident = $word:literal)* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            #[serde(rename = $first_word)]
            $first,
            $(#[serde(rename = $word)] $variant,)*
        }

        impl $name {
            pub const ALL: &'static [Self] = &[Self::$first $(, Self::$variant)*];

            /// The word that names this value.
            pub fn word(self) -> &'static str {
                match self {
                    Self::$first => $first_word,
                    $(Self::$variant => $word,)*
                }
            }
        }

        impl $crate::model::choice::Choice for $name {
            const ALL: &'static [Self] = Self::ALL;

            fn word(self) -> &'static str {
                self.word()
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::model::choice::UnknownWord;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::ALL.iter().copied().find(|value| value.word() == text).ok_or_else(|| {
                    $crate::model::choice::UnknownWord {
                        given: text.to_owned(),
                        known: concat!("`", $first_word, "`" $(, ", `", $word, "`")*),
                    }
                })
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}

pub use choice;

//! How the values of a setting are treated, by their type: read, put on top of each other, shown, made absolute, narrowed.

use std::convert::identity;
use std::ffi::OsString;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use sandtable_sandbox::model::choice::Choice;
use sandtable_sandbox::model::image::ImageRef;
use sandtable_sandbox::model::limits::LimitError;
use sandtable_sandbox::model::profile::{BuiltIn, Profile};
use sandtable_sandbox::model::setting::{Origin, Setting};

use super::key::Kind;
use super::narrow::Narrow;
use super::value::{Raw, ValueError};

/// A setting with one value.
pub(super) type One<T> = Option<Setting<T>>;
/// A setting whose values add up.
pub(super) type Many<T> = Vec<Setting<T>>;
/// A list of which the strongest layer's is all that counts.
pub(super) type Whole<T> = Option<Vec<Setting<T>>>;
/// What makes a path absolute.
pub(super) type Anchor<'a> = &'a dyn Fn(&Path) -> Result<PathBuf, ValueError>;

/// What is done with the values of a setting.
pub(super) struct Form<T: 'static> {
    pub(super) written: Written,
    pub(super) read: fn(Raw, &Origin) -> Result<T, ValueError>,
    /// The first on top of the second.
    pub(super) or: fn(T, T) -> T,
    pub(super) values: fn(&T) -> Vec<Setting<String>>,
    pub(super) anchor: fn(&mut T, Anchor<'_>) -> Result<(), ValueError>,
    pub(super) narrow: Narrow<T>,
}

/// How a value is written.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    pub kind: Kind,
    pub words: Words,
}

/// The words that a value can be.
#[derive(Clone, Copy, Debug)]
pub enum Words {
    /// Any that can be read.
    Any,
    /// These and no other.
    These(fn() -> Vec<&'static str>),
    /// These and more.
    Among(fn() -> Vec<&'static str>),
}

impl Words {
    /// Those that are known beforehand.
    pub fn known(self) -> Vec<&'static str> {
        match self {
            Self::Any => Vec::new(),
            Self::These(words) | Self::Among(words) => words(),
        }
    }
}

impl<T> Form<T> {
    /// The same with another rule for a project's file.
    pub(super) const fn narrowed(self, narrow: Narrow<T>) -> Self {
        Self { narrow, ..self }
    }
}

/// One value that is written as a word of its own.
pub(super) const fn word<T>() -> Form<One<T>>
where
    T: FromStr + Display + PartialEq,
    ValueError: From<T::Err>,
{
    Form {
        written: Written { kind: Kind::Text, words: Words::Any },
        read: |raw, origin| Ok(Some(Setting::new(raw.word()?, origin.clone()))),
        or: Option::or,
        values: |setting| one(setting.as_ref(), T::to_string),
        anchor: |_, _| Ok(()),
        narrow: Narrow::fixed(),
    }
}

/// One of a fixed set of words.
pub(super) const fn choice<T: Choice>() -> Form<One<T>> {
    Form { written: Written { kind: Kind::Text, words: Words::These(words::<T>) }, ..word() }
}

/// The name of a profile: some are always there.
pub(super) const fn profile() -> Form<One<Profile>> {
    Form { written: Written { kind: Kind::Text, words: Words::Among(words::<BuiltIn>) }, ..word() }
}

/// A limit, which a file may write without quotes. A project may lower it.
pub(super) const fn limit<T>() -> Form<One<T>>
where
    T: FromStr<Err = LimitError> + Display + Ord,
{
    Form {
        read: |raw, origin| Ok(Some(Setting::new(raw.limit()?, origin.clone()))),
        narrow: Narrow::lowered(),
        ..word()
    }
}

/// On or off.
pub(super) const fn switch() -> Form<One<bool>> {
    Form {
        written: Written { kind: Kind::Switch, words: Words::Any },
        read: |raw, origin| Ok(Some(Setting::new(raw.switch()?, origin.clone()))),
        or: Option::or,
        values: |setting| one(setting.as_ref(), bool::to_string),
        anchor: |_, _| Ok(()),
        narrow: Narrow::fixed(),
    }
}

/// A switch between the two values of a choice, of which the first means off.
pub(super) const fn either<T: Choice>() -> Form<One<T>> {
    assert!(T::ALL.len() == 2, "a switch has two positions");
    Form {
        written: Written { kind: Kind::Switch, words: Words::Any },
        read: |raw, origin| Ok(Some(Setting::new(T::ALL[usize::from(raw.switch()?)], origin.clone()))),
        values: |setting| one(setting.as_ref(), |value| (*value == T::ALL[1]).to_string()),
        ..word()
    }
}

/// A path of this machine.
pub(super) const fn path() -> Form<One<PathBuf>> {
    Form {
        written: Written { kind: Kind::Path, words: Words::Any },
        read: |raw, origin| Ok(Some(Setting::new(raw.text()?.into(), origin.clone()))),
        or: Option::or,
        values: |setting| one(setting.as_ref(), |path| path.display().to_string()),
        anchor: |setting, anchor| {
            setting.as_mut().map_or(Ok(()), |setting| {
                setting.value = anchor(&setting.value)?;
                Ok(())
            })
        },
        narrow: Narrow::fixed(),
    }
}

/// The name of an image, or the path of one.
pub(super) const fn image() -> Form<One<ImageRef>> {
    Form {
        anchor: |setting, anchor| {
            let Some(setting) = setting.as_mut().filter(|image| image.value.is_path()) else { return Ok(()) };
            let path = anchor(Path::new(setting.value.as_str()))?;
            setting.value = path.to_str().ok_or(ValueError::NotText)?.parse()?;
            Ok(())
        },
        ..word()
    }
}

/// An address of the web.
pub(super) const fn address() -> Form<One<String>> {
    Form {
        written: Written { kind: Kind::Text, words: Words::Any },
        read: |raw, origin| {
            let text = raw.text()?.into_string().map_err(|_| ValueError::NotText)?;
            if !text.starts_with("https://") || text.chars().any(char::is_whitespace) {
                return Err(ValueError::Address(text));
            }
            Ok(Some(Setting::new(text, origin.clone())))
        },
        or: Option::or,
        values: |setting| one(setting.as_ref(), String::clone),
        anchor: |_, _| Ok(()),
        narrow: Narrow::fixed(),
    }
}

/// The words of a command, which has at least one.
pub(super) const fn command() -> Form<One<Vec<String>>> {
    Form {
        written: Written { kind: Kind::Line, words: Words::Any },
        read: |raw, origin| {
            let words = texts(raw)?;
            if words.first().is_none_or(String::is_empty) {
                return Err(ValueError::NoCommand);
            }
            Ok(Some(Setting::new(words, origin.clone())))
        },
        or: Option::or,
        values: |setting| one(setting.as_ref(), |words| words.join(" ")),
        anchor: |_, _| Ok(()),
        narrow: Narrow::fixed(),
    }
}

/// What a list consists of.
pub(super) trait Item: Sized + PartialEq {
    fn read(written: OsString) -> Result<Self, ValueError>;

    /// Whether the other counts as this one, so that the stronger layer's is enough.
    fn same(&self, other: &Self) -> bool {
        self == other
    }

    fn shown(&self) -> String;

    fn anchor(&mut self, anchor: Anchor<'_>) -> Result<(), ValueError> {
        let _ = anchor;
        Ok(())
    }
}

/// A list to which every layer adds. A project may add nothing.
pub(super) const fn list<T: Item>() -> Form<Many<T>> {
    Form {
        written: Written { kind: Kind::Words, words: Words::Any },
        read: |raw, origin| each(raw, origin, T::read),
        or: |strong, weak| united(strong, weak, T::same),
        values: |settings| settings.iter().map(|setting| shown(setting, T::shown)).collect(),
        anchor: |settings, anchor| settings.iter_mut().try_for_each(|setting| setting.value.anchor(anchor)),
        narrow: Narrow::nothing_added(),
    }
}

/// A list of which the strongest layer's is all that counts.
pub(super) const fn whole<T: Item>(kind: Kind) -> Form<Whole<T>> {
    Form {
        written: Written { kind, words: Words::Any },
        read: |raw, origin| Ok(Some(each(raw, origin, T::read)?)),
        or: Option::or,
        values: |settings| settings.iter().flatten().map(|setting| shown(setting, T::shown)).collect(),
        anchor: |_, _| Ok(()),
        narrow: Narrow::fixed_list(),
    }
}

/// Each item of a list as a setting of its own.
pub(super) fn each<T>(
    raw: Raw,
    origin: &Origin,
    read: impl Fn(OsString) -> Result<T, ValueError>,
) -> Result<Many<T>, ValueError> {
    raw.list()?.into_iter().map(|item| Ok(Setting::new(read(item)?, origin.clone()))).collect()
}

/// Everything of both layers; what is the same counts once, the stronger layer's.
pub(super) fn united<T>(mut strong: Many<T>, weak: Many<T>, same: impl Fn(&T, &T) -> bool) -> Many<T> {
    for setting in weak {
        if !strong.iter().any(|other| same(&other.value, &setting.value)) {
            strong.push(setting);
        }
    }
    strong
}

/// What a finished setting becomes.
pub(super) trait Settled<T> {
    fn settled(self) -> T;
}

impl<T> Settled<Setting<T>> for One<T> {
    fn settled(self) -> Setting<T> {
        self.expect("a setting that always has a value has a default")
    }
}

impl<T> Settled<Self> for One<T> {
    fn settled(self) -> Self {
        identity(self)
    }
}

impl<T> Settled<Self> for Many<T> {
    fn settled(self) -> Self {
        identity(self)
    }
}

impl<T> Settled<Many<T>> for Whole<T> {
    fn settled(self) -> Many<T> {
        self.unwrap_or_default()
    }
}

fn words<T: Choice>() -> Vec<&'static str> {
    T::ALL.iter().map(|value| value.word()).collect()
}

fn texts(raw: Raw) -> Result<Vec<String>, ValueError> {
    raw.list()?.into_iter().map(|word| word.into_string().map_err(|_| ValueError::NotText)).collect()
}

fn one<T>(setting: Option<&Setting<T>>, text: impl Fn(&T) -> String) -> Vec<Setting<String>> {
    setting.map(|setting| shown(setting, text)).into_iter().collect()
}

fn shown<T>(setting: &Setting<T>, text: impl Fn(&T) -> String) -> Setting<String> {
    Setting::new(text(&setting.value), setting.origin.clone())
}

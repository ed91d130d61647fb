//! The options of settings, made from their table, and what they become: a layer of settings.

use std::ffi::{OsStr, OsString};
use std::marker::PhantomData;
use std::path::PathBuf;

use clap::builder::{
    OsStringValueParser, PathBufValueParser, PossibleValue, PossibleValuesParser, TypedValueParser,
    ValueParser,
};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use sandtable_app::config::ConfigError;
use sandtable_app::config::form::Words;
use sandtable_app::config::key::{Key, Kind, Negative, Scope};
use sandtable_app::config::layer::Layer;
use sandtable_app::config::value::Raw;
use sandtable_sandbox::model::choice::Choice;
use sandtable_sandbox::model::setting::Origin;

/// The options of settings that a command takes.
#[derive(Debug)]
pub(crate) struct SettingArgs<C> {
    given: Vec<(Key, Raw)>,
    command: PhantomData<C>,
}

/// Which settings a command takes.
pub(crate) trait Takes {
    const SCOPES: &'static [Scope];
}

/// A command that creates a sandbox, or says what it would be like.
#[derive(Debug)]
pub(crate) struct Creates;

/// A command that creates a sandbox and runs something in it.
#[derive(Debug)]
pub(crate) struct CreatesAndRuns;

/// A command that runs something in a sandbox that is there.
#[derive(Debug)]
pub(crate) struct Runs;

/// `run`, which takes all.
#[derive(Debug)]
pub(crate) struct All;

impl Takes for Creates {
    const SCOPES: &'static [Scope] = &[Scope::Create];
}

impl Takes for CreatesAndRuns {
    const SCOPES: &'static [Scope] = &[Scope::Create, Scope::Command];
}

impl Takes for Runs {
    const SCOPES: &'static [Scope] = &[Scope::Command];
}

impl Takes for All {
    const SCOPES: &'static [Scope] = &[Scope::Create, Scope::Command, Scope::Run];
}

impl<C: Takes> SettingArgs<C> {
    /// What the options say.
    pub(crate) fn layer(self) -> Result<Layer, ConfigError> {
        let mut layer = Layer::default();
        for (key, raw) in self.given {
            let name = key.flag();
            let raw = match (key.kind(), raw) {
                (Kind::Line, Raw::Text(line)) => Raw::from_variable(Kind::Line, line),
                (_, raw) => Ok(raw),
            };
            let set = raw.and_then(|raw| layer.set(key, raw, &flag(key)));
            set.map_err(|source| ConfigError::Flag { name, source })?;
        }
        Ok(layer)
    }

    /// The settings that have an option of their own here.
    fn keys() -> impl Iterator<Item = Key> {
        let taken = |key: &Key| key.row().flag.own && C::SCOPES.contains(&key.row().scope);
        Key::ALL.iter().copied().filter(taken)
    }
}

impl<C: Takes> Args for SettingArgs<C> {
    fn augment_args(command: Command) -> Command {
        Self::keys().fold(command, |command, key| {
            let negative = key.row().flag.negative.map(|negative| switched_off(key, negative));
            command.arg(option(key)).args(negative)
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<C: Takes> FromArgMatches for SettingArgs<C> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = Self::keys().filter_map(|key| Some((key, given(key, matches)?))).collect();
        Ok(Self { given, command: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// A setting that is switched on by an option which is not in its row.
pub(crate) fn switched_on(key: Key) -> Layer {
    Layer::of(key, Raw::Switch(true), &flag(key)).expect("the setting is a switch")
}

fn flag(key: Key) -> Origin {
    Origin::Flag { name: key.flag().to_owned() }
}

/// The option of a setting.
fn option(key: Key) -> Arg {
    let row = key.row();
    let named = long(row.word, row.flag.long)
        .short(row.flag.short)
        .help(key.help())
        .help_heading(row.heading.title())
        .hide_short_help(row.flag.rare);
    let other = row.flag.conflicts.filter(|other| other.row().flag.own).map(|other| other.row().word);
    let named = named.conflicts_with_all(other);
    let arg = match key.long_help() {
        Some(text) => named.long_help(text),
        None => named,
    };
    match key.kind() {
        Kind::Switch => match row.flag.negative {
            Some(negative) => arg.action(ArgAction::SetTrue).overrides_with(negative.long),
            None => arg.action(ArgAction::SetTrue),
        },
        Kind::Text => arg.value_name(row.flag.value).hide_possible_values(true).value_parser(checked(key)),
        Kind::Path => arg.value_name(row.flag.value).value_parser(PathBufValueParser::new()),
        Kind::List | Kind::Words => {
            arg.value_name(row.flag.value).action(ArgAction::Append).value_parser(OsStringValueParser::new())
        }
        Kind::Line => {
            arg.value_name(row.flag.value).allow_hyphen_values(true).value_parser(OsStringValueParser::new())
        }
    }
}

/// The option that switches a setting off.
fn switched_off(key: Key, negative: Negative) -> Arg {
    long(negative.long, negative.long)
        .short(negative.short)
        .help(negative.help)
        .help_heading(key.row().heading.title())
        .hide_short_help(true)
        .action(ArgAction::SetTrue)
        .overrides_with(key.row().word)
}

fn long(id: &'static str, dashed: &'static str) -> Arg {
    Arg::new(id).long(dashed.trim_start_matches('-'))
}

/// What the options say about a setting.
fn given(key: Key, matches: &ArgMatches) -> Option<Raw> {
    let id = key.row().word;
    match key.kind() {
        Kind::Switch => {
            let off = key.row().flag.negative.is_some_and(|negative| matches.get_flag(negative.long));
            matches.get_flag(id).then_some(true).or(off.then_some(false)).map(Raw::Switch)
        }
        Kind::Text | Kind::Line => matches.get_one::<OsString>(id).cloned().map(Raw::Text),
        Kind::Path => matches.get_one::<PathBuf>(id).cloned().map(|path| Raw::Text(path.into())),
        Kind::List | Kind::Words => {
            matches.get_many::<OsString>(id).map(|items| Raw::List(items.cloned().collect()))
        }
    }
}

/// Takes one of these values by its word.
pub(crate) fn words<T: Choice + Send + Sync>(all: &'static [T]) -> ValueParser {
    PossibleValuesParser::new(all.iter().map(|value| value.word())).try_map(|word| word.parse::<T>()).into()
}

/// Refuses a value that the setting does not know.
fn checked(key: Key) -> ValueParser {
    match key.form().words {
        Words::These(words) => PossibleValuesParser::new(words()).map(OsString::from).into(),
        Words::Any | Words::Among(_) => Checked(key).into(),
    }
}

/// Takes any value that the setting can read, and knows some of them.
#[derive(Clone, Copy, Debug)]
struct Checked(Key);

impl TypedValueParser for Checked {
    type Value = OsString;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<OsString, clap::Error> {
        let Self(key) = *self;
        let read = move |text: OsString| Layer::of(key, Raw::Text(text.clone()), &flag(key)).map(|_| text);
        OsStringValueParser::new().try_map(read).parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let known = self.0.form().words.known();
        (!known.is_empty()).then(|| Box::new(known.into_iter().map(PossibleValue::new)) as Box<_>)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::error::CliError;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        settings: SettingArgs<All>,
    }

    fn layer(words: &[&str]) -> Result<Layer, ConfigError> {
        let line = ["x"].iter().chain(words);
        Line::try_parse_from(line).expect("known options").settings.layer()
    }

    #[test]
    fn a_flag_that_cannot_be_read_names_the_option() {
        let error = CliError::from(layer(&["--mount", "/a:ro"]).expect_err("refused"));
        insta::assert_snapshot!(error.rendered(crate::ui::style::Colour::Never), @"
        sandtable: error: option `--mount` has no usable value
          because: mount `/a:ro` has destination `ro`, which is not an absolute path
          try: the mode is the third part: `SRC:DST:ro`
        ");
        let error = CliError::from(layer(&["--engine-flags", "--label 'a"]).expect_err("refused"));
        assert!(error.to_string().contains("--engine-flags"), "{error}");
    }

    #[test]
    fn an_option_without_a_value_can_be_switched_off_where_it_has_a_negative() {
        let tty = |words: &[&str]| layer(words).expect("a switch").tty.map(|tty| tty.value);
        assert_eq!(tty(&[]), None);
        assert_eq!(tty(&["-t"]), Some(true));
        assert_eq!(tty(&["-T"]), Some(false));
        assert_eq!(tty(&["-t", "--no-tty"]), Some(false));
        assert_eq!(tty(&["-T", "--tty"]), Some(true));
    }

    #[test]
    fn every_value_comes_from_the_option_that_was_given() {
        for key in Key::ALL.iter().filter(|key| key.row().flag.own) {
            let value = match (key, key.form().words) {
                (_, Words::These(words) | Words::Among(words)) => words()[0],
                (Key::Env, _) => "A=b",
                (Key::Publish, _) => "80",
                (Key::SupportUrl, _) => "https://help.example",
                (Key::Cpus | Key::Pids, _) => "3",
                (Key::Memory | Key::Disk, _) => "1g",
                (Key::Timeout, _) => "5m",
                (Key::Name, _) => "try",
                (Key::Tools | Key::Hide, _) => "a",
                _ => "/x",
            };
            let words = if key.kind() == Kind::Switch { vec![key.flag()] } else { vec![key.flag(), value] };
            let values = layer(&words).expect("known values").values(*key);
            assert_eq!(values.len(), 1, "{words:?}");
            assert_eq!(values[0].origin, flag(*key), "{words:?}");
        }
    }
}

//! The value of `--profile`: which names there are is known only when the configuration files were read.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command};
use sandtable_sandbox::model::profile::{BuiltIn, Profile};

/// Takes any name of a profile, and knows those that are always there.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProfileParser;

impl TypedValueParser for ProfileParser {
    type Value = Profile;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<Profile, clap::Error> {
        let parser = StringValueParser::new().try_map(|word| word.parse::<Profile>());
        parser.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(BuiltIn::ALL.iter().map(|profile| PossibleValue::new(profile.word()))))
    }
}

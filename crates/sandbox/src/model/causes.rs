//! Errors with their causes.

use std::error::Error;

/// An error and its causes, in one line.
pub fn chained(error: &dyn Error) -> String {
    causes(error).fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// The causes of an error, the nearest first.
pub fn causes<'a>(error: &'a (dyn Error + 'a)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(error.source(), |error| (**error).source())
}

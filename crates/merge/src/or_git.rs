//! Our own answer to a question about objects, or git's where ours is none.

use sandtable_sandbox::repository::Failed;

use super::error::Error;

/// The answer, or git's where there is none.
pub(super) fn or_git<T>(
    answer: Result<T, Failed>,
    git: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    match answer {
        Ok(answer) => Ok(answer),
        Err(Failed::NotUnderstood) => git(),
        Err(Failed::Error(error)) => Err(error.into()),
    }
}

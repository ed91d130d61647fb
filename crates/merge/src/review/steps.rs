//! Counts how much of a text is gone over, so that a test can tell linear work from more.

#[cfg(test)]
thread_local!(static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) });

/// So many characters were looked at.
pub(super) fn count(steps: usize) {
    #[cfg(test)]
    STEPS.with(|all| all.set(all.get() + steps));
    let _ = steps;
}

/// How many steps something takes.
#[cfg(test)]
pub(super) fn of(work: impl FnOnce()) -> usize {
    let before = STEPS.with(std::cell::Cell::get);
    work();
    STEPS.with(std::cell::Cell::get) - before
}

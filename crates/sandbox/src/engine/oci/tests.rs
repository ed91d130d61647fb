//! Golden plans: what each engine is told on each kind of machine.

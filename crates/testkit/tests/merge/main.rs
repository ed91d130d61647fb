//! Bringing work back, on real repositories with the real git: the whole story, every state of a target, every kind of
//! conflict against git as the judge, canaries for everything that could run, crashes and races.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

mod canaries;
mod conflicts;
mod crash;
mod delivery;
mod elsewhere;
mod forms;
mod hand_over;
mod races;
mod states;
mod table;
mod trees;
mod trust;
mod world;

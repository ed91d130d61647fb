//! Tools for sandboxes: recipes become plans, plans become directories that are mounted read-only.
//!
//! A [`recipe`] is what a person writes, a [`plan`] is what is done: complete, with every byte pinned by its hash and
//! with the plans of all dependencies inside. [`assemble`] makes one of the other, with the help of the [`builtin`] recipes.
//! Whoever has a plan needs no recipe, no registry's index and no second opinion. Nothing of a recipe ever runs on the
//! host.

pub mod assemble;
pub mod builtin;
pub mod consent;
pub mod depot;
pub mod elf;
pub mod execute;
pub mod family;
pub mod fetch;
pub mod plan;
pub mod recipe;

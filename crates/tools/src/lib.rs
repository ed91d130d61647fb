//! Tools for sandboxes: recipes become plans, plans become directories that are mounted read-only.
//!
//! A [`recipe`] is what a person writes, a [`plan`] is what is done: complete, with every byte pinned by its hash and
//! with the plans of all dependencies inside. [`assemble`] makes one of the other, with the help of the [`builtin`] recipes.
//! Whoever has a plan needs no recipe, no registry's index and no second opinion. Nothing of a recipe ever runs on the
//! host.
//!
//! [`build`] carries a plan out, in sandboxes like any other: this crate is a client of `sandbox`, which knows tools only as
//! directories to mount. It prints nothing and reads no environment.

#![forbid(unsafe_code)]

pub mod assemble;
pub mod build;
pub mod builtin;
pub mod consent;
pub mod depot;
pub mod elf;
pub mod execute;
pub mod family;
pub mod fetch;
pub mod plan;
pub mod recipe;

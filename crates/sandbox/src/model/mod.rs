//! The nouns of the product: what is asked ([`spec`]), what it means here ([`resolved`]), and the values
//! both are made of. Nothing in here touches the machine.

pub mod agent;
pub mod causes;
pub mod check;
pub mod choice;
pub mod container;
pub mod diagnosis;
pub mod engine;
pub mod hide;
pub mod id;
pub mod ignore_file;
pub mod image;
pub mod layer;
pub mod layout;
pub mod limits;
pub mod mount;
pub mod observe;
pub mod path;
pub mod platform;
pub mod profile;
pub mod resolved;
pub mod seatbelt;
pub mod secret;
pub mod setting;
pub mod shell;
pub mod size;
pub mod spec;
pub mod tool;
pub mod versioned;

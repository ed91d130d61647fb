//! The whole product from outside: the rules of the source tree, the attacks, the command line, the life of
//! sandboxes, and what happens when a control cannot be enforced.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

mod adversity;
mod bad_input;
mod board;
mod cli;
mod conformance;
mod container_errors;
mod container_network;
mod container_settings;
mod container_terminal;
mod containers;
mod detach;
mod doctor;
mod extremes;
mod failpoints;
mod floods;
mod freeze;
mod git_base;
mod git_inside;
mod ground;
mod hosts;
mod image;
mod inside;
mod interrupted;
mod lifecycle;
mod limits;
mod merging;
mod mount_points;
mod packaging;
mod plain;
mod policy;
mod proofs;
mod seatbelt;
mod shared_mounts;
mod snapshots;
mod ssh_agent;
mod ssh_tunnel;
mod states;
mod store;
mod streams;
mod terminal;
mod tidy;
mod tool_cli;
mod tool_containers;
mod vm;

//! The hidden subcommands: what our executable is inside sandboxes and containers, where nothing of the user's
//! environment or files is of interest. All of them are for Linux.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use sandtable_launch::inside::{container, probe};
use sandtable_launch::outside::{attach, ground, outpost, relay};
use sandtable_protocol::constants::{OUTPOST, REACH};
use sandtable_sandbox::engine::oci::{LAY, LIFT, SUBCOMMAND, SWEEP};
use sandtable_sandbox::session::spawn;
use sandtable_tools::build::{ASK, answer};

use crate::env;

/// Is what the first word says, if that is one of ours.
pub(crate) fn main(args: &[OsString]) -> Option<ExitCode> {
    match args.get(1)?.to_str()? {
        "__probe" => Some(ExitCode::from(probe::main(&args[2..]))),
        // PID 1 of a container, whose every command gets what the image sets.
        SUBCOMMAND if args.len() == 3 => container::serve(Path::new(&args[2]), env::pairs()),
        // Empties a directory of an overlay with the rights of an engine.
        SWEEP if args.len() == 3 => {
            let removed = fs_err::remove_dir_all(&args[2]);
            Some(if removed.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        // Mounts and unmounts in the namespace of an engine.
        LAY => Some(ground::lay(&args[2..])),
        LIFT => Some(ground::lift(&args[2..])),
        // Says what is in an image, or whether a tool can run in it, from inside.
        ASK if args.len() == 3 => {
            let said = args[2].to_str().and_then(answer);
            let told = said.is_some_and(|said| io::stdout().write_all(said.as_bytes()).is_ok());
            Some(if told { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        spawn::SUBCOMMAND => {
            attach::outlive_file_limits();
            Some(spawn::serve())
        }
        OUTPOST => outpost::serve(&outpost::Post::of(&args[2..])?),
        REACH => Some(ExitCode::from(relay::reach_main(args.get(2).map(Path::new)))),
        _ => None,
    }
}

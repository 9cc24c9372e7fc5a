//! The manual pages.

use clap::CommandFactory;
use clap_mangen::Man;
use tidelake_model::Result;

use crate::args::{Cli, ManArgs};
use crate::exit::Exit;
use crate::output::Output;
use crate::settings::configuration;

/// Prints the first page, or writes all of them into a folder.
pub(super) fn print(output: &Output, args: &ManArgs) -> Result<Exit> {
    let unwritable = |error: std::io::Error| {
        configuration("the manual pages cannot be written")
            .with_hint("name an existing folder that you may write to")
            .with_source(error)
    };
    match &args.dir {
        Some(folder) => clap_mangen::generate_to(Cli::command(), folder).map_err(unwritable)?,
        None => {
            let mut page = Vec::new();
            Man::new(Cli::command()).render(&mut page).map_err(unwritable)?;
            output.terminal.result(&String::from_utf8_lossy(&page));
        }
    }
    Ok(Exit::Done)
}

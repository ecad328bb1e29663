//! `binlogz archive list`: the logs of an archive.

use std::path::PathBuf;

use binlogz_archive::format::FileEntry;
use binlogz_figures::Format::Table;
use binlogz_figures::{Cell, Section};
use clap::Args;

use super::{json, open};
use crate::Exit;
use crate::failure::Result;
use crate::pager;
use crate::report::Format;
use crate::terminal::SizesArg;
use crate::time;

/// List the logs of an archive
#[derive(Debug, Args)]
pub(super) struct List {
    /// How it is told
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    sizes: SizesArg,
    /// The archive: its folder, or s3://BUCKET/PREFIX
    archive: PathBuf,
}

impl List {
    pub(super) fn run(self) -> Result<Exit> {
        let (_, manifest) = open(&self.archive)?;
        if self.format == Format::Json {
            json::print(&json::Listed::new(self.archive.display().to_string(), &manifest))?;
            return Ok(Exit::Done);
        }
        let logs = Section {
            name: "logs",
            title: "Logs",
            columns: &["log", "bytes", "packed_bytes", "from", "to", "gtids"],
            rows: manifest.files.iter().map(row).collect(),
        };
        pager::show(|out| Table(self.sizes.layout()).write(&[logs], out))?;
        Ok(Exit::Done)
    }
}

fn row(file: &FileEntry) -> Vec<Cell> {
    let mark = if file.active_size.is_some() { " (in use)" } else { "" };
    let (from, to) = file.times.unzip();
    vec![
        format!("{}{mark}", file.name).into(),
        file.size.into(),
        file.packed_size.into(),
        from.map(time::shown).into(),
        to.map(time::shown).into(),
        file.gtids.replace('\n', "").into(),
    ]
}

//! Which tables refer to which, for `--children`: by the schema, and by the statements of all logs of the archive.

use std::path::Path;

use binlogz_archive::format::Manifest;
use binlogz_row_changes::{ChildReference, ErasureAim, LoggedDefinitions};
use binlogz_schema::SchemaFile;

use crate::failure::{CommandFailure, Result};
use crate::log_path::LogPath;

/// The foreign keys that there are, or that statements of the logs made.
pub(super) fn references(
    (place, manifest): (&Path, &Manifest),
    schema: Option<(&SchemaFile, &str)>,
    workers: usize,
) -> Result<Vec<ChildReference>> {
    let mut definitions = LoggedDefinitions::default();
    for file in &manifest.files {
        let log = LogPath::File(place.join(&file.name));
        let input = log.open_part(None, &mut |run| run.may_have_statements())?;
        definitions.take(input, workers).map_err(|error| CommandFailure::reading(&log, &error))?;
    }
    let logged = definitions.schema().map_err(|error| CommandFailure::of(&place.display(), error))?;
    let mut all = Vec::new();
    for (schema, from) in schema.into_iter().chain(logged.as_ref().map(|logged| (logged, "the logs"))) {
        all.extend(ChildReference::of_schema(schema).map_err(|error| CommandFailure::of(&from, error))?);
    }
    all.sort();
    all.dedup();
    Ok(all)
}

/// The tables with foreign keys to those of the aim that aren't in it, as `child refers to parent`.
pub(super) fn others(aim: &ErasureAim, references: &[ChildReference]) -> Vec<String> {
    let named: Vec<_> = aim.tables().map(|(name, _)| name.clone()).collect();
    let other = references.iter().filter(|key| named.contains(&key.parent) && !named.contains(&key.child));
    let mut lines: Vec<String> = other
        .map(|key| format!("{}.{} refers to {}.{}", key.child.0, key.child.1, key.parent.0, key.parent.1))
        .collect();
    lines.dedup();
    lines
}

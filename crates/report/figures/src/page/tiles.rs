//! The figures that count most, each in a tile. Every line of tiles is full: where their number doesn't divide, the first is wider.

use std::io::{self, Write};

use super::Tone;
use super::text::{EscapedText, WrappableText};

/// A figure, and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tile {
    /// The figure.
    pub figure: String,
    /// The name of the thing.
    pub what: String,
    /// How good or bad the figure is.
    pub tone: Tone,
}

impl Tile {
    /// A figure that is neither good nor bad.
    pub fn new(figure: impl Into<String>, what: impl Into<String>) -> Tile {
        Tile { figure: figure.into(), what: what.into(), tone: Tone::Neutral }
    }
}

/// Tiles side by side on a phone.
const NARROW: usize = 2;
/// Tiles side by side on a tablet, where so many fit.
const MEDIUM_MAX: usize = 4;
/// Tiles side by side on a desktop, where so many fit.
const WIDE_MAX: usize = 6;

/// Tiles of one kind of screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TileGrid {
    /// Tiles of a line.
    columns: usize,
    /// Columns that the first tile takes.
    first: usize,
}

impl TileGrid {
    /// As few lines as possible of at most so many tiles, as equal as possible.
    fn of(tiles: usize, columns_max: usize) -> TileGrid {
        let lines = tiles.div_ceil(columns_max).max(1);
        let columns = tiles.div_ceil(lines).max(1);
        TileGrid { columns, first: lines * columns - tiles.max(1) + 1 }
    }
}

/// Writes the tiles, if there are any.
pub(super) fn write_tiles(tiles: &[Tile], out: &mut impl Write) -> io::Result<()> {
    if tiles.is_empty() {
        return Ok(());
    }
    let grids = [("narrow", NARROW), ("medium", MEDIUM_MAX), ("wide", WIDE_MAX)];
    write!(out, "<div class=\"tiles\" style=\"")?;
    for (screen, columns_max) in grids {
        let TileGrid { columns, first } = TileGrid::of(tiles.len(), columns_max);
        write!(out, "--{screen}:{columns};--{screen}-first:{first};")?;
    }
    write!(out, "\">")?;
    for Tile { figure, what, tone } in tiles {
        write!(
            out,
            "<div class=\"{}\"><b>{}</b><span>{}</span></div>",
            tone.name(),
            EscapedText(figure),
            WrappableText(what)
        )?;
    }
    writeln!(out, "</div>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_tiles_is_full() {
        for columns_max in [NARROW, MEDIUM_MAX, WIDE_MAX] {
            for tiles in 1..30 {
                let TileGrid { columns, first } = TileGrid::of(tiles, columns_max);
                assert!(
                    columns <= columns_max && first <= columns,
                    "{tiles} of {columns_max}: {columns}, {first}"
                );
                assert_eq!((tiles - 1 + first) % columns, 0, "{tiles} of {columns_max}");
            }
        }
        assert_eq!(TileGrid::of(8, WIDE_MAX), TileGrid { columns: 4, first: 1 });
        assert_eq!(TileGrid::of(9, WIDE_MAX), TileGrid { columns: 5, first: 2 });
        assert_eq!(TileGrid::of(5, MEDIUM_MAX), TileGrid { columns: 3, first: 2 });
    }
}

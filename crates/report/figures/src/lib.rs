//! Writes figures for people and programs.
//!
//! ```text
//! Section (a table of Cells) → Format → text (laid out by table), JSON, CSV
//! Section, Card (a chart)    → Page   → one HTML file that opens offline
//! ```
//!
//! The crates that measure the figures define their meaning. [`Quantiles`] holds the times of any number of
//! transactions, [`grouped()`] writes a number as 1,234,567.

mod grouped;
mod page;
pub mod progress;
mod quantiles;
mod section;
mod size;
mod table;
mod wrap;
mod write;

pub use grouped::{counted, grouped};
pub use page::{
    Bar, BarRow, Bars, Card, Chart, DotRow, Dots, Line, Lines, Page, Paint, Series, SparkRow, Sparks, Step,
    Tile, Tone, Unit,
};
pub use quantiles::Quantiles;
pub use section::{Cell, Section};
pub use size::human_size;
pub use table::{Layout, RunningTable};
pub use wrap::wrapped;
pub use write::Format;

//! Writes figures for people and programs.
//!
//! ```text
//! Section (a table of Cells) → Format → text (laid out by table), JSON, CSV
//! Section, Card (a chart)    → Page   → one HTML file that opens offline
//! ```
//!
//! The crates that measure the figures define their meaning. [`Quantiles`] holds the times of any number of
//! transactions, [`grouped()`] writes a number as 1,234,567.
//! Sizes and durations are read as users write them ([`byte_size()`], [`duration()`]), errors in their configurations name the line ([`at_line()`]).
//! People read times in the zone of the process ([`moment()`], [`Zone`]), programs in UTC ([`utc()`]).

mod at_line;
mod duration;
mod grouped;
mod moment;
mod page;
pub mod progress;
mod prometheus;
mod quantiles;
mod section;
mod size;
mod table;
mod utc;
mod wrap;
mod write;
mod zone;

pub use at_line::at_line;
pub use duration::duration;
pub use grouped::{counted, grouped};
pub use moment::{MomentDigits, moment, moment_of_second, utc_second};
pub use page::{
    Bar, BarRow, Bars, Card, Chart, ChartAxis, ChartLine, DotRow, Dots, FigureUnit, LineChart, Page,
    PageStep, Paint, Series, SparkRow, Sparks, Tile, Tone,
};
pub use prometheus::prometheus_label;
pub use quantiles::Quantiles;
pub use section::{Section, TableCell};
pub use size::{byte_size, human_size};
pub use table::{RunningTable, TableLayout};
pub use utc::utc;
pub use wrap::wrapped;
pub use write::FigureFormat;
pub use zone::Zone;

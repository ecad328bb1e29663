//! JSON columns: binary documents and the differences between two of them.
//!
//! [`JsonDocument`] is the column's bytes, unread. [`JsonValue`] is one value in it; containers are read element by
//! element as they are walked. [`JsonDiffs`] are the differences that a partial update logs instead of a document.
//! [`JsonTree`] is a document with differences applied. Documents and trees write themselves as the server's own text;
//! [`JsonDocument::put_text`] is the way back.

mod binary;
mod diff;
pub(crate) mod double;
mod from_text;
mod path;
mod text;
mod tree;

pub use binary::{JsonArray, JsonDocument, JsonObject, JsonValue};
pub use diff::{JsonDiff, JsonDiffOperation, JsonDiffs};
pub use path::{JsonPath, JsonPathLeg};
pub use tree::JsonTree;

/// The deepest nesting that the server allows in a document.
pub const JSON_DEPTH_MAX: usize = 100;

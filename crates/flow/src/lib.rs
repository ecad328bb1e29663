//! The one bounded pipeline: framing reader, workers on batches of events, ordered writer, spill.

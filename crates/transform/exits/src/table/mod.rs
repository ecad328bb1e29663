//! Tables: what becomes of each column ([`plan`]), and the events that describe a table ([`map_event`]) and hold its rows ([`rows`]).

pub(crate) mod map_event;
pub(crate) mod plan;
pub(crate) mod rows;

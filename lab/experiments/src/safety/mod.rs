//! Keeps the server safe: whether it may be loaded at all, its previous settings, and how it gets them back when a run ends or
//! is interrupted.

pub(crate) mod guard;
pub(crate) mod restore;
pub(crate) mod stop;

//! Keeps the server safe: decides whether it may be loaded at all, keeps its previous settings, and restores them when a
//! run ends or is interrupted.

pub(crate) mod guard;
pub(crate) mod restore;
pub(crate) mod stop;

//! The pages: their links lead somewhere, the book has them all, and their statements about commands are true.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a test may panic

#[path = "../common/mod.rs"]
mod common;
mod examples;
mod glossary;
mod guides;
mod help;
mod help_blocks;
mod kubernetes;
mod length;
mod links;
mod managed;
mod ordinary;
mod pages;
mod profiles;
mod translations;

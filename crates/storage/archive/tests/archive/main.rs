//! Archives: logs come back byte for byte, whatever storage, network and disks do, and damage costs no more than the
//! bytes it hits.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a test may panic

#[cfg(any(feature = "azure", feature = "gcs"))]
mod clouds;
mod damage;
mod damaged_log;
mod directory;
mod encrypted;
mod erase;
mod faults;
mod hostile;
mod lies;
mod life;
mod mariadb;
mod part;
mod parts;
mod picked;
mod presence;
mod readers;
mod restore;
#[cfg(feature = "s3")]
mod s3;
#[cfg(feature = "s3")]
mod s3_ranges;
mod shapes;
#[cfg(feature = "s3")]
mod stored;
mod trust;

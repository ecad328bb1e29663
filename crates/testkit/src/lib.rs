//! What binlogz's tests stand on: real servers, workloads, corpus, mutations.

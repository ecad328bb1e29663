# What binlogz is built, tried and tested with. `make help` lists it.

# The user's own binlogs for `make run`; samples/ without.
FILES ?=
.PHONY: help run demo check test lint docs bench soak servers

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

run: ## compress and expand real binlogs, verify both, print what it saves: samples/, or FILES="…/binlog.*"
	@scripts/run-demo.sh $(FILES)

demo: ## the whole product on private servers, in five minutes: a replica that stops, the relay, an undo, an archive, a restore; Ctrl-C ends it
	@for tool in mysql mariadb; do scripts/get-tool.sh $$tool >/dev/null || exit 1; done
	cargo build --profile quick --no-default-features --package binlogz --package binlogz-bench
	@exec "$${CARGO_TARGET_DIR:-target}/quick/binlogz" demo

# Servers are fetched while the tests compile.
test: ## every test; installs the private servers it needs
	@$(MAKE) --no-print-directory --jobs=2 servers test-programs
	scripts/run-test-programs.py

.PHONY: test-programs
test-programs:
	cargo test --workspace --no-run

check: ## for the daily work: formatting, clippy, names and imports, tests that need no server
	cargo fmt --all --check
	scripts/lint-comments.py --check
	scripts/import-graph.py --check
	scripts/lint-names.py --check
	cargo clippy --workspace --all-targets -- --deny warnings
	scripts/run-tests.sh --quiet --workspace --lib --bins --test golden --test recorded

lint: ## formatting, clippy and docs without warnings, scripts, code in comments, imports, names (Python 3), Kubernetes' manifests, links of the pages
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- --deny warnings
	RUSTDOCFLAGS="--deny warnings --allow rustdoc::private-intra-doc-links" \
		cargo doc --workspace --no-deps --document-private-items
	scripts/lint-scripts.sh
	scripts/lint-comments.py --check
	scripts/import-graph.py --check
	scripts/lint-names.py --check
	scripts/package-crates.sh --no-verify --allow-dirty
	scripts/check-dependencies.sh
	scripts/check-kubernetes.sh
	scripts/run-tests.sh --quiet --workspace --test docs links

docs: ## the pages of docs/ as a book, in target/docs
	@prefix=$$(scripts/get-tool.sh mdbook) && "$$prefix/bin/mdbook" build && echo "target/docs/index.html"

bench: servers ## full-scale measurements side by side with zstd and mysqlbinlog: tens of minutes
	@scripts/run-all.sh scripts/bench

soak: servers ## the long versions of what `make test` does briefly: hours; SEED=N repeats a run
	@scripts/run-all.sh scripts/soak

.PHONY: dist
dist: ## the packages of a release in target/dist: static programs, .tar.gz, .deb, .rpm, checksums; three quarters of an hour
	@scripts/dist.sh

.PHONY: compat
compat: ## who follows a source, directly and through the relay: writes lab/book/compatibility.md; an hour
	@scripts/compat/run.sh

# First, so that a machine that can't have them says so once and at the top; tests then say SKIPPED. Two at once: one is fetched while another is built.
servers:
	@printf '%s\n' compat-rust versitygw flight-sql mysql mysql-5.6 mariadb mariadb-11.4 sysbench zstd cdc java chromium zstd-1.5.0 compat-java compat-go | \
		xargs --max-procs=2 --max-args=1 scripts/get-tool.sh >/dev/null || true

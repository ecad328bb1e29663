#!/usr/bin/env bash
# mysqladmin, which MYSQLADMIN names, as a plain client; see crates/interfaces/cli/tests/compat/clients/sql.rs.
set -euo pipefail
port=$1 user=$2
export MYSQL_PWD=$3
for step in ping status version processlist variables; do
    if said=$("$MYSQLADMIN" --no-defaults --host=127.0.0.1 --port="$port" --user="$user" "$step" 2>&1); then
        echo "done $step"
    else
        echo "failed $step: $(tail -1 <<<"$said")"
    fi
done

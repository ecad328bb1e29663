#!/usr/bin/env bash
# Programs of percona-toolkit, in the folder that PERCONA_TOOLKIT names, as plain clients; see
# crates/interfaces/cli/tests/compat/clients/sql.rs.
set -euo pipefail
port=$1 user=$2
at="h=127.0.0.1,P=$port,u=$user,p=$3"
"$PERCONA_TOOLKIT/pt-table-checksum" --version | sed -n 's/^pt-table-checksum \([0-9.]*\).*/version \1/p'
# step NAME PROGRAM ARGUMENT…
step() {
    local name=$1 said
    shift
    if said=$("$PERCONA_TOOLKIT/$1" "${@:2}" 2>&1); then
        echo "done $name"
    else
        echo "failed $name: $(grep -v '^ *$' <<<"$said" | grep -m1 -i -e error -e fail -e denied || tail -1 <<<"$said")"
    fi
}
step slave-find pt-slave-find "$at"
step table-checksum pt-table-checksum "$at" --databases=compat --recursion-method=none --no-check-binlog-format \
    --set-vars=innodb_lock_wait_timeout=5

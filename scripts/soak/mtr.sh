#!/usr/bin/env bash
# MySQL's own test suite with binlogz in mysqlbinlog's place, and every log that it leaves behind.
#
# - Runs the tests that call mysqlbinlog (chosen by grep, through the files they source) with the original, notes which of
#   them did call it, and runs those that passed again with a link called mysqlbinlog that is binlogz.
# - Copies every log that a test left behind or handed to mysqlbinlog, and the keyrings, and checks each, decrypted: compress and expand give it back,
#   verify and `verify --same` agree, `dump` prints what mysqlbinlog prints, an archive gives it back, and so do two relays: a server
#   has the log as its own, a relay follows it, another one the relay, compressing what it stores.
#
# Fails if a test passes with the original only, or a log differs. The suite is Debian's mysql-testsuite, which get-tool.sh
# keeps (a download of 400 MB).
#
# usage: mtr.sh [--suite=A,B…] [--jobs=N] [--keep=FOLDER] [--logs=FOLDER] [--relays=N] [--big] [--encrypted] [TEST…]
#   --suite   these suites instead of all eight
#   --jobs    tests at a time (2)
#   --keep    a folder for what the run makes: mtr's output, what differs, the logs; without, it is removed
#   --logs    no tests: check the logs of this folder, of an earlier --keep
#   --relays  send only every Nth log through the relays, which takes seconds for each (1: all; 0: none)
#   --big     also the tests that the suite calls big, and those that write gigabytes
#   --encrypted also the tests of logs that the server encrypts: they don't call mysqlbinlog, but leave logs
#   TEST      these tests instead of a choice by grep, as in binlog.binlog_base64_flag
# BINLOGZ names a program to try instead of a release build.
set -euo pipefail
cd "$(dirname "$0")/../.."

suites=main,binlog,binlog_gtid,binlog_nogtid,rpl,rpl_gtid,rpl_nogtid,group_replication
jobs=2 keep='' only_logs='' relays=1 big=() huge='_4g_|_big_event$' with_encrypted='' tests=()
for argument in "$@"; do
    case $argument in
        --suite=*) suites=${argument#*=} ;;
        --jobs=*) jobs=${argument#*=} ;;
        --keep=*) keep=${argument#*=} ;;
        --logs=*) only_logs=${argument#*=} ;;
        --relays=*) relays=${argument#*=} ;;
        --big) big=(--big-test) huge='^$' ;;
        --encrypted) with_encrypted=1 ;;
        -*) sed -n '/^# usage/,/^# BINLOGZ/p' "$0" | sed 's/^# //' >&2; exit 2 ;;
        *) tests+=("$argument") ;;
    esac
done

root=$(scripts/get-tool.sh mtr)/root
suite=$root/usr/lib/mysql-test
mysqlbinlog=$root/usr/bin/mysqlbinlog
# Debian's mysql-test-run.pl doesn't write these two; without them no server of the suite loads a keyring.
echo '{ "read_local_manifest": true }' >"$root/usr/sbin/mysqld.my"
echo '{ "read_local_config": true }' >"$root/usr/lib/mysql/plugin/component_keyring_file.cnf"
. scripts/measure-lib.sh
binlogz=$(binlogz_program)
# A short name: the sockets of the servers stand below it.
work=$(mktemp -d /tmp/mtr.XXXXXX)
trap 'rm -rf "$work"' EXIT
if [ -n "$keep" ]; then
    mkdir -p "$keep"
    kept=$(realpath "$keep")
else
    kept=$work/kept
fi
mkdir -p "$kept/logs" "$kept/keyrings"

# called: the tests of $suites that call mysqlbinlog, themselves or in a file that they source, as mtr names them.
called() {
    local known=$work/known names=$work/names next=$work/next
    cd "$suite"
    # shellcheck disable=SC2016  # the suite's own variable
    grep -rlE '\$\{?MYSQL_BINLOG\b' --include='*.test' --include='*.inc' . | sort >"$known"
    while :; do
        sed -n 's#.*/\(.*\)\.inc$#^[^\#]*(source|let)[^\#]*[/ =]\1[.]inc#p' "$known" | sort -u >"$names"
        # Every test of replication ends with deinit.inc, which looks into logs only where it is told to.
        grep -rlE --file="$names" --include='*.test' --include='*.inc' --exclude=deinit.inc . |
            sort -u - "$known" >"$next"
        if cmp --silent "$known" "$next"; then break; fi
        mv "$next" "$known"
    done
    sed -n 's#^\./t/\(.*\)\.test$#main.\1#p; s#^\./suite/\([^/]*\)/t/\(.*\)\.test$#\1.\2#p' "$known" |
        grep -E "^(${suites//,/|})[.]" | grep -vE "$huge" | sort
}

# encrypted: the tests of these suites, and of those of the keyring, that have the server encrypt its logs.
encrypted() {
    cd "$suite/suite"
    grep -rlE 'binlog[_-]encryption *= *(on|1)|/rpl_(binlog_cache_)?encryption|binlog_encryption_on' -i --include='*.test' \
        --include='*.opt' --include='*.cnf' binlog binlog_gtid rpl rpl_gtid component_keyring_file |
        sed -nE 's#^([^/]*)/t/(.*)[.]test$#\1.\2#p; s#^([^/]*)/t/(.*)-(master|slave)[.]opt$#\1.\2#p' | sort -u
}

# programs NAME MYSQLBINLOG: a folder of client programs for mtr. Its mysqltest copies the logs that a test leaves behind, and
# the keyrings while it runs, since it removes them in the end;
# its mysqlbinlog those that it is given, and notes the test that calls it.
programs() {
    local folder=$work/$1 program
    mkdir -p "$folder/real"
    for program in "$suite"/bin/*; do ln -s "$program" "$folder/"; done
    rm "$folder/mysqltest" "$folder/mysqlbinlog"
    ln -s "$2" "$folder/real/mysqlbinlog"
    cat >"$folder/keep" <<SH
#!/bin/bash
# keep FILE…: copies those that are logs, once each.
for file; do
    [ -f "\$file" ] && [ "\$(stat -c %s "\$file")" -le 67108864 ] || continue
    case \$(head -c 4 "\$file" | od -An -tx1) in
        ' fe 62 69 6e' | ' fd 62 69 6e') to=logs ;;
        *) [[ \$file == */keyring_file* ]] && to=keyrings || continue ;;
    esac
    name=\$(md5sum <"\$file")
    cp -n "\$file" "$kept/\$to/\${name%% *}" 2>/dev/null
done
exit 0
SH
    cat >"$folder/mysqltest" <<SH
#!/bin/bash
for argument; do
    case \$argument in --test-file=*) test=\${argument##*/}; export BINLOGZ_MTR_TEST=\${test%.test} ;; esac
done
while sleep 0.3; do "$folder/keep" "\$MYSQLTEST_VARDIR"/keyring_file*; done &
keeping=\$!
"$suite/bin/mysqltest" "\$@"
code=\$?
kill \$keeping
find "\$MYSQLTEST_VARDIR"/mysqld.*/ -type f -size +100c -regex '.*[.][0-9]+' -print0 2>/dev/null | xargs -0r "$folder/keep"
exit \$code
SH
    cat >"$folder/mysqlbinlog" <<SH
#!/bin/bash
echo "\$BINLOGZ_MTR_TEST" >>"$kept/$1.called"
[ "$1" = ours ] || "$folder/keep" "\$@"
exec "$folder/real/mysqlbinlog" "\$@"
SH
    chmod +x "$folder"/{keep,mysqltest,mysqlbinlog}
}

# run NAME TEST…: mtr with the programs of NAME; its lines in NAME.log, what passed in NAME.passed.
run() {
    local name=$1
    shift
    (
        cd "$suite"
        export PERL5LIB=$root/usr/share/perl5 PATH=$PATH:$root/usr/bin
        # A test under load may take its time, and may fail once by chance.
        perl mysql-test-run.pl --client-bindir="$work/$name" --vardir="$work/var" --tmpdir="$work/tmp" \
            --force --max-test-fail=0 --parallel="$jobs" --retry=2 --retry-failure=1 --nounit-tests --nocheck-testcases \
            --suite-timeout=600 --testcase-timeout=30 "${big[@]}" "$@"
    ) >"$kept/$name.log" 2>&1 || true
    sed -nE "s/^\[ *[0-9]+%\] ([^ ]+)( '[^']*')? +(w[0-9]+ +)?\[ (retry-)?pass \].*/\1\2/p" "$kept/$name.log" |
        sort -u >"$kept/$name.passed"
}

# tested: the tests with the original, unless an earlier run with this --keep did them; those that called mysqlbinlog and
# passed, with ours. In the files of names, a combination is one word with its test.
tested() {
    local again name
    [ ${#tests[@]} -gt 0 ] || mapfile -t tests < <(called; [ -z "$with_encrypted" ] || encrypted)
    programs original "$mysqlbinlog"
    programs ours "$binlogz"
    if [ ! -f "$kept/original.passed" ]; then
        rm -f "$kept"/original.*
        run original "${tests[@]}"
        touch "$kept/original.called" # tests of encrypted logs alone call no mysqlbinlog
    fi
    sort -u "$kept/original.called" | awk 'NR == FNR { called[$1] = 1; next } { test = $1; sub(/^[^.]*[.]/, "", test) }
        test in called' - "$kept/original.passed" >"$kept/original.counted"
    rm -f "$kept"/ours.*
    mapfile -t again < <(awk '{ print $1 }' "$kept/original.counted" | sort -u)
    [ ${#again[@]} -eq 0 ] || run ours "${again[@]}"
    touch "$kept/ours.passed"

    printf '\n%-20s %10s %10s\n' suite original binlogz
    for name in ${suites//,/ }; do
        grep "^$name[.]" "$kept/original.counted" | sort >"$work/theirs" || continue
        printf '%-20s %10d %10d\n' "$name" "$(wc -l <"$work/theirs")" "$(sort "$kept/ours.passed" | comm -12 "$work/theirs" - | wc -l)"
    done
    sort "$kept/original.counted" >"$work/theirs"
    sort "$kept/ours.passed" | comm -23 "$work/theirs" - | sed 's/^/passes with the original only: /'
    sort "$kept/ours.passed" | comm -23 "$work/theirs" - >"$kept/fell"
}

# differs WHAT: $log differs; and what stands in $mine is kept.
differs() {
    local to
    to=$kept/differences/$(basename "$log")
    mkdir -p "$to"
    echo "$*" | tee -a "$to/why" | sed "s/^/differs: $(basename "$log") /"
    cp -r "$mine/." "$to/"
}

# mysqld FOLDER OPTION…: becomes the suite's server over a data directory, without a network: call it in a subshell.
mysqld() {
    local folder=$1
    shift
    exec "$root/usr/sbin/mysqld" --no-defaults --user="$(id -un)" --basedir="$root/usr" --datadir="$folder" --socket="$folder/socket" \
        --skip-networking --mysqlx=0 --secure-file-priv=NULL --innodb-redo-log-capacity=8M --log-error="$folder.err" "$@"
}

# template: a data directory whose root has a password, made once.
template() {
    echo "ALTER USER root@localhost IDENTIFIED BY 'secret';" >"$work/password.sql"
    (mysqld "$work/template" --initialize-insecure --disable-log-bin --init-file="$work/password.sql")
}

# until_done SECONDS COMMAND…: waits until it succeeds.
until_done() {
    local tries=$(($1 * 10))
    shift
    while ! "$@" >/dev/null 2>&1; do
        [ $((tries--)) -gt 0 ] || return 1
        sleep 0.1
    done
}

# said PATTERN FILE: what the pattern's group matches in what a program said so far; fails if nothing does.
said() { sed -n "s/.*$1.*/\\1/p" "$2" | head -n 1 | grep .; }

# relay NAME SOURCE OPTION…: starts a relay of this name in $mine; $port is where it listens.
relay() {
    local name=$1 source=$2
    shift 2
    MYSQL_PWD=secret "$binlogz" relay run --source "$source" --dir "$mine/$name" --listen 127.0.0.1:0 --form received "$@" \
        2>"$mine/$name.said" &
    started+=($!)
    until_done 60 said 'listening on 127\.0\.0\.1:\([0-9]*\)' "$mine/$name.said" &&
        port=$(said 'listening on 127\.0\.0\.1:\([0-9]*\)' "$mine/$name.said")
}

# serves_or_ended PID LOG: whether a server that writes this log is ready, or gone.
serves_or_ended() { grep -q 'ready for connections' "$2" || ! kill -0 "$1"; }

# fetched NAME PORT EXPECTED: whether a relay has the log and sends it as expected, byte for byte, and in the form uncompressed with the same
# transactions, where nothing is compressed any more. (A rotate event there names another file.)
fetched() {
    local form
    for form in '' -u; do
        MYSQL_PWD=secret "$binlogz" dump --no-defaults -R --raw --host=127.0.0.1 --port="$2" --user=root --result-file="$mine/$1." \
            "log$form.000001" >"$mine/told" 2>&1
    done
    cmp "$mine/$1.log.000001" "$3" >"$mine/told" 2>&1 || return 1
    "$binlogz" verify --same "$3" -- "$mine/$1.log-u.000001" >"$mine/told" 2>&1 || return 1
    ! "$binlogz" events "$mine/$1.log-u.000001" | grep Transaction_payload >"$mine/told"
}

# relayed LOG: a server has the log as its own; a relay follows the server, another one the relay, and compresses what it stores.
# Both send the log as the server's file has it, and expanded. Logs that the server refuses are counted.
relayed() {
    local started=() port name mode=ON
    # The log of a replica's receiver (flag LOG_EVENT_RELAY_LOG_F of the first event): no server has it as its own.
    if [ $(($(od -An -tu1 -j21 -N1 "$1") & 64)) != 0 ]; then
        echo replicas >>"$work/counts"
        return 0
    fi
    "$binlogz" dump --no-defaults -s "$1" 2>/dev/null | grep -q "^SET @@SESSION.GTID_NEXT= '[^A]" || mode=OFF
    cp -r "$work/template" "$mine/source"
    cp "$1" "$mine/source/log.000001"
    echo ./log.000001 >"$mine/source/log.index"
    mysqld "$mine/source" --log-bin=log --server-id=1 --gtid-mode=$mode --enforce-gtid-consistency=$mode &
    started+=($!)
    until_done 300 serves_or_ended $! "$mine/source.err"
    if ! grep -q 'ready for connections' "$mine/source.err"; then
        echo unserved >>"$work/counts"
        grep -h '\[ERROR\]' "$mine/source.err" | head -n 1 | sed -E 's/^[^[]*//; s/[0-9a-f-]{32,36}|[0-9]+/N/g' >>"$work/refusals"
    else
        # It may have cut off what was torn, and said that the log is closed: what it serves counts.
        relay first "root@unix:$mine/source/socket" || differs "relay: $(tail -n 1 "$mine/first.said")"
        for name in first second; do
            until_done 20 fetched $name "$port" "$mine/source/log.000001" ||
                differs "relay: $name: $(tail -n 1 "$mine/told"); $(tail -n 1 "$mine/$name.said")"
            [ $name = second ] || relay second "root@127.0.0.1:$port" --store compressed ||
                differs "relay: $(tail -n 1 "$mine/second.said")"
        done
        echo relayed >>"$work/counts"
    fi
    kill "${started[@]}" 2>/dev/null || true
    wait "${started[@]}" 2>/dev/null || true
    rm -rf "$mine/source"
}

# decrypted LOG TO: what an encrypted log holds, expanded: with the keyring of those that were kept which has its key.
# mysqlbinlog reads no encrypted logs, but finds every checksum of the result right, or says so.
decrypted() {
    local keyring
    for keyring in "$keyrings"/*; do
        if [ -f "$keyring" ] && "$binlogz" expand --keyring "$keyring" --output "$2" "$1" >"$mine/told" 2>&1; then
            "$binlogz" verify --keyring "$keyring" --same "$1" -- "$2" >"$mine/told" 2>&1 ||
                differs "verify --same, encrypted: $(tail -1 "$mine/told")"
            return 0
        fi
    done
    return 1
}

# check LOG: all of this of one log.
check() {
    local log=$1 mine options code name dumped readable=1
    mine=$(mktemp -d "$work/log.XXXXXX")
    if [ "$(head -c 4 "$log" | od -An -tx1)" != ' fe 62 69 6e' ]; then
        mkdir "$mine/plain"
        if ! decrypted "$log" "$mine/plain/$(basename "$log")"; then
            echo keyless >>"$work/counts"
            echo "no keyring for $(basename "$log"): $(tail -1 "$mine/told" 2>/dev/null)"
            rm -rf "$mine"
            return 0
        fi
        echo encrypted >>"$work/counts"
        log=$mine/plain/$(basename "$log")
    fi
    echo log >>"$work/counts"
    for options in '' '-vv' '-v --base64-output=decode-rows' '-H' '-s --print-table-metadata' '-d test'; do
        for name in theirs ours; do
            # The text names the folder of LOAD DATA's files, which is the same for both.
            rm -rf "${mine:?}/load" "${mine:?}/$name.load"
            mkdir "$mine/load"
            # Called mysqlbinlog, it has its exit codes where a log lacks what is asked for.
            dumped=("$work/mysqlbinlog")
            [ "$name" = ours ] || dumped=("$mysqlbinlog")
            code=0
            # shellcheck disable=SC2086  # a list of options
            "${dumped[@]}" --no-defaults $options --local-load="$mine/load" "$log" \
                >"$mine/$name.txt" 2>"$mine/$name.told" || code=$?
            echo "$code" >"$mine/$name.code"
            mv "$mine/load" "$mine/$name.load"
        done
        echo dump >>"$work/counts"
        [ "$(cat "$mine/theirs.code")" = 0 ] || readable=
        cmp -s "$mine/theirs.txt" "$mine/ours.txt" && cmp -s "$mine/theirs.code" "$mine/ours.code" &&
            diff -rq "$mine/theirs.load" "$mine/ours.load" >/dev/null && continue
        # A row of docs/reference/dump.md: mysqlbinlog drops the rows of an event with a GEOMETRY column.
        if grep -q "Don't know how to handle column type=255" "$mine/theirs.txt"; then
            echo geometry >>"$work/counts"
            continue
        fi
        differs "dump [$options], exit codes $(cat "$mine/theirs.code") and $(cat "$mine/ours.code"): $(head -1 "$mine/ours.told")"
    done

    code=0
    "$binlogz" verify "$log" >"$mine/verify" 2>&1 || code=$?
    # Logs that mysqlbinlog --raw --rewrite-db writes keep the positions of the log that it read.
    if [ "$code" = 1 ] && ! grep -qvE 'end log pos is|transaction length is|more problems|^Verified$|^  ' "$mine/verify"; then
        echo rewritten >>"$work/counts"
    elif [ "$code" != 0 ] && [ -n "$readable" ]; then
        differs "verify: exit code $code: $(grep -v '^binlogz: warning' "$mine/verify" | tail -1)"
    fi
    if [ "$code" = 2 ] || [ -z "$readable" ]; then # a damaged log: others refuse it as well
        echo damaged >>"$work/counts"
        rm -rf "$mine"
        return 0
    fi

    # Transactions that the server compressed come back expanded.
    for name in small expanded back; do
        case $name in
            small) dumped=(compress "$log") ;;
            expanded) dumped=(expand "$log") ;;
            back) dumped=(expand "$mine/small") ;;
        esac
        "$binlogz" "${dumped[@]}" --output "$mine/$name" >"$mine/told" 2>&1 || differs "${dumped[0]}: $(tail -1 "$mine/told")"
    done
    cmp -s "$mine/expanded" "$mine/back" || differs "expand of compress: other bytes"
    "$binlogz" verify --same "$log" -- "$mine/small" >"$mine/told" 2>&1 || differs "verify --same: $(tail -1 "$mine/told")"

    if [ "$relays" != 0 ] && [ $(($(basename "$1" | cksum | cut -d ' ' -f 1) % relays)) = 0 ]; then
        relayed "$log"
    fi

    # A log in use is archived once the next one stands beside it.
    mkdir "$mine/data"
    cp "$log" "$mine/data/log.000001"
    cp "$log" "$mine/data/log.000002"
    if "$binlogz" archive create --to "$mine/archive" "$mine/data/log.000001" >"$mine/told" 2>&1 &&
        "$binlogz" archive restore --to "$mine/restored" "$mine/archive" >"$mine/told" 2>&1; then
        cmp -s "$log" "$mine/restored/log.000001" || differs "archive: other bytes"
    else
        differs "archive: $(tail -1 "$mine/told")"
    fi
    rm -rf "$mine"
}

# checked FOLDER: every log of it, as many at once as there are jobs.
checked() {
    rm -rf "$kept/differences"
    mkdir "$kept/differences"
    : >"$work/counts"
    keyrings=$(dirname "$1")/keyrings
    : >"$work/refusals"
    ln -sf "$binlogz" "$work/mysqlbinlog"
    export work kept keyrings binlogz mysqlbinlog relays root
    export -f check decrypted differs mysqld until_done serves_or_ended said relay fetched relayed
    [ "$relays" = 0 ] || template
    find "$1" -type f -print0 | sort -z | xargs -0r -n 1 -P "$jobs" bash -c 'set -euo pipefail; check "$1"' check
    count() { grep -c "^$1$" "$work/counts" || true; }
    echo
    echo "$(count log) logs, $(count dump) dumps compared ($(count geometry) with a GEOMETRY column), $(count damaged) logs that" \
        "mysqlbinlog or verify refuses, $(count rewritten) written by mysqlbinlog --raw --rewrite-db, $(count encrypted) encrypted" \
        "($(count keyless) more without their key), $(count relayed) through two relays, $(count unserved) more that no server serves and" \
        "$(count replicas) relay logs;" \
        "$(find "$kept/differences" -name why | wc -l) logs differ"
    sort "$work/refusals" | uniq -c | sort -rn | sed 's/^/  the server says: /'
}

rm -f "$kept/fell"
if [ -n "$only_logs" ]; then
    checked "$only_logs"
else
    tested
    checked "$kept/logs"
fi
[ -s "$work/counts" ] && [ ! -s "$kept/fell" ] && [ -z "$(ls "$kept/differences")" ]

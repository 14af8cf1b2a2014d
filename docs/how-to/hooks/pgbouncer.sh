#!/bin/sh
# Points an entry of PgBouncer (1.21 or newer) at a side: PAUSE, new address, RELOAD, RESUME.
#
# pgbouncer.ini ends with a line for each entry:   %include /etc/pgbouncer/entries/shop.ini
# and that file is this script's:                  [databases]
#                                                  shop = host=... port=... dbname=...
#
#   PGBOUNCER_CONSOLE  how psql reaches the console, as a connection string
#   PGBOUNCER_ENTRIES  folder of the entries' files
#   PGBOUNCER_WRITES   entry for writes, and for reads where there is no other
#   PGBOUNCER_READS    entry for reads, where [cutover] reads_hook is this script, too
#   PGBOUNCER_MORE     further words of the entry, such as "user=shop pool_size=20"
#   PGBOUNCER_PAUSE_S  longest wait for open transactions; with 15 seconds more it must stay below hook_s
set -eu

console=${PGBOUNCER_CONSOLE:-host=/var/run/postgresql port=6432 user=pgbouncer dbname=pgbouncer}
entries=${PGBOUNCER_ENTRIES:-/etc/pgbouncer/entries}
pause_s=${PGBOUNCER_PAUSE_S:-10}
case $MIGRATOR_WHAT in
writes) entry=${PGBOUNCER_WRITES:?} ;;
reads) entry=${PGBOUNCER_READS:?} ;;
esac
file=$entries/$entry.ini

# Each word to the console has its limit: a console that hangs must not outlive hook_s.
say() {
    limit=$1
    shift
    PGCONNECT_TIMEOUT=3 timeout "$limit" psql -X -q -A -t -F ' ' -v ON_ERROR_STOP=1 "$console" -c "$*"
}

# Whatever happens, clients don't stay paused. An entry that isn't paused refuses RESUME: nothing to do.
# shellcheck disable=SC2317
resume() { say 3 "RESUME $entry" >/dev/null 2>&1 || true; }
trap resume EXIT
trap 'exit 1' HUP INT TERM

wanted="; $MIGRATOR_KEY
[databases]
$entry = host=$MIGRATOR_HOST port=$MIGRATOR_PORT dbname=$MIGRATOR_DATABASE ${PGBOUNCER_MORE:-}"

# A call with the same key again: the file is there already, and clients needn't wait once more.
if [ "$(cat "$file" 2>/dev/null)" != "$wanted" ]; then
    resume # a call that was killed may have left it paused, and PAUSE refuses what is paused
    say "$pause_s" "PAUSE $entry" || {
        echo "PAUSE of $entry didn't end within $pause_s s: a transaction is open, or it has no such entry" >&2
        exit 1
    }
    # Beside it and then in its place: whoever reads it finds the old entry or the new one.
    printf '%s\n' "$wanted" >"$file.next"
    if [ -e "$file" ]; then
        chown --reference="$file" "$file.next"
        chmod --reference="$file" "$file.next"
    fi
    sync "$file.next"
    mv -f "$file.next" "$file"
fi
say 3 "RELOAD"
# RELOAD says nothing of a file that it can't read.
say 3 "SHOW DATABASES" | grep -q "^$entry $MIGRATOR_HOST $MIGRATOR_PORT $MIGRATOR_DATABASE " || {
    echo "PgBouncer hasn't taken $file: see its log" >&2
    exit 1
}

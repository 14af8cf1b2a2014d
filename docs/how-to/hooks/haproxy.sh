#!/bin/sh
# Points a backend of HAProxy (tcp mode) at a side, by its runtime API. Sessions with the other side end.
#
# global    stats socket /run/haproxy/admin.sock mode 660 level admin
#           server-state-file /var/lib/haproxy/servers
# defaults  load-server-state-from-file global
# backend shop
#           server old 10.0.0.1:5432
#           server new 10.0.0.2:5432 disabled
#
#   HAPROXY_SOCKET  address of the stats socket, as socat writes it
#   HAPROXY_WRITES  backend for writes, and for reads where there is no other
#   HAPROXY_READS   backend for reads, where [cutover] reads_hook is this script, too
#   HAPROXY_STATE   the server-state-file, by which a restart of HAProxy keeps what was said here
set -eu

socket=${HAPROXY_SOCKET:-UNIX-CONNECT:/run/haproxy/admin.sock}
state=${HAPROXY_STATE:-/var/lib/haproxy/servers}
case $MIGRATOR_WHAT in
writes) backend=${HAPROXY_WRITES:?} ;;
reads) backend=${HAPROXY_READS:?} ;;
esac
case $MIGRATOR_SIDE in
new) other=old ;;
old) other=new ;;
esac

ask() { printf '%s\n' "$1" | timeout 5 socat -t 3 - "$socket"; }

# The API answers a word that it has understood with an empty line, and exit codes know nothing of refusals.
say() {
    said=$(ask "$1")
    if [ -n "$said" ]; then
        echo "HAProxy: $1: $said" >&2
        exit 1
    fi
}

# Every word may be said again, so a call with the same key does no harm. First no new session may go to the other side.
say "set server $backend/$other state maint"
say "shutdown sessions server $backend/$other"
say "set server $backend/$MIGRATOR_SIDE state ready"

# The seventh word of a line is the state that was asked for: odd is maintenance.
ask "show servers state $backend" | awk -v side="$MIGRATOR_SIDE" -v other="$other" '
    $4 == side && $7 % 2 == 0 { ready = 1 }
    $4 == other && $7 % 2 == 1 { closed = 1 }
    END { exit !(ready && closed) }' || {
    echo "HAProxy: $backend/$MIGRATOR_SIDE isn't ready, or $backend/$other isn't closed" >&2
    exit 1
}
ask "show servers state" >"$state.next"
sync "$state.next"
mv -f "$state.next" "$state"

#!/bin/sh
# Points a name at a side by a dynamic update (RFC 2136). An example: it isn't run in our tests.
#
# A name says nothing of ports, and resolvers keep it for its time to live: this returns once that is over, so hook_s
# and pause_s must be longer. Pools keep sessions that they have: have them end with a short lifetime, or restart them.
#
#   DNS_KEY     key file of nsupdate
#   DNS_SERVER  server that takes the update
#   DNS_WRITES  name for writes, and for reads where there is no other
#   DNS_READS   name for reads, where [cutover] reads_hook is this script, too
#   DNS_TTL_S   time to live; a short one has to be in force before the switch
set -eu

ttl_s=${DNS_TTL_S:-5}
case $MIGRATOR_WHAT in
writes) name=${DNS_WRITES:?} ;;
reads) name=${DNS_READS:?} ;;
esac

# One update replaces the name as a whole; made again with the same key it changes nothing.
timeout 10 nsupdate -k "${DNS_KEY:?}" <<UPDATE
server ${DNS_SERVER:?}
update delete $name CNAME
update add $name $ttl_s CNAME $MIGRATOR_HOST.
send
UPDATE
found=$(timeout 5 dig +short +time=2 "@$DNS_SERVER" "$name" CNAME)
if [ "$found" != "$MIGRATOR_HOST." ]; then
    echo "DNS: $name is '$found'" >&2
    exit 1
fi
sleep "$ttl_s"

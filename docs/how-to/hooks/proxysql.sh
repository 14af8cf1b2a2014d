#!/bin/sh
# Points a hostgroup of ProxySQL at a side. An example: it isn't run in our tests.
#
#   PROXYSQL_ADMIN   defaults file of the mysql client with the admin interface's address, user and password
#   PROXYSQL_WRITES  hostgroup for writes, and for reads where there is no other
#   PROXYSQL_READS   hostgroup for reads, where [cutover] reads_hook is this script, too
set -eu

admin=${PROXYSQL_ADMIN:-/etc/proxysql-admin.cnf}
case $MIGRATOR_WHAT in
writes) group=${PROXYSQL_WRITES:?} ;;
reads) group=${PROXYSQL_READS:?} ;;
esac

say() { timeout 10 mysql --defaults-file="$admin" --connect-timeout=3 -N -B -e "$1"; }

# What stands in memory and isn't loaded harms nobody, so a call that was killed is simply made again. Connections to
# a server that has left the hostgroup end with the transaction that they are in.
say "DELETE FROM mysql_servers WHERE hostgroup_id = $group;
INSERT INTO mysql_servers (hostgroup_id, hostname, port, comment)
    VALUES ($group, '$MIGRATOR_HOST', $MIGRATOR_PORT, '$MIGRATOR_KEY');
LOAD MYSQL SERVERS TO RUNTIME;
SAVE MYSQL SERVERS TO DISK;"
found=$(say "SELECT count(*) FROM runtime_mysql_servers
    WHERE hostgroup_id = $group AND status = 'ONLINE' AND hostname = '$MIGRATOR_HOST' AND port = $MIGRATOR_PORT")
if [ "$found" != 1 ]; then
    echo "ProxySQL: hostgroup $group doesn't go to $MIGRATOR_HOST:$MIGRATOR_PORT" >&2
    exit 1
fi

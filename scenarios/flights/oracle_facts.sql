-- Copies of the old tables, and what is true of each flight, worked out once. All of it is temporary.
CREATE TEMP TABLE airlines (carrier char(2), name varchar(60));
CREATE TEMP TABLE airports (faa char(3), name varchar(60), lat numeric(10, 7), lon numeric(10, 7), alt integer,
    tz smallint, dst char(1), tzone varchar(40));
CREATE TEMP TABLE planes (tailnum char(6), year smallint, type varchar(30), manufacturer varchar(40),
    model varchar(30), engines smallint, seats smallint, speed smallint, engine varchar(20));
CREATE TEMP TABLE flights (year integer, month integer, day integer, dep_time integer, sched_dep_time integer,
    dep_delay integer, arr_time integer, sched_arr_time integer, arr_delay integer, carrier char(2), flight integer,
    tailnum char(6), origin char(3), dest char(3), air_time integer, distance integer, hour integer, minute integer,
    time_hour varchar(20));
CREATE TEMP TABLE weather (origin char(3), year integer, month integer, day integer, hour integer, isdst char(1),
    temp numeric(5, 2), dewp numeric(5, 2), humid numeric(5, 2), wind_dir smallint, wind_speed numeric(9, 5),
    wind_gust numeric(9, 5), precip numeric(5, 2), pressure numeric(5, 1), visib numeric(5, 2));

-- copy: here the rows come in

CREATE FUNCTION pg_temp.hhmm_interval(hhmm integer) RETURNS interval IMMUTABLE
RETURN make_interval(hours => hhmm / 100, mins => mod(hhmm, 100));

-- New York's clock: summer time wherever that reading is a true one, so of an hour that comes twice the first.
CREATE FUNCTION pg_temp.new_york(clock timestamp) RETURNS timestamptz STABLE
RETURN CASE WHEN ((clock + interval '4 hours') AT TIME ZONE 'UTC') AT TIME ZONE 'America/New_York' = clock
            THEN (clock + interval '4 hours') AT TIME ZONE 'UTC'
            ELSE (clock + interval '5 hours') AT TIME ZONE 'UTC' END;

-- Less than half a day off, a clock time can belong to one day only.
CREATE FUNCTION pg_temp.near(expected timestamp, clock interval) RETURNS timestamp IMMUTABLE
RETURN CASE WHEN expected::date + clock - expected > interval '12 hours' THEN expected::date + clock - interval '1 day'
            WHEN expected::date + clock - expected <= interval '-12 hours' THEN expected::date + clock + interval '1 day'
            ELSE expected::date + clock END;

CREATE TEMP TABLE facts AS
SELECT f.*,
       'flight:' || concat_ws('|', year, month, day, trim(carrier), flight, trim(origin)) AS flight_id,
       service_date,
       pg_temp.new_york(departs_local) AS departs_at,
       pg_temp.new_york(pg_temp.near(departs_local + make_interval(mins => coalesce(dep_delay, 0)),
                                     pg_temp.hhmm_interval(dep_time))) AS departed_at,
       arrives_local,
       pg_temp.near(arrives_local + make_interval(mins => arr_delay), pg_temp.hhmm_interval(arr_time)) AS landed_local,
       CASE WHEN trim(tailnum) <> '' THEN trim(tailnum) END AS tail_number,
       CASE WHEN dep_time IS NULL THEN 'cancelled'
            WHEN arr_time IS NULL OR arr_delay IS NULL THEN 'diverted'
            ELSE 'flown' END AS status
FROM flights AS f,
     LATERAL (SELECT make_date(year, month, day) AS service_date) AS d,
     LATERAL (SELECT service_date + pg_temp.hhmm_interval(sched_dep_time) AS departs_local,
                     service_date + pg_temp.hhmm_interval(sched_arr_time)
                         + CASE WHEN sched_arr_time < sched_dep_time THEN interval '1 day' ELSE interval '0' END
                         AS arrives_local) AS l;

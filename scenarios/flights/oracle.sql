-- What the new tables must hold, said a second time in PostgreSQL's own words, over the old tables.
-- Ids stand here as the text they are made from; the oracle (oracle.py) turns them into UUIDs.

-- new table: carrier
SELECT 'carrier:' || trim(carrier) AS carrier_id,
       trim(carrier) AS code,
       CASE WHEN name LIKE '% Inc.' THEN left(name, -5)
            WHEN name LIKE '% Co.' THEN left(name, -4)
            WHEN name LIKE '% Corporation' THEN left(name, -12)
            ELSE name END AS name,
       CASE WHEN name LIKE '% Inc.' THEN 'Inc.'
            WHEN name LIKE '% Co.' THEN 'Co.'
            WHEN name LIKE '% Corporation' THEN 'Corporation' END AS legal_form
FROM airlines;

-- new table: place
SELECT 'place:' || trim(faa) AS place_id,
       trim(faa) AS code,
       array_to_string(string_to_array(name, E'\\'), '') AS name,
       lat AS latitude,
       lon AS longitude,
       (alt * 0.3048)::numeric(7, 2) AS elevation_m,
       tz AS utc_offset_h,
       CASE dst WHEN 'A' THEN true WHEN 'N' THEN false END AS observes_dst,
       CASE WHEN tzone <> E'\\N' THEN tzone END AS time_zone
FROM airports;

-- new table: aircraft
SELECT 'aircraft:' || trim(tailnum) AS aircraft_id,
       trim(tailnum) AS tail_number,
       CASE split_part(type, ' ', 1) WHEN 'Fixed' THEN 'aeroplane' WHEN 'Rotorcraft' THEN 'rotorcraft' END AS kind,
       maker AS manufacturer,
       model,
       maker || ' ' || model AS label,
       CASE WHEN year > 0 THEN year END AS built_year,
       seats,
       (speed * 1.609344)::numeric(7, 2) AS cruise_speed_kmh
FROM planes, LATERAL (
    SELECT CASE WHEN manufacturer LIKE 'MCDONNELL DOUGLAS%' THEN 'MCDONNELL DOUGLAS'
                WHEN manufacturer LIKE 'AIRBUS%' THEN 'AIRBUS'
                WHEN manufacturer LIKE 'CANADAIR%' THEN 'CANADAIR'
                ELSE manufacturer END AS maker
) AS m;

-- new table: aircraft_engine
SELECT 'aircraft:' || trim(tailnum) AS aircraft_id, position, engine AS design, engine ~ '^Turbo' AS is_turbine
FROM planes, generate_series(1, engines) AS position;

-- new table: directory_entry
SELECT 'directory:' || kind || '|' || code AS entry_id, kind, code, label
FROM (
    SELECT 'carrier' AS kind, trim(carrier) AS code, name::text AS label FROM airlines
    UNION ALL
    SELECT 'place', trim(faa), array_to_string(string_to_array(name, E'\\'), '') FROM airports
    UNION ALL
    SELECT 'aircraft', trim(tailnum), manufacturer || ' ' || model FROM planes
) AS entries;

-- new table: flight
SELECT flight_id,
       'carrier:' || trim(carrier) AS carrier_id,
       flight AS flight_number,
       'place:' || trim(origin) AS origin_id,
       trim(dest) AS destination_code,
       service_date,
       departs_at,
       arrives_local,
       (distance * 1.609344)::numeric(9, 3) AS distance_km,
       tail_number,
       status
FROM facts;

-- new table: departure
SELECT flight_id, departed_at, dep_delay AS delay_min, dep_delay <= 15 AS on_time
FROM facts WHERE status <> 'cancelled';

-- new table: arrival
SELECT flight_id, landed_local, arr_delay AS delay_min, air_time AS air_time_min
FROM facts WHERE status = 'flown';

-- new table: diversion
SELECT flight_id, departed_at, to_char(service_date + pg_temp.hhmm_interval(arr_time), 'HH24:MI') AS landed_clock
FROM facts WHERE status = 'diverted';

-- new table: cancellation
SELECT flight_id, departs_at AS planned_at, tail_number IS NOT NULL AS aircraft_known
FROM facts WHERE status = 'cancelled';

-- new table: delay
SELECT flight_id, phase, minutes,
       CASE WHEN minutes BETWEEN 16 AND 59 THEN 'short' WHEN minutes < 180 THEN 'long' ELSE 'severe' END AS severity
FROM facts, LATERAL (VALUES ('departure', dep_delay), ('arrival', arr_delay)) AS p (phase, minutes)
WHERE status <> 'cancelled' AND minutes > 15;

-- new table: weather_observation
SELECT observed_hour * 46656
         + position(substr(origin, 1, 1) IN '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ') * 1296 - 1296
         + position(substr(origin, 2, 1) IN '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ') * 36 - 36
         + position(substr(origin, 3, 1) IN '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ') - 1 AS observation_id,
       'place:' || trim(origin) AS place_id,
       observed_at,
       ((temp - 32) / 1.8)::numeric(5, 2) AS temperature_c,
       ((dewp - 32) / 1.8)::numeric(5, 2) AS dew_point_c,
       humid AS humidity_pct,
       wind_dir AS wind_direction_deg,
       (CASE WHEN wind_speed <= 260 THEN wind_speed * 0.44704 END)::numeric(6, 2) AS wind_speed_ms,
       (CASE WHEN wind_gust <> 999.9 THEN wind_gust * 0.44704 END)::numeric(6, 2) AS wind_gust_ms,
       wind_speed IS NOT NULL AND wind_speed > 260 AS is_wind_suspect,
       (precip * 25.4)::numeric(6, 2) AS precipitation_mm,
       CASE WHEN pressure <> 9999.9 THEN pressure END AS pressure_hpa,
       (visib * 1.609344)::numeric(6, 3) AS visibility_km,
       ((temp - 32) / 1.8)::numeric(5, 2) <= 0 AS is_freezing
FROM weather,
     LATERAL (SELECT make_timestamptz(year, month, day, hour, 0, 0,
                                      CASE isdst WHEN 'Y' THEN '-04' WHEN 'N' THEN '-05' END) AS observed_at) AS o,
     LATERAL (SELECT (extract(epoch FROM observed_at) / 3600)::bigint AS observed_hour) AS h;

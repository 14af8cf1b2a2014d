-- The old schema on MariaDB: dates in pieces, clock times as hhmm integers, blanks and magic numbers for what is missing.
CREATE TABLE airlines (
    carrier char(2) PRIMARY KEY,
    name    varchar(60) NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

CREATE TABLE airports (
    faa   char(3) PRIMARY KEY,
    name  varchar(60) NOT NULL,
    lat   numeric(10, 7) NOT NULL,
    lon   numeric(10, 7) NOT NULL,
    alt   int NOT NULL,                 -- feet
    tz    tinyint NOT NULL,                -- hours from UTC
    dst   char(1) NOT NULL DEFAULT 'U',     -- A yes, N no, U unknown
    tzone varchar(40) NOT NULL DEFAULT '\\N' -- \N unknown (OpenFlights' own code, two characters)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

CREATE TABLE planes (
    tailnum      char(6) PRIMARY KEY,
    year         year NOT NULL DEFAULT 0,     -- 0 unknown
    type         varchar(30) NOT NULL,
    manufacturer varchar(40) NOT NULL,
    model        varchar(30) NOT NULL,
    engines      tinyint NOT NULL,
    seats        smallint unsigned NOT NULL,
    speed        smallint,                    -- miles per hour
    engine       varchar(20) NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

CREATE TABLE flights (
    year           smallint NOT NULL,
    month          tinyint NOT NULL,
    day            tinyint NOT NULL,
    dep_time       smallint,                -- hhmm local time, 2400 is midnight; NULL: cancelled
    sched_dep_time smallint NOT NULL,
    dep_delay      smallint,                -- minutes, negative is early
    arr_time       smallint,                -- hhmm at the destination
    sched_arr_time smallint NOT NULL,
    arr_delay      smallint,                -- NULL although departed: diverted
    carrier        char(2) NOT NULL,
    flight         mediumint unsigned NOT NULL,
    tailnum        char(6) NOT NULL DEFAULT '',
    origin         char(3) NOT NULL,
    dest           char(3) NOT NULL,        -- four destinations are no known airport
    air_time       smallint,                -- minutes
    distance       int NOT NULL,        -- miles
    hour           tinyint NOT NULL,       -- of sched_dep_time
    minute         tinyint NOT NULL,
    time_hour      varchar(20) NOT NULL,    -- the scheduled hour in UTC, as text
    PRIMARY KEY (year, month, day, carrier, flight, origin),
    FOREIGN KEY (carrier) REFERENCES airlines (carrier),
    FOREIGN KEY (origin) REFERENCES airports (faa)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

CREATE TABLE weather (
    origin     char(3) NOT NULL,
    year       smallint NOT NULL,
    month      tinyint NOT NULL,
    day        tinyint NOT NULL,
    hour       tinyint NOT NULL,           -- local time
    isdst      char(1) NOT NULL,            -- Y or N: one hour of autumn comes twice
    temp       numeric(5, 2),               -- degrees Fahrenheit
    dewp       numeric(5, 2),
    humid      numeric(5, 2),
    wind_dir   smallint,
    wind_speed numeric(9, 5),               -- miles per hour
    wind_gust  numeric(9, 5) NOT NULL DEFAULT 999.9,  -- 999.9 missing (NOAA's code)
    precip     numeric(5, 2) NOT NULL,      -- inches
    pressure   numeric(5, 1) NOT NULL DEFAULT 9999.9, -- millibars, 9999.9 missing (NOAA's code)
    visib      numeric(5, 2) NOT NULL,      -- miles
    PRIMARY KEY (origin, year, month, day, hour, isdst),
    FOREIGN KEY (origin) REFERENCES airports (faa)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;


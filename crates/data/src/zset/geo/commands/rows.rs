//! The rows of the GEO commands.

use super::{places, search};
use crate::command::flags::Flags;
use crate::command::grammar::{Argument, block, double, integer, key, oneof, string, token};
use crate::command::key_specs::{OVERWRITE, READ, UPDATE, after_word, at};
use crate::command::row::{Group, Handler, Row};
use crate::{read_handler, write_handler};

const EACH_MEMBER: &str = "O(log N) for each member, N being all that is stored";
const IN_CELLS: &str = "O(log N + M) with M members in the up to nine cells around the area";

const LONGITUDE: Argument = double("longitude");
const LATITUDE: Argument = double("latitude");
const UNIT: Argument = oneof("unit", &[token("M"), token("KM"), token("FT"), token("MI")]);
const WITH_PLACE: Argument = token("WITHCOORD").optional();
const WITH_DISTANCE: Argument = token("WITHDIST").optional();
const WITH_HASH: Argument = token("WITHHASH").optional();
const FIND_COUNT: Argument = integer("count").token("COUNT");
const COUNT: Argument = block("count-block", &[FIND_COUNT, token("ANY").optional()]).optional();
const COUNT_WITH_LATER_ANY: Argument = block(
    "count-block",
    &[FIND_COUNT, token("ANY").since("6.2.0").optional()],
)
.optional();
const ORDER: Argument = oneof("order", &[token("ASC"), token("DESC")]).optional();
const STORE: Argument = oneof(
    "store",
    &[
        key(1).named("storekey").shown_as("key").token("STORE"),
        key(2)
            .named("storedistkey")
            .shown_as("key")
            .token("STOREDIST"),
    ],
)
.optional();
const FROM: Argument = oneof(
    "from",
    &[
        string("member").token("FROMMEMBER"),
        block("fromlonlat", &[LONGITUDE, LATITUDE]).token("FROMLONLAT"),
    ],
);
const BY: Argument = oneof(
    "by",
    &[
        block("circle", &[double("radius").token("BYRADIUS"), UNIT]),
        block(
            "box",
            &[double("width").token("BYBOX"), double("height"), UNIT],
        ),
    ],
);

const ANY_HISTORY: (&str, &str) = ("6.2.0", "Added the `ANY` option for `COUNT`.");
const UNITS_HISTORY: (&str, &str) = ("7.0.0", "Added support for uppercase unit names.");

const fn geo(name: &'static str, arity: i32, since: &'static str, handler: Handler) -> Row {
    Row::new(name, arity, since, Group::Geo, handler).categories(&["@geo"])
}

/// The GEO commands.
pub const ROWS: &[Row] = &[
    geo("geoadd", -5, "3.2.0", write_handler!(places::geoadd))
        .summary(
            "Adds one or more members to a geospatial index. The key is created if it doesn't \
             exist.",
        )
        .complexity(EACH_MEMBER)
        .flags(Flags::DENYOOM)
        .keys(&[at(1, UPDATE)])
        .history(&[("6.2.0", "Added the `CH`, `NX` and `XX` options.")])
        .arguments(&[
            key(0),
            oneof("condition", &[token("NX"), token("XX")])
                .since("6.2.0")
                .optional(),
            token("CH").named("change").since("6.2.0").optional(),
            block("data", &[LONGITUDE, LATITUDE, string("member")]).multiple(),
        ])
        .plan(places::plan_add),
    geo("geodist", -4, "3.2.0", read_handler!(places::geodist))
        .summary("Returns the distance between two members of a geospatial index.")
        .complexity(EACH_MEMBER)
        .keys(&[at(1, READ)])
        .arguments(&[
            key(0),
            string("member1"),
            string("member2"),
            UNIT.optional(),
        ]),
    geo("geohash", -2, "3.2.0", read_handler!(places::geohash))
        .summary("Returns members from a geospatial index as geohash strings.")
        .complexity(EACH_MEMBER)
        .keys(&[at(1, READ)])
        .arguments(&[key(0), string("member").multiple().optional()]),
    geo("geopos", -2, "3.2.0", read_handler!(places::geopos))
        .summary("Returns the longitude and latitude of members from a geospatial index.")
        .complexity(EACH_MEMBER)
        .keys(&[at(1, READ)])
        .arguments(&[key(0), string("member").multiple().optional()]),
    geo("georadius", -6, "3.2.0", write_handler!(search::georadius))
        .summary(
            "Queries a geospatial index for members within a distance from a coordinate, \
             optionally stores the result.",
        )
        .complexity(IN_CELLS)
        .flags(Flags::DENYOOM)
        .keys(&[
            at(1, READ),
            after_word("STORE", 6, OVERWRITE),
            after_word("STOREDIST", 6, OVERWRITE),
        ])
        .history(&[ANY_HISTORY, UNITS_HISTORY])
        .deprecated(
            "6.2.0",
            "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` argument",
        )
        .arguments(&[
            key(0),
            LONGITUDE,
            LATITUDE,
            double("radius"),
            UNIT,
            WITH_PLACE,
            WITH_DISTANCE,
            WITH_HASH,
            COUNT_WITH_LATER_ANY,
            ORDER,
            STORE,
        ]),
    geo(
        "georadius_ro",
        -6,
        "3.2.10",
        read_handler!(search::georadius_ro),
    )
    .summary(
        "Returns members from a geospatial index that are within a distance from a coordinate.",
    )
    .complexity(IN_CELLS)
    .keys(&[at(1, READ)])
    .history(&[ANY_HISTORY])
    .deprecated("6.2.0", "`GEOSEARCH` with the `BYRADIUS` argument")
    .arguments(&[
        key(0),
        LONGITUDE,
        LATITUDE,
        double("radius"),
        UNIT,
        WITH_PLACE,
        WITH_DISTANCE,
        WITH_HASH,
        COUNT_WITH_LATER_ANY,
        ORDER,
    ]),
    geo(
        "georadiusbymember",
        -5,
        "3.2.0",
        write_handler!(search::georadiusbymember),
    )
    .summary(
        "Queries a geospatial index for members within a distance from a member, optionally \
         stores the result.",
    )
    .complexity(IN_CELLS)
    .flags(Flags::DENYOOM)
    .keys(&[
        at(1, READ),
        after_word("STORE", 5, OVERWRITE),
        after_word("STOREDIST", 5, OVERWRITE),
    ])
    .history(&[UNITS_HISTORY])
    .deprecated(
        "6.2.0",
        "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` and `FROMMEMBER` arguments",
    )
    .arguments(&[
        key(0),
        string("member"),
        double("radius"),
        UNIT,
        WITH_PLACE,
        WITH_DISTANCE,
        WITH_HASH,
        COUNT,
        ORDER,
        STORE,
    ]),
    geo(
        "georadiusbymember_ro",
        -5,
        "3.2.10",
        read_handler!(search::georadiusbymember_ro),
    )
    .summary("Returns members from a geospatial index that are within a distance from a member.")
    .complexity(IN_CELLS)
    .keys(&[at(1, READ)])
    .deprecated(
        "6.2.0",
        "`GEOSEARCH` with the `BYRADIUS` and `FROMMEMBER` arguments",
    )
    .arguments(&[
        key(0),
        string("member"),
        double("radius"),
        UNIT,
        WITH_PLACE,
        WITH_DISTANCE,
        WITH_HASH,
        COUNT,
        ORDER,
    ]),
    geo("geosearch", -7, "6.2.0", read_handler!(search::geosearch))
        .summary("Queries a geospatial index for members inside an area of a box or a circle.")
        .complexity(IN_CELLS)
        .keys(&[at(1, READ)])
        .history(&[UNITS_HISTORY])
        .arguments(&[
            key(0),
            FROM,
            BY,
            ORDER,
            COUNT,
            WITH_PLACE,
            WITH_DISTANCE,
            WITH_HASH,
        ]),
    geo(
        "geosearchstore",
        -8,
        "6.2.0",
        write_handler!(search::geosearchstore),
    )
    .summary(
        "Queries a geospatial index for members inside an area of a box or a circle, optionally \
         stores the result.",
    )
    .complexity(IN_CELLS)
    .flags(Flags::DENYOOM)
    .keys(&[at(1, OVERWRITE), at(2, READ)])
    .history(&[UNITS_HISTORY])
    .arguments(&[
        key(0).named("destination"),
        key(1).named("source"),
        FROM,
        BY,
        ORDER,
        COUNT,
        token("STOREDIST").optional(),
    ]),
];

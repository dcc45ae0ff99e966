//! GEO commands on both kinds of store. The examples are those of Redis's documentation. The
//! differential test against redis-server goes further.

use super::error;
use quoin_engine::testing::{Bench, bulk, bulks};
use quoin_resp::reply::Reply;

const SICILY: &str = "GEOADD Sicily 13.361389 38.115556 Palermo 15.087269 37.502669 Catania";
const CORNERS: &str = "GEOADD Sicily 12.758489 38.788135 edge1 17.241510 38.788135 edge2";

fn on_both_stores(test: impl Fn(&Bench)) {
    for bench in [Bench::embedded(), Bench::cluster_like()] {
        assert_eq!(bench.run(SICILY), Reply::Integer(2));
        test(&bench);
    }
}

#[test]
fn members_are_where_redis_puts_them() {
    on_both_stores(|bench| {
        assert_eq!(
            bench.run("ZSCORE Sicily Palermo"),
            Reply::Double(3_479_099_956_230_698.0)
        );
        assert_eq!(
            bench.run("GEOHASH Sicily Palermo Catania nowhere"),
            Reply::Array(vec![bulk("sqc8b49rny0"), bulk("sqdtr74hyu0"), Reply::Null])
        );
        assert_eq!(
            bench.run("GEOPOS Sicily Palermo nowhere"),
            Reply::Array(vec![
                Reply::Array(vec![
                    Reply::Decimal(13.361389338970184.into()),
                    Reply::Decimal(38.1155563954963.into())
                ]),
                Reply::NullArray
            ])
        );
        assert_eq!(
            bench.run("GEODIST Sicily Palermo Catania"),
            bulk("166274.1516")
        );
        assert_eq!(
            bench.run("GEODIST Sicily Palermo Catania KM"),
            bulk("166.2742")
        );
        assert_eq!(bench.run("GEODIST Sicily Palermo Palermo"), bulk("0.0000"));
        assert_eq!(bench.run("GEODIST Sicily Palermo nowhere"), Reply::Null);
        assert_eq!(bench.run("GEODIST nothing a b"), Reply::Null);
        assert_eq!(
            bench.run("GEOPOS nothing a"),
            Reply::Array(vec![Reply::NullArray])
        );
    });
}

#[test]
fn searches_find_what_is_inside() {
    on_both_stores(|bench| {
        bench.run(CORNERS);
        assert_eq!(
            bench.run("GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS 200 km ASC"),
            bulks(&["Catania", "Palermo"])
        );
        let found = |member, distance, longitude: f64, latitude: f64| {
            let place = vec![
                Reply::Decimal(longitude.into()),
                Reply::Decimal(latitude.into()),
            ];
            Reply::Array(vec![bulk(member), bulk(distance), Reply::Array(place)])
        };
        assert_eq!(
            bench.run(
                "GEOSEARCH Sicily FROMLONLAT 15 37 BYBOX 400 400 km DESC COUNT 2 WITHCOORD WITHDIST"
            ),
            Reply::Array(vec![
                found("edge1", "279.7405", 12.75848776102066, 38.78813451624225),
                found("edge2", "279.7403", 17.241510450839996, 38.78813451624225),
            ])
        );
        assert_eq!(
            bench.run("GEORADIUSBYMEMBER Sicily Palermo 50 km WITHHASH"),
            Reply::Array(vec![Reply::Array(vec![
                bulk("Palermo"),
                Reply::Integer(3_479_099_956_230_698)
            ])])
        );
        assert_eq!(
            bench.run("GEORADIUS_RO Sicily 15 37 200 km COUNT 1"),
            bulks(&["Catania"])
        );
        assert_eq!(
            bench.run("GEOSEARCH nothing FROMMEMBER a BYRADIUS 1 m"),
            Reply::Array(vec![])
        );
    });
}

#[test]
fn what_is_found_is_stored() {
    on_both_stores(|bench| {
        let search = "FROMLONLAT 15 37 BYRADIUS 200 km";
        let store = |line: &str| bench.run(line);
        assert_eq!(
            store(&format!("GEOSEARCHSTORE to Sicily {search}")),
            Reply::Integer(2)
        );
        assert_eq!(bench.run("GEODIST to Palermo Catania km"), bulk("166.2742"));
        assert_eq!(
            store(&format!(
                "GEOSEARCHSTORE to Sicily {search} ASC COUNT 1 STOREDIST"
            )),
            Reply::Integer(1)
        );
        assert_eq!(bench.run("ZRANGEBYSCORE to 56 57"), bulks(&["Catania"]));
        assert_eq!(
            store("GEORADIUSBYMEMBER Sicily Palermo 1 m STORE ignored STOREDIST to"),
            Reply::Integer(1)
        );
        assert_eq!(bench.run("ZSCORE to Palermo"), Reply::Double(0.0));
        assert_eq!(bench.run("EXISTS ignored"), Reply::Integer(0));
        assert_eq!(
            store("GEORADIUS nothing 1 1 1 m STORE to"),
            Reply::Integer(0)
        );
        assert_eq!(bench.run("EXISTS to"), Reply::Integer(0));
    });
}

#[test]
fn what_is_wrong_is_said_in_redis_words() {
    on_both_stores(|bench| {
        bench.run("RPUSH l x");
        for (line, expected) in [
            (
                "GEOADD Sicily 200.0078125 10 a",
                "ERR invalid longitude,latitude pair 200.007812,10.000000",
            ),
            ("GEOADD Sicily x 10 a", "ERR value is not a valid float"),
            ("GEOADD Sicily NX XX 1 1 a", "ERR syntax error"),
            ("GEOADD Sicily CH CH CH", "ERR syntax error"),
            (
                "GEODIST Sicily a b x",
                "ERR unsupported unit provided. please use M, KM, FT, MI",
            ),
            ("GEORADIUS Sicily 1 1 x m", "ERR need numeric radius"),
            ("GEORADIUS Sicily 1 1 -1 m", "ERR radius cannot be negative"),
            (
                "GEOSEARCH Sicily FROMLONLAT 1 1 BYBOX 1 -1 m",
                "ERR height or width cannot be negative",
            ),
            (
                "GEOSEARCH Sicily FROMMEMBER nowhere BYRADIUS 1 m",
                "ERR could not decode requested zset member",
            ),
            (
                "GeoSearch Sicily BYRADIUS 1 m ASC ASC ASC",
                "ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for GeoSearch",
            ),
            (
                "GEOSEARCHSTORE to Sicily FROMLONLAT 1 1 ASC ASC ASC",
                "ERR exactly one of BYRADIUS and BYBOX can be specified for GEOSEARCHSTORE",
            ),
            (
                "GEORADIUS Sicily 1 1 1 m ANY",
                "ERR the ANY argument requires COUNT argument",
            ),
            ("GEORADIUS Sicily 1 1 1 m COUNT 0", "ERR COUNT must be > 0"),
            (
                "GEORADIUS Sicily 1 1 1 m WITHDIST STORE to",
                "ERR STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and \
                 WITHCOORD options",
            ),
            ("GEORADIUS_RO Sicily 1 1 1 m STORE to", "ERR syntax error"),
            (
                "GEOPOS l a",
                "WRONGTYPE Operation against a key holding the wrong kind of value",
            ),
        ] {
            assert_eq!(bench.run(line), error(expected), "{line}");
        }
        assert_eq!(bench.run("ZCARD Sicily"), Reply::Integer(2));
    });
}

# Quoin with both stores. docker-compose.yml runs it on FoundationDB; alone, on the embedded
# store:
#
#   docker build -t quoin .
#   docker run -p 6379:6379 -e QUOIN_REQUIREPASS=… -v quoin-data:/var/lib/quoin quoin
#
# Without a password it answers only clients within its container (protected mode). To try it without
# one, publish the port on this machine's loopback only:
#
#   docker run -p 127.0.0.1:6379:6379 -e QUOIN_PROTECTED_MODE=no -v quoin-data:/var/lib/quoin quoin

# FoundationDB's client library; the same version as the cluster in docker-compose.yml.
FROM foundationdb/foundationdb:7.3.77 AS foundationdb

FROM rust:1.95-slim-bookworm AS builder
# bindgen, which reads FoundationDB's headers, wants libclang; the allocator is built with make.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libclang-dev make \
    && rm -rf /var/lib/apt/lists/*
COPY --from=foundationdb /usr/lib/libfdb_c.so /usr/lib/libfdb_c.so
ENV FDB_CLIENT_LIB_PATH=/usr/lib
WORKDIR /build
COPY . .
RUN cargo build --release --locked --features fdb --bin quoin

FROM debian:bookworm-slim
COPY --from=foundationdb /usr/lib/libfdb_c.so /usr/lib/libfdb_c.so
COPY --from=builder /build/target/release/quoin /usr/local/bin/quoin
# Also says at once when the library does not load.
RUN ldconfig && quoin --version
# The folder is made apart from the user: a home that useradd makes holds a shell's startup files,
# which a volume then keeps beside the data.
RUN useradd --uid 10001 --home-dir /var/lib/quoin --no-create-home quoin \
    && install --directory --owner quoin --group quoin --mode 0700 /var/lib/quoin
USER quoin
WORKDIR /var/lib/quoin
VOLUME /var/lib/quoin
# All addresses of the container: which of the host's reach it is up to `-p`. Protected mode stays
# on, so that `-p` alone opens the data to nobody.
ENV QUOIN_BIND=0.0.0.0
ENV QUOIN_DATA_DIR=/var/lib/quoin/data
EXPOSE 6379
ENTRYPOINT ["quoin"]
